//! `FleetState`: how a fleet fares, on the metrics page.

use crate::family::Family;
use crate::names;

/// How the fleet fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct FleetState {
    /// Whether this replica decides by itself.
    pub is_degraded: bool,
    /// Replicas at the last exchange.
    pub replicas: u64,
    /// Exchanges tried.
    pub turns: u64,
    /// Exchanges that failed.
    pub failures: u64,
    /// Breakers whose state had to be told again.
    pub resets: u64,
}

impl FleetState {
    pub(crate) fn families(&self) -> Vec<Family> {
        let counters = [
            (names::FLEET_TURNS, self.turns),
            (names::FLEET_FAILURES, self.failures),
            (names::FLEET_RESETS, self.resets),
        ];
        let gauges = [
            (names::FLEET_DEGRADED, u64::from(self.is_degraded)),
            (names::FLEET_REPLICAS, self.replicas),
        ];
        Family::numbers(counters, gauges)
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::Registry;

    use super::*;
    use crate::{Catalogue, Metrics};

    #[test]
    fn how_the_fleet_fares_is_on_the_page_where_there_is_one() {
        let metrics = Metrics::new(&Registry::default(), Catalogue::default());
        let page = |fleet| metrics.page(None, fleet, None).unwrap();
        assert!(!page(None).contains("fleet_"));
        let fleet = FleetState {
            is_degraded: true,
            replicas: 3,
            turns: 9,
            failures: 4,
            resets: 1,
        };
        let page = page(Some(fleet));
        for line in [
            "fleet_degraded 1",
            "fleet_replicas 3",
            "fleet_exchanges_total 9",
            "fleet_failures_total 4",
            "fleet_state_reset_total 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}
