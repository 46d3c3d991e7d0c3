//! `Request` and `Watch`: what a request asks for, and the streamed answer to it under its permit.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fuseline::classify::{
    Framing, Operation, Protocol, RequestFacts, Shape, StreamEnding, StreamTimers,
    reasoning_first_token,
};
use fuseline::{StreamError, StreamTerms};
use http::Method;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::permit::Permit;
use crate::verdict::{fault_of, limit};

/// What a request says about itself.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Request(RequestFacts);

#[pymethods]
impl Request {
    #[new]
    fn new(method: &str, path: &str, body: &[u8]) -> Self {
        let method = method.parse().unwrap_or(Method::GET);
        let protocol = Protocol::of_path(path);
        Self(RequestFacts::read(protocol, &method, path, body))
    }

    /// Whether it asks a model for an answer.
    #[getter]
    fn asks(&self) -> bool {
        self.0.operation() == Operation::Create
    }

    /// Whether it asks for a stream.
    #[getter]
    fn streams(&self) -> bool {
        self.0.shape() == Shape::Stream
    }

    #[getter]
    fn model(&self) -> Option<&str> {
        self.0.model()
    }

    /// Whether a streamed answer of this content type can be read.
    fn is_readable(&self, content_type: &str) -> bool {
        self.0.dialect().is_some() && framing(content_type).is_some()
    }
}

/// The framing of a stream; an array of JSON may as well be a plain answer.
fn framing(content_type: &str) -> Option<Framing> {
    Framing::of_content_type(content_type).filter(|framing| *framing != Framing::JsonArray)
}

/// A streamed answer under its permit.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Watch(Mutex<Option<fuseline::Watch>>);

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Option<fuseline::Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something, and gives what goes on thereupon.
    fn tell<'py>(
        &self,
        py: Python<'py>,
        what: impl FnOnce(&mut fuseline::Watch),
    ) -> Bound<'py, PyBytes> {
        match &mut *self.lock() {
            Some(watch) => {
                what(watch);
                PyBytes::new(py, &watch.forward_all())
            }
            None => PyBytes::new(py, b""),
        }
    }
}

#[pymethods]
impl Watch {
    /// Takes the permit over. Limits are in seconds; those left out are the usual ones.
    #[new]
    #[pyo3(signature = (
        permit, request, content_type, provider, *, first_token=None, stall=None, idle=None, total=None,
        min_tokens_per_second=0.0, cancel_counts_after=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "the limits, by their names")]
    fn new(
        permit: &Permit,
        request: &Request,
        content_type: &str,
        provider: &str,
        first_token: Option<f64>,
        stall: Option<f64>,
        idle: Option<f64>,
        total: Option<f64>,
        min_tokens_per_second: f64,
        cancel_counts_after: Option<f64>,
    ) -> PyResult<Self> {
        let usual = StreamTimers::default();
        let thinks = request.0.model().and_then(reasoning_first_token);
        let first = usual.first_token.max(thinks.unwrap_or_default());
        let timers = StreamTimers {
            first_token: limit("first_token", first_token, first)?,
            stall: limit("stall", stall, usual.stall)?,
            idle: limit("idle", idle, usual.idle)?,
            total: total
                .map(|total| limit("total", Some(total), Duration::ZERO))
                .transpose()?,
            min_tokens_per_second,
            cancel_counts_after: limit(
                "cancel_counts_after",
                cancel_counts_after,
                usual.cancel_counts_after,
            )?,
        };
        let (Some(dialect), Some(framing)) = (request.0.dialect(), framing(content_type)) else {
            let what = format!("a stream of {content_type} cannot be read here");
            return Err(PyValueError::new_err(what));
        };
        let Some(permit) = permit.take() else {
            return Err(PyValueError::new_err("the permit is settled already"));
        };
        let terms = StreamTerms::new(dialect).framing(framing).timers(timers);
        let terms = terms.provider(provider);
        let watch = fuseline::Watch::new(permit, terms);
        Ok(Self(Mutex::new(Some(watch))))
    }

    /// Bytes are asked for.
    fn asked(&self) {
        if let Some(watch) = &mut *self.lock() {
            watch.asked();
        }
    }

    /// A chunk has come; what goes on of it, and of those before it.
    fn chunk<'py>(&self, py: Python<'py>, chunk: &[u8]) -> Bound<'py, PyBytes> {
        self.tell(py, |watch| watch.bytes(Bytes::copy_from_slice(chunk)))
    }

    /// The body has come to its end; the last bytes that go on.
    fn end<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.tell(py, fuseline::Watch::end)
    }

    /// The connection has broken.
    fn broke<'py>(&self, py: Python<'py>, fault: &str) -> PyResult<Bound<'py, PyBytes>> {
        let fault = fault_of(fault)?;
        Ok(self.tell(py, |watch| watch.broke(fault)))
    }

    /// Nobody reads on: unless it is settled, the caller has left.
    fn close(&self) {
        let watch = self.lock().take();
        drop(watch);
    }

    #[getter]
    fn is_over(&self) -> bool {
        self.lock().as_ref().is_none_or(fuseline::Watch::is_over)
    }

    /// Seconds until a limit passes; none once the stream is over.
    fn time_left(&self) -> Option<f64> {
        let left = self.lock().as_ref()?.time_left();
        left.map(|left| left.as_secs_f64())
    }

    /// What is wrong with a stream that is over: its sentence, the name of its ending, its kind. None with a complete one.
    fn failure(&self) -> Option<(String, &'static str, &'static str)> {
        let watch = self.lock();
        let watch = watch.as_ref().filter(|watch| watch.is_over())?;
        let ending = watch.ending()?;
        if ending == StreamEnding::Complete {
            return None;
        }
        let kind = watch.kind();
        let told: StreamError<Infallible> = StreamError::Incomplete { ending, kind };
        Some((told.to_string(), ending.as_str(), kind.as_str()))
    }
}
