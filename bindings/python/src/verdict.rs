//! `Verdict` and `classify`: what an answer means, by the same rules as everywhere.

use std::time::{Duration, SystemTime};

use fuseline::classify::{
    Answer, Body, Classifier, Ending, Event, Fault, Head, Operation, Transcript,
};
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
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let headers = headers.as_slice();
    let transcript = events.map(|events| {
        let mut transcript = Transcript::default();
        for (name, data) in &events {
            transcript.note(&Event { name, data });
        }
        transcript
    });
    let answer = Answer {
        provider,
        operation: operation(asks),
        head: status.map(|status| Head::new(status, &headers)),
        body: match (&transcript, body) {
            (Some(transcript), _) => Body::Stream(transcript),
            (None, Some(body)) => Body::Whole(body),
            (None, None) => Body::Unread,
        },
        ending: match fault {
            _ if has_left => Ending::Left,
            Some(fault) => Ending::Broken(fault_of(fault)?),
            None => Ending::Complete,
        },
    };
    let wall = match at {
        Some(at) => SystemTime::UNIX_EPOCH + seconds("at", at)?,
        None => wall(),
    };
    Ok(Verdict(Classifier::builtin().classify(&answer, wall)))
}

const fn operation(asks: bool) -> Operation {
    if asks {
        Operation::Create
    } else {
        Operation::Other
    }
}

/// What time it is, for hints that are dates.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
fn wall() -> SystemTime {
    SystemTime::now()
}

/// Every fault, by the name that it has in logs.
const FAULTS: [Fault; 9] = [
    Fault::Dns,
    Fault::Refused,
    Fault::Tls,
    Fault::ConnectTimeout,
    Fault::Stale,
    Fault::NotProcessed,
    Fault::Reset,
    Fault::Deadline,
    Fault::Stall,
];

pub(crate) fn fault_of(name: &str) -> PyResult<Fault> {
    let fault = FAULTS.into_iter().find(|fault| fault.as_str() == name);
    fault.ok_or_else(|| {
        let names = FAULTS.map(Fault::as_str).join(", ");
        PyValueError::new_err(format!("fault is `{name}`, must be one of {names}"))
    })
}

/// A duration, where one is given.
pub(crate) fn limit(key: &str, given: Option<f64>, usual: Duration) -> PyResult<Duration> {
    given.map_or(Ok(usual), |given| seconds(key, given))
}
