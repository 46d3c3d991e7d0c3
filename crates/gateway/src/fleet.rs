//! Replicas that act as one: this gateway's part in its fleet, and how it fares.
//!
//! Whatever is wrong with the fleet is said in the log, and service goes on without it.

use std::sync::Arc;

use fuseline_core::ScopeName;
use fuseline_store::{Fleet, FleetStatus};
use fuseline_telemetry::FleetState;

use crate::live::Live;
use crate::state;

/// Joins the fleet; none where none is wanted, or where its address is none.
pub(crate) fn join(live: &Arc<Live>) -> Option<Fleet> {
    let mut replica = [0; 8];
    getrandom::fill(&mut replica).ok()?;
    let proxy = live.proxy();
    let settings = proxy.config().fleet_of(u64::from_ne_bytes(replica))?;
    let live = Arc::clone(live);
    let shares = move |name: &ScopeName| state::policy(live.proxy().config(), name);
    Fleet::join(proxy.registry(), &settings, shares)
        .inspect_err(|error| {
            tracing::warn!(key = "fleet", %error, "this replica decides by itself; calls are served as ever");
        })
        .ok()
}

/// How the fleet fares, for the metrics page.
#[derive(Default)]
pub(crate) struct Gauge {
    is_wanted: bool,
    /// None where it was not joined.
    status: Option<FleetStatus>,
}

impl Gauge {
    pub(crate) fn new(is_wanted: bool, fleet: Option<&Fleet>) -> Self {
        let status = fleet.map(Fleet::status);
        Self { is_wanted, status }
    }

    /// The breakers that any replica has trouble with.
    pub(crate) fn troubled(&self) -> Vec<ScopeName> {
        let status = self.status.as_ref();
        status.map_or_else(Vec::new, FleetStatus::troubled)
    }

    /// None where no fleet is wanted.
    pub(crate) fn read(&self) -> Option<FleetState> {
        let Some(status) = &self.status else {
            return self.is_wanted.then_some(FleetState {
                is_degraded: true,
                ..FleetState::default()
            });
        };
        let health = status.health();
        Some(FleetState {
            is_degraded: health.is_degraded,
            replicas: health.replicas,
            turns: health.turns,
            failures: health.failures,
            resets: health.resets,
        })
    }
}
