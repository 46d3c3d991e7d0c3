//! What the breakers did during a drill.

use std::collections::BTreeMap;

use fuseline_core::{Registry, State, Tick};
use serde::Serialize;

/// A change of state.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    pub(super) at_ms: u64,
    pub(super) from: State,
    pub(super) to: State,
    pub(super) why: String,
}

/// Reads the histories of all breakers.
pub(super) struct Watch {
    registry: Registry,
    /// When the drill began.
    began: Tick,
    told: BTreeMap<String, u64>,
    /// By breaker.
    pub(super) changes: BTreeMap<String, Vec<Change>>,
}

impl Watch {
    pub(super) fn new(registry: Registry) -> Self {
        Self {
            began: registry.now(),
            registry,
            told: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Takes note of what is new.
    pub(super) fn look(&mut self) {
        for breaker in self.registry.breakers() {
            let name = breaker.name().to_string();
            let told = self.told.entry(name.clone()).or_default();
            for change in breaker.history(*told) {
                *told = change.number;
                self.changes.entry(name.clone()).or_default().push(Change {
                    at_ms: millis(change.at, self.began),
                    from: change.from,
                    to: change.to,
                    why: change.why.to_string(),
                });
            }
        }
    }

    /// Whether no circuit is open or half-open.
    pub(super) fn is_calm(&self) -> bool {
        let now = self.registry.now();
        let breakers = self.registry.breakers();
        let mut states = breakers.into_iter().map(|breaker| breaker.state(now));
        states.all(|state| matches!(state, State::Closed | State::Degraded))
    }
}

fn millis(at: Tick, began: Tick) -> u64 {
    u64::try_from(at.since(began).as_millis()).unwrap_or(u64::MAX)
}
