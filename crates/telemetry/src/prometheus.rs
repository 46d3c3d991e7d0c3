//! `Metrics`: everything that is counted, and its Prometheus page. Breakers are read from snapshots when somebody asks;
//! calls are counted as they end.

use std::fmt;
use std::sync::Arc;

use fuseline_core::{Kind, Registry};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;

use crate::breakers::Breakers;
use crate::catalogue::{Catalogue, Names};
use crate::family::{Family, Series, Value};
use crate::fleet::FleetState;
use crate::names;
use crate::queue::QueueState;
use crate::reloads::{Reload, Reloads};
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
/// assert!(metrics.page(None, None, None)?.contains(line));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    breakers: Breakers,
    traffic: Arc<Traffic>,
    reloads: Reloads,
    names: Names,
}

impl Metrics {
    /// Nothing counted yet. Models that are not in the catalogue are counted together.
    pub fn new(registry: &Registry, catalogue: Catalogue) -> Self {
        let names = Names::new(catalogue);
        Self(Arc::new(Shared {
            breakers: Breakers::new(registry, names.clone()),
            traffic: Arc::new(Traffic::new(names.clone())),
            reloads: Reloads::default(),
            names,
        }))
    }

    /// Other names from now on. Series of what is gone are gone; what stays goes on counting.
    pub fn set_catalogue(&self, catalogue: Catalogue) {
        self.0.names.replace(catalogue);
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

    /// What is counted at this moment, as data, but for the histograms; with how states are kept, where they are to be, and
    /// how the fleet and the queue fare, where there is one.
    pub fn families(
        &self,
        kept: Option<KeptState>,
        fleet: Option<FleetState>,
        queue: Option<QueueState>,
    ) -> Vec<Family> {
        let mut families = self.0.breakers.families();
        families.extend(self.0.traffic.families());
        families.extend(self.0.reloads.families());
        families.extend(kept.iter().flat_map(KeptState::families));
        families.extend(fleet.iter().flat_map(FleetState::families));
        families.extend(queue.iter().flat_map(QueueState::families));
        families
    }

    /// The page: the [`families`](Self::families) and the histograms.
    ///
    /// # Errors
    /// Never in practice: writing into a string does not fail.
    pub fn page(
        &self,
        kept: Option<KeptState>,
        fleet: Option<FleetState>,
        queue: Option<QueueState>,
    ) -> Result<String, fmt::Error> {
        let mut page = String::new();
        let mut metrics = prometheus_client::registry::Registry::default();
        metrics.register_collector(Box::new(Page(self.families(kept, fleet, queue))));
        metrics.register_collector(Box::new(Arc::clone(&self.0.traffic)));
        encode(&mut page, &metrics)?;
        Ok(page)
    }

    /// The label of a model at a provider: its name, or `other`.
    pub(crate) fn label<'m>(&self, provider: &str, model: &'m str) -> &'m str {
        self.0.names.read().label(provider, model)
    }
}

#[derive(Debug)]
struct Page(Vec<Family>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0
            .iter()
            .try_for_each(|family| family.encode(&mut encoder))
    }
}

impl KeptState {
    fn families(&self) -> Vec<Family> {
        let mut families: Vec<Family> = [
            (names::STORED, self.stored),
            (names::DROPPED, self.dropped),
            (names::FAILURES, self.failures),
        ]
        .into_iter()
        .map(|(counter, count)| Family::counter(counter, Series::alone(Value::Count(count))))
        .collect();
        let is_failing = Value::Count(u64::from(self.is_failing));
        families.push(Family::gauge(names::FAILING, Series::alone(is_failing)));
        families
    }
}

#[cfg(test)]
mod tests;
