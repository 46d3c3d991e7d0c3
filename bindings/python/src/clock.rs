//! `Clock`: where breakers have their time from; tests move one by hand.

use std::time::Duration;

use pyo3::prelude::*;

use crate::policy::seconds;

/// The system's monotonic clock, or one that stands until it is moved.
#[pyclass(frozen, module = "fuseline._native")]
#[derive(Clone, Debug)]
pub(crate) struct Clock(pub(crate) fuseline::Clock);

#[pymethods]
impl Clock {
    #[staticmethod]
    fn system() -> Self {
        Self(fuseline::Clock::system())
    }

    #[staticmethod]
    fn manual() -> Self {
        Self(fuseline::Clock::manual())
    }

    /// Moves a manual clock.
    fn advance(&self, by: f64) -> PyResult<()> {
        self.0.advance(seconds("by", by)?);
        Ok(())
    }

    /// Seconds since its origin.
    fn now(&self) -> f64 {
        Duration::from_millis(self.0.now().as_millis()).as_secs_f64()
    }
}
