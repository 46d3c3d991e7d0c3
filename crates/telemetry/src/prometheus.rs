//! `Metrics`: the Prometheus page. Breakers are read from snapshots at scrape time; calls are counted as they end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fuseline_core::{Kind, Reason, Registry, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::catalogue::{Catalogue, Names};
use crate::fleet::FleetState;
use crate::names::{self, Counter};
use crate::reloads::{Reload, Reloads};
use crate::sums::{Labels, Ledger, Sum};
use crate::traffic::{Attempts, EndedCall, Traffic};

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

/// Everything that is counted, as a scraper reads it. Clones share the counters.
///
/// ```
/// use fuseline_core::{Kind, Registry};
/// use fuseline_telemetry::{Catalogue, Metrics};
///
/// let catalogue: Catalogue = [("openai", Some("gpt-5"))].into_iter().collect();
/// let metrics = Metrics::new(&Registry::default(), catalogue);
/// metrics.attempt("openai", "gpt-5", Some(Kind::Timeout));
/// let line = "attempts_total{provider=\"openai\",model=\"gpt-5\",outcome=\"failure\",kind=\"timeout\"} 1";
/// assert!(metrics.page(None, None)?.contains(line));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    breakers: Arc<Breakers>,
    traffic: Arc<Traffic>,
    reloads: Arc<Reloads>,
}

impl Metrics {
    /// Nothing counted yet. Models that are not in the catalogue are counted together.
    pub fn new(registry: &Registry, catalogue: Catalogue) -> Self {
        let names = Names::new(catalogue);
        let traffic = Arc::new(Traffic::new(names.clone()));
        let breakers = Arc::new(Breakers {
            registry: registry.clone(),
            names,
            ledger: Mutex::default(),
        });
        Self(Arc::new(Shared {
            breakers,
            traffic,
            reloads: Arc::default(),
        }))
    }

    /// Other names from now on. Series of what is gone are gone; what stays goes on counting.
    pub fn set_catalogue(&self, catalogue: Catalogue) {
        self.0.breakers.names.replace(catalogue);
        self.0.traffic.follow();
    }

    /// The configuration was read anew.
    pub fn reload(&self, came_to: Reload) {
        self.0.reloads.note(came_to);
    }

    /// A call is over.
    pub fn call(&self, call: &EndedCall) {
        self.0.traffic.call(call);
    }

    /// A request that was sent to a target is over; no kind is a success.
    pub fn attempt(&self, provider: &str, model: &str, kind: Option<Kind>) {
        self.0.traffic.attempt(provider, model, kind);
    }

    /// A request that was sent may have been carried out, and nobody got its answer: it may have cost this much, in US
    /// dollars.
    pub fn abandoned(&self, dollars: f64) {
        self.0.traffic.abandoned(dollars);
    }

    /// What attempts at this target have come to; none where the catalogue does not hold it.
    pub fn attempts(&self, provider: &str, model: &str) -> Option<Attempts> {
        self.0.traffic.attempts(provider, model)
    }

    /// The page; with how states are kept, where they are to be, and how the fleet fares, where there is one.
    ///
    /// # Errors
    /// Never in practice: writing into a string does not fail.
    pub fn page(
        &self,
        kept: Option<KeptState>,
        fleet: Option<FleetState>,
    ) -> Result<String, fmt::Error> {
        let mut page = String::new();
        let mut metrics = prometheus_client::registry::Registry::default();
        metrics.register_collector(Box::new(Arc::clone(&self.0.breakers)));
        metrics.register_collector(Box::new(Arc::clone(&self.0.traffic)));
        metrics.register_collector(Box::new(Arc::clone(&self.0.reloads)));
        if let Some(kept) = kept {
            metrics.register_collector(Box::new(kept));
        }
        if let Some(fleet) = fleet {
            metrics.register_collector(Box::new(fleet));
        }
        encode(&mut page, &metrics)?;
        Ok(page)
    }
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

#[derive(Debug)]
struct Breakers {
    registry: Registry,
    names: Names,
    ledger: Mutex<Ledger>,
}

type Sums = BTreeMap<Labels, Sum>;

impl Collector for Breakers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = ledger.sums(&self.registry, &self.names.read());
        drop(ledger);
        for (counter, state) in [
            (names::OPENED, State::Open),
            (names::HALF_OPEN, State::HalfOpen),
            (names::CLOSED, State::Closed),
            (names::DEGRADED, State::Degraded),
        ] {
            counters(&mut encoder, &counter, &sums, |sum| {
                vec![(None, sum.counts.entered(state))]
            })?;
        }
        counters(&mut encoder, &names::REJECTED, &sums, |sum| {
            let label = |reason: Reason| Some((names::REASON_LABEL, reason.as_str()));
            let counts = Reason::COUNTED.into_iter().zip(sum.counts.rejected);
            counts
                .map(|(reason, count)| (label(reason), count))
                .collect()
        })?;
        counters(&mut encoder, &names::LATE, &sums, |sum| {
            vec![(None, sum.counts.late)]
        })?;
        times(&mut encoder, &sums)?;
        states(&mut encoder, &sums)
    }
}

type Extra = Option<(&'static str, &'static str)>;

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    counter: &Counter,
    sums: &Sums,
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

fn times(encoder: &mut DescriptorEncoder<'_>, sums: &Sums) -> Result<(), fmt::Error> {
    let Counter { name, help } = names::OPEN_SECONDS;
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, sum) in sums {
        let seconds = sum.counts.open_for.as_secs_f64();
        ConstCounter::new(seconds).encode(family.encode_family(&pairs(labels, None))?)?;
    }
    let (name, help) = names::INCIDENT_SECONDS;
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, sum) in sums {
        let seconds = sum.incident.as_secs_f64();
        ConstGauge::new(seconds).encode(family.encode_family(&pairs(labels, None))?)?;
    }
    Ok(())
}

fn states(encoder: &mut DescriptorEncoder<'_>, sums: &Sums) -> Result<(), fmt::Error> {
    let mut family =
        encoder.encode_descriptor(names::STATE, names::STATE_HELP, None, MetricType::Gauge)?;
    for (labels, sum) in sums {
        for state in State::ALL {
            let labels = pairs(labels, Some((names::STATE_LABEL, state.as_str())));
            // Where there is no breaker yet, calls pass.
            let is_in =
                sum.states.contains(&state) || (sum.states.is_empty() && state == State::Closed);
            ConstGauge::new(i64::from(is_in)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn pairs(labels: &Labels, extra: Extra) -> Vec<(&'static str, &str)> {
    let labels = [
        (names::SCOPE_LABEL, labels.scope.as_str()),
        (names::PROVIDER_LABEL, labels.provider.as_str()),
        (names::MODEL_LABEL, labels.model.as_str()),
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
    use crate::traffic::CallOutcome;

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

    /// `m` at `p` is known.
    fn metrics(registry: &Registry) -> Metrics {
        Metrics::new(registry, [("p", Some("m"))].into_iter().collect())
    }

    fn page(registry: &Registry) -> Result<String, fmt::Error> {
        metrics(registry).page(None, None)
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
        let page = page(&registry).unwrap();
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
        let page = page(&registry).unwrap();
        let line = r#"breaker_opened_total{scope="key",provider="p",model=""} 2"#;
        assert_eq!(
            page.lines().filter(|other| *other == line).count(),
            1,
            "{page}"
        );
    }

    #[test]
    fn what_the_catalogue_holds_is_there_from_the_start() {
        let page = page(&registry().0).unwrap();
        for line in [
            r#"breaker_opened_total{scope="model",provider="p",model="m"} 0"#,
            r#"breaker_state{scope="provider",provider="p",model="",state="closed"} 1"#,
            r#"attempts_total{provider="p",model="other",outcome="success",kind="none"} 0"#,
            r#"calls_total{outcome="rejected",kind="local"} 0"#,
            "fallback_total 0",
            "call_seconds_count 0",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
        assert!(page.ends_with("# EOF\n"));
        assert!(!page.contains("state_stored"));
    }

    #[test]
    fn time_spent_open_and_the_incident_grow_until_it_closes() {
        let (registry, clock) = registry();
        let metrics = metrics(&registry);
        fail(&registry, "k", Kind::ServerError, 5);
        let seen = |name: &str| {
            let start = format!(r#"{name}{{scope="model",provider="p",model="m"}} "#);
            let page = metrics.page(None, None).unwrap();
            let value = page
                .lines()
                .find_map(|line| line.strip_prefix(&start).map(str::to_owned));
            value.unwrap().parse::<f64>().unwrap()
        };
        clock.advance(Duration::from_secs(20));
        let (open, incident) = ("breaker_open_seconds_total", "breaker_incident_seconds");
        assert_eq!((seen(open), seen(incident)), (20.0, 20.0));
        let breaker = registry.find_breaker(&ScopeName::model("p", "m")).unwrap();
        for _ in 0..2 {
            let probe = breaker.try_acquire(clock.now()).unwrap();
            clock.advance(Duration::from_secs(1));
            let success = Outcome::success(Duration::ZERO);
            assert_eq!(seen(open), 20.0);
            probe.record(&success, clock.now());
        }
        assert_eq!((seen(open), seen(incident)), (20.0, 0.0));
    }

    #[test]
    fn report_109_long_calls_fall_into_different_buckets() {
        let metrics = metrics(&registry().0);
        for seconds in [0.2, 12.0, 45.0, 120.0, 400.0] {
            let took = Duration::from_secs_f64(seconds);
            metrics.call(&EndedCall {
                outcome: CallOutcome::Success,
                kind: None,
                took,
                first_token: Some(took),
                by_fallback: false,
            });
        }
        let page = metrics.page(None, None).unwrap();
        let buckets = |name: &str| -> Vec<(String, u64)> {
            let start = format!("{name}_bucket{{le=\"");
            let lines = page.lines().filter_map(|line| line.strip_prefix(&start));
            let buckets = lines.map(|line| line.split_once("\"} ").unwrap());
            buckets
                .map(|(bound, count)| (bound.to_owned(), count.parse().unwrap()))
                .collect()
        };
        let (call, first_token) = (buckets("call_seconds"), buckets("first_token_seconds"));
        assert_eq!(call, first_token, "the same bounds");
        let mut before = 0;
        let grown = call.iter().filter(|(bound, count)| {
            let grew = *count - std::mem::replace(&mut before, *count);
            assert!(grew <= 1, "{bound} holds two of them");
            grew == 1 && bound != "+Inf"
        });
        assert_eq!(grown.count(), 5);
        let largest = call.iter().rev().nth(1).unwrap();
        assert!(largest.0.parse::<f64>().unwrap() >= 600.0, "{largest:?}");
    }

    #[test]
    fn series_follow_the_catalogue_and_what_stays_goes_on_counting() {
        let (registry, _) = registry();
        let metrics = metrics(&registry);
        fail(&registry, "k", Kind::ServerError, 5);
        for provider in ["p", "never"] {
            metrics.attempt(provider, "m", Some(Kind::ServerError));
        }
        let has = |line: &str| metrics.page(None, None).unwrap().contains(line);
        let (attempts, opened) = (
            r#"attempts_total{provider="p",model="m",outcome="failure",kind="server_error"} 1"#,
            r#"breaker_opened_total{scope="model",provider="p",model="m"} 1"#,
        );
        assert!(has(attempts) && has(opened) && !has("never"));
        metrics.set_catalogue([("p", Some("m")), ("q", None)].into_iter().collect());
        assert!(has(attempts) && has(opened) && has(r#"provider="q""#));
        registry.remove(&ScopeName::model("p", "m"));
        assert!(has(opened), "a counter does not fall");
        metrics.set_catalogue([("q", None)].into_iter().collect());
        metrics.attempt("p", "m", None);
        assert!(!has(r#"provider="p""#), "late calls bring no series back");
    }

    #[test]
    fn what_is_kept_is_told_where_it_is() {
        let kept = KeptState {
            stored: 7,
            dropped: 2,
            failures: 1,
            is_failing: true,
        };
        let page = metrics(&registry().0).page(Some(kept), None).unwrap();
        for line in [
            "state_stored_total 7",
            "state_dropped_total 2",
            "state_failures_total 1",
            "state_failing 1",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}\n{page}");
        }
    }
}
