//! The exceptions of `fuseline._errors`, raised from here.

use fuseline::{CircuitOpen, RegistryError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

const MODULE: &str = "fuseline._errors";

/// The breaker refused.
#[cold]
pub(crate) fn circuit_open(py: Python<'_>, refused: &CircuitOpen) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let arguments = (
        refused.to_string(),
        refused.name.to_string(),
        refused.scope.as_str(),
        refused.reason.as_str(),
        refused.retry_after.as_secs_f64(),
    );
    match CLASS.import(py, MODULE, "CircuitOpenError") {
        Ok(class) => match class.call1(arguments) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// Settings that cannot work, each mistake in a sentence.
pub(crate) fn settings(py: Python<'_>, problems: Vec<String>) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, MODULE, "SettingsError") {
        Ok(class) => PyErr::from_type(class.clone(), (problems,)),
        Err(error) => error,
    }
}

/// A breaker cannot be had.
pub(crate) fn registry(py: Python<'_>, refused: &RegistryError) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let is_taken = matches!(refused, RegistryError::OtherSettings(_));
    match CLASS.import(py, MODULE, "RegistryError") {
        Ok(class) => PyErr::from_type(class.clone(), (refused.to_string(), is_taken)),
        Err(error) => error,
    }
}
