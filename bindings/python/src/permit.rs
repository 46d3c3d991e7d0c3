//! `Permit`: leave to make one call, as an object that can be entered, awaited and handed around.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuseline::{Failure, Kind, Outcome, outcome};
use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::prelude::*;

use crate::policy::seconds;
use crate::verdict::Verdict;

/// Leave to make one call. It settles once; dropped, it is cancelled.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Permit {
    judge: Py<PyAny>,
    under_way: Mutex<UnderWay>,
}

struct UnderWay {
    /// None once it is settled.
    permit: Option<fuseline::Permit>,
    /// When the first item of a stream came.
    first: Option<Duration>,
}

impl Permit {
    pub(crate) const fn new(permit: fuseline::Permit, judge: Py<PyAny>) -> Self {
        let under_way = UnderWay {
            permit: Some(permit),
            first: None,
        };
        Self {
            judge,
            under_way: Mutex::new(under_way),
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The permit itself, for whoever settles it from now on.
    pub(crate) fn take(&self) -> Option<fuseline::Permit> {
        self.lock().permit.take()
    }

    fn record(&self, outcome: &Outcome) -> bool {
        let permit = self.take();
        permit.map(|permit| permit.record(outcome)).is_some()
    }

    /// How a block went: by its exception, or well.
    pub(crate) fn leave(&self, py: Python<'_>, raised: &Bound<'_, PyAny>) {
        if raised.is_none() {
            self.success();
        } else {
            self.error(py, raised);
        }
    }
}

#[pymethods]
impl Permit {
    /// The provider came through.
    fn success(&self) -> bool {
        let mut under_way = self.lock();
        let Some(permit) = under_way.permit.take() else {
            return false;
        };
        match under_way.first {
            Some(first) => permit.record(&Outcome::success(first)),
            None => permit.success(),
        };
        true
    }

    /// The provider came through after so many seconds, by the caller's own clock.
    fn success_after(&self, took: f64) -> PyResult<bool> {
        let took = seconds("took", took)?;
        Ok(self.record(&Outcome::success(took)))
    }

    /// The call failed.
    #[pyo3(signature = (kind, *, retry_after=None, open_now=false, code=None))]
    fn failure(
        &self,
        kind: &str,
        retry_after: Option<f64>,
        open_now: bool,
        code: Option<u16>,
    ) -> PyResult<bool> {
        let mut failure = Failure::new(kind_of(kind)?);
        if let Some(wait) = retry_after {
            failure = failure.retry_after(seconds("retry_after", wait)?);
        }
        if open_now {
            failure = failure.open_now();
        }
        if let Some(code) = code {
            failure = failure.code(code);
        }
        Ok(self.record(&Outcome::Failure(failure)))
    }

    /// Settles by what a verdict says of the call; the kind that is recorded.
    fn verdict(&self, verdict: &Verdict) -> Option<&'static str> {
        let permit = self.take()?;
        let outcome = outcome(&verdict.0, permit.elapsed());
        permit.record(&outcome);
        kind_in(&outcome)
    }

    /// Settles by what the breaker's judge says of an exception; the kind that is recorded.
    fn error(&self, py: Python<'_>, raised: &Bound<'_, PyAny>) -> Option<&'static str> {
        let permit = self.take()?;
        // Judged without the permit's lock: the judge is Python.
        let outcome = judged(self.judge.bind(py), raised, permit.elapsed())?;
        permit.record(&outcome);
        kind_in(&outcome)
    }

    /// Gives it back: the call says nothing.
    fn cancel(&self) -> bool {
        self.take().is_some()
    }

    /// A sign of life.
    fn progress(&self) {
        if let Some(permit) = &self.lock().permit {
            permit.progress();
        }
    }

    /// An item of a stream has come: a sign of life, and in time a probe's proof.
    fn item(&self) {
        let mut under_way = self.lock();
        let UnderWay { permit, first } = &mut *under_way;
        let Some(given) = permit else { return };
        let first = *first.get_or_insert_with(|| given.elapsed());
        if !given.is_proven(first) {
            given.progress();
        } else if let Some(permit) = permit.take() {
            permit.record(&Outcome::success(first));
        }
    }

    /// Seconds since it was given; none once it is settled.
    #[getter]
    fn elapsed(&self) -> Option<f64> {
        let under_way = self.lock();
        let permit = under_way.permit.as_ref()?;
        Some(permit.elapsed().as_secs_f64())
    }

    #[getter]
    fn is_settled(&self) -> bool {
        self.lock().permit.is_none()
    }

    #[getter]
    fn is_probe(&self) -> bool {
        let under_way = self.lock();
        under_way
            .permit
            .as_ref()
            .is_some_and(fuseline::Permit::is_probe)
    }

    /// In shadow mode, why an enforcing breaker would have refused.
    #[getter]
    fn would_reject(&self) -> Option<&'static str> {
        let under_way = self.lock();
        let refusal = under_way.permit.as_ref()?.would_reject()?;
        Some(refusal.reason.as_str())
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, raised, _trace, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> bool {
        self.leave(py, raised);
        false
    }

    fn __aenter__(slf: Py<Self>) -> Ready {
        Ready(Some(slf.into_any()))
    }

    #[pyo3(signature = (_kind, raised, _trace, /))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> Ready {
        self.leave(py, raised);
        Ready(None)
    }
}

/// Something to await that is there already.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Ready(pub(crate) Option<Py<PyAny>>);

#[pymethods]
impl Ready {
    const fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    const fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<()> {
        let value = self.0.as_ref().map(|value| value.clone_ref(py));
        Err(PyStopIteration::new_err((value,)))
    }
}

/// What an exception is for the breaker; none where it says nothing. `judge` gives nothing, a kind, or a verdict; if it fails
/// itself, that is nobody's failure.
pub(crate) fn judged(
    judge: &Bound<'_, PyAny>,
    raised: &Bound<'_, PyAny>,
    took: Duration,
) -> Option<Outcome> {
    let said = judge.call1((raised,)).and_then(|said| {
        if said.is_none() {
            return Ok(None);
        }
        if let Ok(verdict) = said.cast::<Verdict>() {
            return Ok(Some(outcome(&verdict.get().0, took)));
        }
        let kind = kind_of(said.extract::<&str>()?)?;
        Ok(Some(Outcome::failure(kind)))
    });
    match said {
        Ok(outcome) => outcome,
        Err(error) => {
            error.write_unraisable(judge.py(), Some(judge));
            None
        }
    }
}

const fn kind_in(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Failure(failure) => Some(failure.kind().as_str()),
        Outcome::Success { .. } | Outcome::Neutral => None,
    }
}

fn kind_of(name: &str) -> PyResult<Kind> {
    name.parse()
        .map_err(|error: fuseline::UnknownName| PyValueError::new_err(error.to_string()))
}
