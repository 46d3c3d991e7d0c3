//! `Registry` and `Events`: breakers by name, and what happened to them.

use std::sync::{Mutex, PoisonError};

use fuseline::RegistryConfig;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::breaker::{Handle, scope_name};
use crate::clock::Clock;
use crate::errors;
use crate::policy::policy;
use crate::view;

/// Breakers by name, bounded.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Registry(pub(crate) fuseline::Registry);

#[pymethods]
impl Registry {
    #[new]
    #[pyo3(signature = (max_breakers, clock))]
    fn new(max_breakers: usize, clock: Option<&Bound<'_, Clock>>) -> Self {
        let usual = RegistryConfig::default();
        let clock = clock.map_or(usual.clock, |clock| clock.get().0.clone());
        Self(fuseline::Registry::new(RegistryConfig {
            max_breakers,
            clock,
            ..RegistryConfig::default()
        }))
    }

    fn get(
        &self,
        py: Python<'_>,
        name: &str,
        model: Option<&str>,
        settings: &str,
    ) -> PyResult<Handle> {
        let policy = policy(py, settings)?;
        let breaker = self.0.get_breaker(scope_name(name, model), &policy);
        breaker
            .map(Handle)
            .map_err(|refused| errors::registry(py, &refused))
    }

    fn find(&self, name: &str, model: Option<&str>) -> Option<Handle> {
        self.0.find_breaker(scope_name(name, model)).map(Handle)
    }

    /// Of each breaker the provider and the model.
    fn names(&self) -> Vec<(String, Option<String>)> {
        let all = self.0.breakers();
        all.iter()
            .map(|breaker| {
                let name = breaker.name();
                let part = name.part().map(ToOwned::to_owned);
                (name.provider_name().to_owned(), part)
            })
            .collect()
    }

    fn remove(&self, name: &str, model: Option<&str>) {
        self.0.remove(scope_name(name, model));
    }

    fn events(&self) -> Events {
        Events(Mutex::new(self.0.events()))
    }
}

/// A reader of all breakers' transitions.
#[pyclass(frozen, module = "fuseline._native")]
pub(crate) struct Events(Mutex<fuseline::Events>);

#[pymethods]
impl Events {
    /// Everything since the last time: names, transitions as dictionaries, and how many were missed before each.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyDict>, u64)>> {
        let events = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain();
        events
            .iter()
            .map(|event| {
                let transition = view::transition(py, &event.transition)?;
                Ok((event.name.to_string(), transition, event.missed))
            })
            .collect()
    }
}
