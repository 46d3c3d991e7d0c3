//! `Keeper`: state that outlives the process, and the fleet: the same store and the same protocol as the gateway's.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fuseline::{Policy, Scope};
use fuseline_store::{Fleet, FleetConfig, FleetStatus, Moment, Pump, Sqlite, Store as _};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::registry::Registry;

/// A state that nobody has used for so long is not restored: whoever it was about, it is another day.
const MAX_UNUSED_MS: u64 = 24 * 3_600 * 1_000;

/// What carries a registry's breakers elsewhere, from threads of its own.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Keeper {
    pump: Mutex<Option<Pump>>,
    fleet: Mutex<Option<Fleet>>,
    status: Option<FleetStatus>,
}

#[pymethods]
impl Keeper {
    /// Restores breakers from a file and keeps them there, joins a fleet, or both. What is restored or learned runs by the
    /// default settings until somebody asks for it with others.
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
        let pump = state.map(|path| py.detach(|| keep(registry, Path::new(&path))));
        let pump = pump.transpose().map_err(PyOSError::new_err)?;
        let fleet = fleet.map(|url| {
            let config = FleetConfig {
                url,
                authorities,
                prefix,
                replica,
            };
            // Keys are known by their place in a configuration, which nobody else has.
            Fleet::join(registry, &config, |name| {
                (name.scope() != Scope::Key).then(Policy::default)
            })
        });
        let fleet = fleet
            .transpose()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self {
            status: fleet.as_ref().map(Fleet::status),
            pump: Mutex::new(pump),
            fleet: Mutex::new(fleet),
        })
    }

    /// Whether the fleet is out of reach, and how many replicas there are; none without a fleet.
    fn health(&self) -> Option<(bool, u64)> {
        let health = self.status.as_ref()?.health();
        Some((health.is_degraded, health.replicas))
    }

    /// Writes what is left and leaves the fleet; waits for both.
    fn close(&self, py: Python<'_>) {
        let take =
            |held: &Mutex<Option<Pump>>| held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let pump = take(&self.pump);
        let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        let fleet = fleet.take();
        py.detach(|| {
            if let Some(pump) = pump {
                pump.stop();
            }
            if let Some(fleet) = fleet {
                fleet.leave();
            }
        });
    }
}

/// Restores what the file holds, and starts to keep.
fn keep(registry: &fuseline_core::Registry, path: &Path) -> Result<Pump, String> {
    let failed = |error: &dyn std::fmt::Display| format!("state is {}: {error}", path.display());
    let mut store = Sqlite::open(path).map_err(|error| failed(&error))?;
    let records = store.load().map_err(|error| failed(&error))?;
    let now = Moment::read(registry.clock());
    for record in &records {
        if record.unused_for(&now) <= MAX_UNUSED_MS {
            // Where there is no room the rest begins closed.
            let _ = registry.restore(&record.saved(&now), &Policy::default(), now.tick);
        }
    }
    Pump::start(registry, Box::new(store)).map_err(|error| failed(&error))
}
