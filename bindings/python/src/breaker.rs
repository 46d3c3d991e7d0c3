//! `Breaker`: what Python's breakers are made of. Hot path: a guarded call holds its permit on the stack, and makes no
//! object of it.

use std::time::Duration;

use fuseline::{CircuitOpen, ScopeName};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::clock::Clock;
use crate::entered::Entered;
use crate::errors;
use crate::permit::{Permit, Ready, judged};
use crate::policy::{policy, seconds};
use crate::view;

/// A breaker without a judge: what a registry gives.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Handle(pub(crate) fuseline::Breaker);

#[pymethods]
impl Handle {
    /// A breaker of its own.
    #[new]
    #[pyo3(signature = (name, model, settings, clock))]
    fn new(
        py: Python<'_>,
        name: &str,
        model: Option<&str>,
        settings: &str,
        clock: Option<&Bound<'_, Clock>>,
    ) -> PyResult<Self> {
        let policy = policy(py, settings)?;
        let name = scope_name(name, model);
        Ok(Self(match clock {
            Some(clock) => fuseline::Breaker::with_clock(name, policy, clock.get().0.clone()),
            None => fuseline::Breaker::new(name, policy),
        }))
    }
}

/// The name of a provider, or of one of its models.
pub(crate) fn scope_name(name: &str, model: Option<&str>) -> ScopeName {
    match model {
        Some(model) => ScopeName::model(name, model),
        None => ScopeName::provider(name),
    }
}

/// A breaker with its judge: a callable that says of an exception what it is.
#[pyclass(frozen, subclass, module = "fuseline._native")]
pub(crate) struct Breaker {
    inner: fuseline::Breaker,
    judge: Py<PyAny>,
    entered: Entered,
}

impl Breaker {
    fn enter(&self, py: Python<'_>, limit: Duration) -> PyResult<fuseline::Permit> {
        let permit = self.inner.try_acquire_within(limit);
        let permit = permit.map_err(|rejection| self.refused(py, rejection))?;
        Ok(permit.into_owned())
    }

    #[cold]
    fn refused(&self, py: Python<'_>, rejection: fuseline::Rejection) -> PyErr {
        errors::circuit_open(py, &CircuitOpen::new(self.inner.name(), rejection))
    }

    fn permit(&self, py: Python<'_>, permit: fuseline::Permit) -> PyResult<Py<Permit>> {
        Py::new(py, Permit::new(permit, self.judge.clone_ref(py)))
    }

    fn leave(&self, py: Python<'_>, raised: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(permit) = self.entered.pop(py)? {
            permit.get().leave(py, raised);
        }
        Ok(())
    }
}

#[pymethods]
impl Breaker {
    #[new]
    fn new(handle: &Bound<'_, Handle>, judge: Py<PyAny>) -> Self {
        Self {
            inner: handle.get().0.clone(),
            judge,
            entered: Entered::default(),
        }
    }

    /// Calls a function under a permit. What it returns settles it, or, where that is a coroutine or a generator, how that
    /// ends: `_finish` drives it.
    #[pyo3(signature = (function, /, *args, **kwargs))]
    fn call<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let permit = this.inner.try_acquire();
        let permit = permit.map_err(|rejection| this.refused(py, rejection))?;
        match function.call(args, kwargs) {
            Ok(result) if goes_on(&result)? => {
                let permit = this.permit(py, permit.into_owned())?;
                slf.call_method1(pyo3::intern!(py, "_finish"), (permit, result))
            }
            Ok(result) => {
                permit.success();
                Ok(result)
            }
            Err(error) => {
                let raised = error.value(py).as_any();
                if let Some(outcome) = judged(this.judge.bind(py), raised, permit.elapsed()) {
                    permit.record(&outcome);
                }
                Err(error)
            }
        }
    }

    /// Asks for leave to make one call, which is given up after so many seconds.
    #[pyo3(signature = (within=0.0))]
    fn acquire(&self, py: Python<'_>, within: f64) -> PyResult<Py<Permit>> {
        let permit = self.enter(py, seconds("within", within)?)?;
        self.permit(py, permit)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Permit>> {
        let permit = self.enter(py, Duration::ZERO)?;
        let permit = self.permit(py, permit)?;
        self.entered.push(py, permit.clone_ref(py))?;
        Ok(permit)
    }

    #[pyo3(signature = (_kind, raised, _trace, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.leave(py, raised)?;
        Ok(false)
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Ready> {
        Ok(Ready(Some(self.__enter__(py)?.into_any())))
    }

    #[pyo3(signature = (_kind, raised, _trace, /))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<Ready> {
        self.leave(py, raised)?;
        Ok(Ready(None))
    }

    #[getter]
    fn name(&self) -> String {
        self.inner.name().to_string()
    }

    #[getter]
    fn scope(&self) -> &'static str {
        self.inner.name().scope().as_str()
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.inner.state().as_str()
    }

    fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    #[getter]
    fn retry_after(&self) -> Option<f64> {
        let wait = self.inner.snapshot().retry_after;
        wait.map(|wait| wait.as_secs_f64())
    }

    /// The present by its clock, in seconds.
    fn now(&self) -> f64 {
        view::at(self.inner.now())
    }

    /// What there is to see, as a dictionary.
    fn _snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        view::snapshot(py, &self.inner.snapshot())
    }

    /// Transitions after a number, as dictionaries.
    fn _history<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let history = self.inner.history(after);
        history
            .iter()
            .map(|transition| view::transition(py, transition))
            .collect()
    }

    fn _force_open(&self, lasting: Option<f64>) -> PyResult<()> {
        let lasting = lasting.map(|wait| seconds("lasting", wait)).transpose()?;
        self.inner.force_open(lasting);
        Ok(())
    }

    fn _force_closed(&self, lasting: Option<f64>) -> PyResult<()> {
        let lasting = lasting.map(|wait| seconds("lasting", wait)).transpose()?;
        self.inner.force_closed(lasting);
        Ok(())
    }

    /// Ends a forced state.
    fn release(&self) {
        self.inner.release();
    }

    /// A fresh `closed`.
    fn reset(&self) {
        self.inner.reset();
    }

    fn _reconfigure(&self, py: Python<'_>, settings: &str) -> PyResult<()> {
        self.inner.reconfigure(policy(py, settings)?);
        Ok(())
    }
}

/// Whether a result has only begun: a coroutine, or a generator of either sort.
fn goes_on(result: &Bound<'_, PyAny>) -> PyResult<bool> {
    static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static GENERATOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ASYNC_GENERATOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (py, class) = (result.py(), result.get_type());
    Ok(class.is(COROUTINE.import(py, "types", "CoroutineType")?)
        || class.is(GENERATOR.import(py, "types", "GeneratorType")?)
        || class.is(ASYNC_GENERATOR.import(py, "types", "AsyncGeneratorType")?))
}
