//! `Keeper`: state that outlives the process, and the fleet: the same store and the same protocol as the gateway's.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::path::Path;

use fuseline_store::FleetConfig;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::policy::invalid;
use crate::registry::Registry;

/// What carries a registry's breakers elsewhere, from threads of its own.
#[napi]
#[derive(Debug)]
pub struct Keeper(RefCell<Option<fuseline_store::Keeper>>);

/// Where a fleet meets.
#[napi(object, object_to_js = false)]
pub struct Meeting {
    /// The address of a Redis: a secret.
    pub url: String,
    /// Certificates in PEM.
    pub authorities: Option<Uint8Array>,
    /// What every key begins with.
    pub prefix: String,
    /// Tells this replica from all others.
    pub replica: f64,
}

// The address may hold a password.
impl std::fmt::Debug for Meeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meeting")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// How a fleet fares.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Health {
    /// Whether each replica decides by itself.
    pub is_degraded: bool,
    /// Those that were there at the last exchange.
    pub replicas: u32,
}

#[napi]
impl Keeper {
    /// Restores breakers from a file and keeps them there, joins a fleet, or both.
    #[napi(constructor)]
    pub fn new(
        registry: &Registry,
        state: Option<String>,
        fleet: Option<Meeting>,
    ) -> napi::Result<Self> {
        let registry: &fuseline_core::Registry = registry.inner.borrow();
        let state = state.as_deref().map(Path::new);
        let fleet = fleet.map(|meeting| FleetConfig {
            url: meeting.url,
            authorities: meeting.authorities.map(|pem| pem.to_vec()),
            prefix: meeting.prefix,
            replica: meeting.replica as u64,
        });
        let keeper = fuseline_store::Keeper::start(registry, state, fleet.as_ref());
        Ok(Self(RefCell::new(Some(keeper.map_err(invalid)?))))
    }

    /// How the fleet fares; none without one, or once it is closed.
    #[napi]
    pub fn health(&self) -> Option<Health> {
        let health = self.0.borrow().as_ref()?.health()?;
        Some(Health {
            is_degraded: health.is_degraded,
            replicas: u32::try_from(health.replicas).unwrap_or(u32::MAX),
        })
    }

    /// Writes what is left and leaves the fleet; waits for both.
    #[napi]
    pub fn close(&self) {
        let keeper = self.0.borrow_mut().take();
        if let Some(keeper) = keeper {
            keeper.stop();
        }
    }
}
