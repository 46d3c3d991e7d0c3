//! Settings as a JSON object of the keys of configuration, and durations.

use std::time::Duration;

use fuseline::{Policy, read_settings};
use napi_derive::napi;

/// Everything that is wrong with these settings, a sentence each.
#[napi]
pub fn problems(settings: String) -> Vec<String> {
    read_settings(&settings).err().unwrap_or_default()
}

/// The policy of settings in which there are no [`problems`].
pub(crate) fn policy(settings: &str) -> napi::Result<Policy> {
    read_settings(settings).map_err(|problems| invalid(problems.join("; ")))
}

/// A duration, as JavaScript counts.
pub(crate) fn ms(key: &str, value: f64) -> napi::Result<Duration> {
    Duration::try_from_secs_f64(value / 1_000.0).map_err(|_| {
        invalid(format!(
            "{key} is {value}, must be milliseconds, 0 or more and finite"
        ))
    })
}

/// A duration in milliseconds.
pub(crate) fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// What was given cannot be.
pub(crate) fn invalid(what: impl ToString) -> napi::Error {
    napi::Error::new(napi::Status::InvalidArg, what.to_string())
}
