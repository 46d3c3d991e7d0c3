//! `FleetState`: how a fleet fares, on the metrics page.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

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

impl Collector for FleetState {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (counter, value) in [
            (names::FLEET_TURNS, self.turns),
            (names::FLEET_FAILURES, self.failures),
            (names::FLEET_RESETS, self.resets),
        ] {
            let metric =
                encoder.encode_descriptor(counter.name, counter.help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        let degraded = i64::from(self.is_degraded);
        let replicas = i64::try_from(self.replicas).unwrap_or(i64::MAX);
        for (name, help, value) in [
            (names::FLEET_DEGRADED, names::FLEET_DEGRADED_HELP, degraded),
            (names::FLEET_REPLICAS, names::FLEET_REPLICAS_HELP, replicas),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
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
