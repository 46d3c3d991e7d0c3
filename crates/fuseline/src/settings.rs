//! Settings as a text: a JSON object of the keys of configuration, checked all at once.

use std::collections::BTreeMap;

use fuseline_core::{Policy, PolicySpec};
use serde_json::Value;

/// The policy of settings that are written as JSON, by the keys of configuration, durations as `"30s"`.
///
/// ```
/// let policy = fuseline::read_settings(r#"{"preset": "vernllm", "cooldown": "20s"}"#);
/// assert!(policy.is_ok());
/// let problems = fuseline::read_settings(r#"{"jitter": 2, "probes": 0}"#).expect_err("two mistakes");
/// assert_eq!(problems, ["jitter is 2, must be 0 to 1", "probes is 0, must be 1 to 64"]);
/// ```
///
/// # Errors
/// Every mistake, a sentence each: the key, the value, and what is allowed.
pub fn read_settings(settings: &str) -> Result<Policy, Vec<String>> {
    let spec: PolicySpec =
        serde_json::from_str(settings).map_err(|whole| misread(settings, &whole))?;
    Policy::new(&spec).map_err(|error| error.problems.iter().map(ToString::to_string).collect())
}

/// Which keys cannot be read: each is tried by itself.
fn misread(settings: &str, whole: &serde_json::Error) -> Vec<String> {
    let keys: BTreeMap<String, Value> = serde_json::from_str(settings).unwrap_or_default();
    let mut problems = Vec::new();
    for (key, value) in keys {
        let told = format!("{key} is {value}");
        let alone = Value::Object([(key, value)].into_iter().collect());
        if let Err(error) = serde_json::from_value::<PolicySpec>(alone) {
            problems.push(format!("{told}: {error}"));
        }
    }
    if problems.is_empty() {
        problems.push(whole.to_string());
    }
    problems
}
