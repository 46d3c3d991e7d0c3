//! Settings as a JSON object of the keys of configuration, checked all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline::{Policy, PolicySpec};
use napi_derive::napi;
use serde_json::Value;

/// Everything that is wrong with these settings, a sentence each.
#[napi]
pub fn problems(settings: String) -> Vec<String> {
    let spec = match serde_json::from_str::<PolicySpec>(&settings) {
        Ok(spec) => spec,
        Err(error) => return misread(&settings, &error),
    };
    match Policy::new(&spec) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

/// The policy of settings in which there are no [`problems`].
pub(crate) fn policy(settings: &str) -> napi::Result<Policy> {
    let spec: PolicySpec = serde_json::from_str(settings).map_err(invalid)?;
    Policy::new(&spec).map_err(invalid)
}

/// Which keys cannot be read: each is tried by itself.
fn misread(settings: &str, whole: &serde_json::Error) -> Vec<String> {
    let keys: BTreeMap<String, Value> = serde_json::from_str(settings).unwrap_or_default();
    let mut problems = Vec::new();
    for (key, value) in keys {
        let alone = Value::Object([(key.clone(), value.clone())].into_iter().collect());
        if let Err(error) = serde_json::from_value::<PolicySpec>(alone) {
            problems.push(format!("{key} is {value}: {error}"));
        }
    }
    if problems.is_empty() {
        problems.push(whole.to_string());
    }
    problems
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
