//! The Prometheus page: breaker metrics, read from snapshots at scrape time.

use std::collections::BTreeMap;
use std::fmt;

use fuseline_core::{Reason, Registry, Scope, Snapshot, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::names::{self, Counter};

/// The content type of the page.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How the keeping of breaker states fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct KeptState {
    /// Transitions written.
    pub stored: u64,
    /// Transitions that came faster than they could be written.
    pub dropped: u64,
    /// Batches that were not taken.
    pub failures: u64,
    /// Whether states cannot be kept at present.
    pub is_failing: bool,
}

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

/// The metrics of all breakers, as a scraper reads them; with those of what is kept and of the fleet, where there is such.
///
/// # Errors
/// Never in practice: writing into a string does not fail.
pub fn metrics_page(
    registry: &Registry,
    kept: Option<KeptState>,
    fleet: Option<FleetState>,
) -> Result<String, fmt::Error> {
    let mut page = String::new();
    let mut metrics = prometheus_client::registry::Registry::default();
    metrics.register_collector(Box::new(Breakers(registry.clone())));
    if let Some(kept) = kept {
        metrics.register_collector(Box::new(kept));
    }
    if let Some(fleet) = fleet {
        metrics.register_collector(Box::new(fleet));
    }
    encode(&mut page, &metrics)?;
    Ok(page)
}

impl Collector for KeptState {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (counter, value) in [
            (names::STORED, self.stored),
            (names::DROPPED, self.dropped),
            (names::FAILURES, self.failures),
        ] {
            let metric =
                encoder.encode_descriptor(counter.name, counter.help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        let (name, help) = (names::FAILING, names::FAILING_HELP);
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(self.is_failing)).encode(metric)
    }
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

#[derive(Debug)]
struct Breakers(Registry);

/// What the breakers of one label set have counted together.
#[derive(Default)]
struct Sum {
    entered: [u64; State::ALL.len()],
    rejected: BTreeMap<Reason, u64>,
    late: u64,
    /// States that any of them is in.
    states: Vec<State>,
}

/// Scope, provider, model.
type Labels = (Scope, String, String);

impl Collector for Breakers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = self.0.now();
        let mut sums = BTreeMap::<Labels, Sum>::new();
        for breaker in self.0.breakers() {
            let snapshot = breaker.snapshot(now);
            sums.entry(labels(&snapshot)).or_default().add(&snapshot);
        }
        for (counter, state) in [
            (names::OPENED, State::Open),
            (names::HALF_OPEN, State::HalfOpen),
            (names::CLOSED, State::Closed),
            (names::DEGRADED, State::Degraded),
        ] {
            let value = |sum: &Sum| vec![(None, sum.entered(state))];
            counters(&mut encoder, &counter, &sums, value)?;
        }
        let rejected = |sum: &Sum| {
            let label = |reason: Reason| Some((names::REASON_LABEL, reason.as_str()));
            sum.rejected
                .iter()
                .map(|(reason, count)| (label(*reason), *count))
                .collect()
        };
        counters(&mut encoder, &names::REJECTED, &sums, rejected)?;
        counters(&mut encoder, &names::LATE, &sums, |sum| {
            vec![(None, sum.late)]
        })?;
        states(&mut encoder, &sums)
    }
}

impl Sum {
    fn add(&mut self, snapshot: &Snapshot) {
        for (sum, count) in self.entered.iter_mut().zip(snapshot.entered) {
            *sum += count;
        }
        for (reason, count) in snapshot.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
        self.late += snapshot.late;
        self.states.push(snapshot.state);
    }

    fn entered(&self, state: State) -> u64 {
        State::ALL
            .iter()
            .zip(self.entered)
            .find(|(of, _)| **of == state)
            .map_or(0, |(_, count)| count)
    }
}

type Extra = Option<(&'static str, &'static str)>;

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    counter: &Counter,
    sums: &BTreeMap<Labels, Sum>,
    values: impl Fn(&Sum) -> Vec<(Extra, u64)>,
) -> Result<(), fmt::Error> {
    let mut family =
        encoder.encode_descriptor(counter.name, counter.help, None, MetricType::Counter)?;
    for (labels, sum) in sums {
        for (extra, value) in values(sum) {
            ConstCounter::new(value).encode(family.encode_family(&pairs(labels, extra))?)?;
        }
    }
    Ok(())
}

fn states(
    encoder: &mut DescriptorEncoder<'_>,
    sums: &BTreeMap<Labels, Sum>,
) -> Result<(), fmt::Error> {
    let mut family =
        encoder.encode_descriptor(names::STATE, names::STATE_HELP, None, MetricType::Gauge)?;
    for (labels, sum) in sums {
        for state in State::ALL {
            let labels = pairs(labels, Some((names::STATE_LABEL, state.as_str())));
            let value = i64::from(sum.states.contains(&state));
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn labels(snapshot: &Snapshot) -> Labels {
    let model = match snapshot.scope() {
        Scope::Model => snapshot.name.part().unwrap_or_default(),
        Scope::Provider | Scope::Key => "",
    };
    (
        snapshot.scope(),
        snapshot.name.provider_name().to_owned(),
        model.to_owned(),
    )
}

fn pairs((scope, provider, model): &Labels, extra: Extra) -> Vec<(&'static str, &str)> {
    let labels = [
        (names::SCOPE_LABEL, scope.as_str()),
        (names::PROVIDER_LABEL, provider.as_str()),
        (names::MODEL_LABEL, model.as_str()),
    ];
    labels.into_iter().chain(extra).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fuseline_core::{
        Clock, Kind, Outcome, Policies, Policy, RegistryConfig, ScopeName, Scopes,
    };

    use super::*;

    fn registry() -> (Registry, Clock) {
        let clock = Clock::manual();
        (
            Registry::new(RegistryConfig {
                clock: clock.clone(),
                ..RegistryConfig::default()
            }),
            clock,
        )
    }

    fn fail(registry: &Registry, key: &str, kind: Kind, times: u32) {
        let policies = Policies::all(&Policy::default());
        let (model, key) = (
            Some(ScopeName::model("p", "m")),
            Some(ScopeName::key("p", key)),
        );
        let now = registry.now();
        let scopes = Scopes::new(
            registry,
            ScopeName::provider("p"),
            model,
            key,
            policies,
            now,
        )
        .unwrap();
        for _ in 0..times {
            if let Ok(permit) = scopes.try_acquire(Duration::ZERO, now) {
                permit.record(&Outcome::failure(kind), None, now);
            }
        }
    }

    #[test]
    fn an_opening_is_counted_once_and_the_rejections_after_it() {
        let (registry, _) = registry();
        fail(&registry, "k", Kind::ServerError, 7);
        let page = metrics_page(&registry, None, None).unwrap();
        for line in [
            r#"breaker_opened_total{scope="model",provider="p",model="m"} 1"#,
            r#"breaker_opened_total{scope="provider",provider="p",model=""} 0"#,
            r#"breaker_rejected_total{scope="model",provider="p",model="m",reason="open"} 2"#,
            r#"breaker_state{scope="model",provider="p",model="m",state="open"} 1"#,
            r#"breaker_state{scope="model",provider="p",model="m",state="closed"} 0"#,
            r#"breaker_late_total{scope="model",provider="p",model="m"} 0"#,
            "# EOF",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }

    #[test]
    fn keys_of_a_provider_share_their_series() {
        let (registry, _) = registry();
        fail(&registry, "one", Kind::RateLimit, 5);
        fail(&registry, "two", Kind::RateLimit, 5);
        let page = metrics_page(&registry, None, None).unwrap();
        let line = r#"breaker_opened_total{scope="key",provider="p",model=""} 2"#;
        assert_eq!(
            page.lines().filter(|other| *other == line).count(),
            1,
            "{page}"
        );
    }

    #[test]
    fn an_empty_registry_has_an_empty_page() {
        let page = metrics_page(&registry().0, None, None).unwrap();
        assert!(page.ends_with("# EOF\n"));
        assert!(!page.contains("state_stored"));
    }

    #[test]
    fn what_is_kept_is_told_where_it_is() {
        let kept = KeptState {
            stored: 7,
            dropped: 2,
            failures: 1,
            is_failing: true,
        };
        let page = metrics_page(&registry().0, Some(kept), None).unwrap();
        for line in [
            "state_stored_total 7",
            "state_dropped_total 2",
            "state_failures_total 1",
            "state_failing 1",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }

    #[test]
    fn how_the_fleet_fares_is_on_the_page_where_there_is_one() {
        let page = |fleet| metrics_page(&registry().0, None, fleet).unwrap();
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
