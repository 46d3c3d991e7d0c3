//! Settings as Python writes them: a JSON object of the keys of configuration; and durations.

use std::time::Duration;

use fuseline::{Policy, read_settings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// The policy of these settings, or a `SettingsError` with every mistake.
pub(crate) fn policy(py: Python<'_>, settings: &str) -> PyResult<Policy> {
    read_settings(settings).map_err(|problems| errors::settings(py, problems))
}

/// A duration in seconds, as Python counts.
pub(crate) fn seconds(key: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!(
            "{key} is {value}, must be seconds, 0 or more and finite"
        ))
    })
}
