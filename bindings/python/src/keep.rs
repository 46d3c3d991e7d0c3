//! `Keeper`: state that outlives the process, and the fleet: the same store and the same protocol as the gateway's.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fuseline_store::{FleetConfig, KeeperError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::registry::Registry;

/// What carries a registry's breakers elsewhere, from threads of its own.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Keeper(Mutex<Option<fuseline_store::Keeper>>);

#[pymethods]
impl Keeper {
    /// Restores breakers from a file and keeps them there, joins a fleet, or both.
    #[new]
    #[pyo3(signature = (registry, state, fleet, authorities, prefix, replica))]
    fn new(
        py: Python<'_>,
        registry: &Registry,
        state: Option<String>,
        fleet: Option<String>,
        authorities: Option<Vec<u8>>,
        prefix: String,
        replica: u64,
    ) -> PyResult<Self> {
        let registry: &fuseline_core::Registry = registry.0.borrow();
        let state = state.as_deref().map(Path::new);
        let fleet = fleet.map(|url| FleetConfig {
            url,
            authorities,
            prefix,
            replica,
        });
        let keeper = py.detach(|| fuseline_store::Keeper::start(registry, state, fleet.as_ref()));
        match keeper {
            Ok(keeper) => Ok(Self(Mutex::new(Some(keeper)))),
            Err(error @ KeeperError::Fleet(_)) => Err(PyValueError::new_err(error.to_string())),
            Err(error) => Err(PyOSError::new_err(error.to_string())),
        }
    }

    /// Whether the fleet is out of reach, and how many replicas there are; none without a fleet, or once it is closed.
    fn health(&self) -> Option<(bool, u64)> {
        let keeper = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let health = keeper.as_ref()?.health()?;
        Some((health.is_degraded, health.replicas))
    }

    /// Writes what is left and leaves the fleet; waits for both.
    fn close(&self, py: Python<'_>) {
        let keeper = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            py.detach(|| keeper.stop());
        }
    }
}
