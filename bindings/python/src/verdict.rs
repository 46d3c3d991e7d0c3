//! `Verdict` and `classify`: what an answer means, by the same rules as everywhere.

use std::time::{Duration, SystemTime};

use fuseline::UnknownName;
use fuseline::classify::Fault;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::policy::seconds;

/// How an attempt went.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Verdict(pub(crate) fuseline::classify::Verdict);

#[pymethods]
impl Verdict {
    /// What went wrong; none is a success.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.0.kind.map(|kind| kind.as_str())
    }

    #[getter]
    const fn is_success(&self) -> bool {
        self.0.is_success()
    }

    #[getter]
    const fn scope(&self) -> &'static str {
        self.0.scope.as_str()
    }

    #[getter]
    const fn provider_fault(&self) -> bool {
        self.0.provider_fault
    }

    #[getter]
    const fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// The provider's wait hint, in seconds.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.0.retry_after.map(|wait| wait.as_secs_f64())
    }

    #[getter]
    fn evidence(&self) -> String {
        self.0.evidence.to_string()
    }

    fn __repr__(&self) -> String {
        let kind = self.kind().unwrap_or("success");
        format!("<Verdict {kind}: {}>", self.0.evidence)
    }
}

/// The verdict on an exchange as far as it came.
#[pyfunction]
#[pyo3(signature = (provider, status, headers, body, events, fault, has_left, asks, at))]
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of an exchange, each of which Python may leave out"
)]
pub(crate) fn classify(
    provider: &str,
    status: Option<u16>,
    headers: Vec<(PyBackedStr, PyBackedStr)>,
    body: Option<&[u8]>,
    events: Option<Vec<(PyBackedStr, PyBackedStr)>>,
    fault: Option<&str>,
    has_left: bool,
    asks: bool,
    at: Option<f64>,
) -> PyResult<Verdict> {
    let headers = texts(&headers);
    let events = events.as_deref().map(texts);
    let at = at.map(|at| seconds("at", at)).transpose()?;
    let exchange = fuseline::Exchange {
        provider,
        asks,
        status,
        headers: &headers,
        body,
        events: events.as_deref(),
        fault: fault.map(fault_of).transpose()?,
        has_left,
    };
    let verdict = exchange.verdict(at.map(|at| SystemTime::UNIX_EPOCH + at));
    Ok(Verdict(verdict))
}

fn texts(pairs: &[(PyBackedStr, PyBackedStr)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect()
}

pub(crate) fn fault_of(name: &str) -> PyResult<Fault> {
    name.parse()
        .map_err(|error: UnknownName| PyValueError::new_err(error.to_string()))
}

/// A duration, where one is given.
pub(crate) fn limit(key: &str, given: Option<f64>, usual: Duration) -> PyResult<Duration> {
    given.map_or(Ok(usual), |given| seconds(key, given))
}
