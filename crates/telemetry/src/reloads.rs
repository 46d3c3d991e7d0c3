//! `Reloads`: how often the configuration was read anew, and what came of it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::names;

/// What came of reading the configuration anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum Reload {
    /// It is in force.
    Applied,
    /// It is not, and nothing has changed.
    Refused,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    applied: AtomicU64,
    refused: AtomicU64,
    is_refused: AtomicBool,
}

impl Reloads {
    pub(crate) fn note(&self, came_to: Reload) {
        let count = match came_to {
            Reload::Applied => &self.applied,
            Reload::Refused => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let is_refused = came_to == Reload::Refused;
        self.is_refused.store(is_refused, Ordering::Relaxed);
    }
}

impl Collector for Reloads {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counter = names::RELOADS;
        let mut family =
            encoder.encode_descriptor(counter.name, counter.help, None, MetricType::Counter)?;
        for (outcome, count) in [("applied", &self.applied), ("refused", &self.refused)] {
            let labels = [(names::OUTCOME_LABEL, outcome)];
            let count = ConstCounter::new(count.load(Ordering::Relaxed));
            count.encode(family.encode_family(&labels)?)?;
        }
        let (name, help) = (names::RELOADED, names::RELOADED_HELP);
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let is_good = !self.is_refused.load(Ordering::Relaxed);
        ConstGauge::new(i64::from(is_good)).encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::Registry;

    use super::*;
    use crate::{Catalogue, Metrics};

    #[test]
    fn the_last_one_tells_whether_what_is_written_is_in_force() {
        let metrics = Metrics::new(&Registry::default(), Catalogue::default());
        let seen = || {
            let page = metrics.page(None, None).unwrap();
            let value = |name: &str| {
                let lines = page.lines().find_map(|line| line.strip_prefix(name));
                lines.unwrap().trim().parse::<u64>().unwrap()
            };
            (
                value(r#"config_reloads_total{outcome="applied"}"#),
                value(r#"config_reloads_total{outcome="refused"}"#),
                value("config_last_reload_successful"),
            )
        };
        assert_eq!(seen(), (0, 0, 1));
        metrics.reload(Reload::Refused);
        assert_eq!(seen(), (0, 1, 0));
        metrics.reload(Reload::Applied);
        assert_eq!(seen(), (1, 1, 1));
    }
}
