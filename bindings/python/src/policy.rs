//! Settings as Python writes them: a JSON object of the keys of configuration, checked all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline::{Policy, PolicySpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors;

/// The policy of these settings, or a `SettingsError` with every mistake.
pub(crate) fn policy(py: Python<'_>, settings: &str) -> PyResult<Policy> {
    let spec = match serde_json::from_str::<PolicySpec>(settings) {
        Ok(spec) => spec,
        Err(error) => return Err(errors::settings(py, misread(settings, &error))),
    };
    Policy::new(&spec).map_err(|error| {
        let problems = error.problems.iter().map(ToString::to_string);
        errors::settings(py, problems.collect())
    })
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

/// A duration in seconds, as Python counts.
pub(crate) fn seconds(key: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!(
            "{key} is {value}, must be seconds, 0 or more and finite"
        ))
    })
}
