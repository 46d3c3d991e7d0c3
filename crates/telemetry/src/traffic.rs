//! `Traffic`: what became of calls and of their attempts, counted as they end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use fuseline_core::Kind;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::histogram::Histogram;

use crate::catalogue::Names;
use crate::family::{Family, Series, Value};
use crate::names;

/// Upper bounds in seconds. Models think for minutes: the last is ten of them.
pub(crate) const BOUNDS: [f64; 16] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0,
];

/// How a call ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "every call ends in one of these")]
pub enum CallOutcome {
    /// He got a good answer.
    Success,
    /// Something broke that counts against a provider.
    Failure,
    /// Neither: the caller's own mistake, or he left.
    Neutral,
    /// Nobody was asked: every target was out, or the gateway itself refused.
    Rejected,
}

impl CallOutcome {
    const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Neutral, Self::Rejected];

    /// The outcome of what was sent to a provider; no kind is a success.
    pub const fn of(kind: Option<Kind>) -> Self {
        match kind {
            None => Self::Success,
            Some(kind) if kind.rule().count => Self::Failure,
            Some(_) => Self::Neutral,
        }
    }

    /// The name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Rejected => "rejected",
        }
    }
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct EndedCall {
    /// How it ended.
    pub outcome: CallOutcome,
    /// What went wrong last, if anything did.
    pub kind: Option<Kind>,
    /// From its request to the end of its answer.
    pub took: Duration,
    /// From an attempt's request to its first content event, for streams that had one.
    pub first_token: Option<Duration>,
    /// Whether another than the route's first target gave a good answer.
    pub by_fallback: bool,
}

/// Counts by kind, a success first.
#[derive(Debug, Default)]
struct ByKind([AtomicU64; Kind::ALL.len() + 1]);

impl ByKind {
    fn add(&self, kind: Option<Kind>) {
        let at = kind.map_or(0, |kind| 1 + kind as usize);
        if let Some(count) = self.0.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each kind with its count.
    fn counts(&self) -> impl Iterator<Item = (Option<Kind>, u64)> {
        let kinds = std::iter::once(None).chain(Kind::ALL.map(Some));
        kinds
            .zip(&self.0)
            .map(|(kind, count)| (kind, count.load(Ordering::Relaxed)))
    }
}

/// What attempts at one target have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempts {
    /// All of them.
    pub all: u64,
    /// Those that count against the target.
    pub failures: u64,
}

/// By the labels of provider and model.
type ByTarget = BTreeMap<String, BTreeMap<String, ByKind>>;

/// The counters. Adding is a few atomic additions and a short lock for the histograms; nobody waits for a scrape.
#[derive(Debug)]
pub(crate) struct Traffic {
    calls: [ByKind; CallOutcome::ALL.len()],
    names: Names,
    attempts: RwLock<ByTarget>,
    fallback: AtomicU64,
    abandoned: AtomicU64,
    /// In millionths of a dollar.
    abandoned_cost: AtomicU64,
    call_seconds: Histogram,
    first_token_seconds: Histogram,
}

impl Traffic {
    pub(crate) fn new(names: Names) -> Self {
        let traffic = Self {
            calls: Default::default(),
            names,
            attempts: RwLock::default(),
            fallback: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            abandoned_cost: AtomicU64::new(0),
            call_seconds: Histogram::new(BOUNDS),
            first_token_seconds: Histogram::new(BOUNDS),
        };
        traffic.follow();
        traffic
    }

    /// Has the series of the catalogue from now on, and no others.
    pub(crate) fn follow(&self) {
        let pairs = self.names.read().pairs();
        let mut attempts = self.write();
        let mut before = std::mem::take(&mut *attempts);
        for (provider, model) in pairs {
            let old = before
                .get_mut(&provider)
                .and_then(|models| models.remove(&model));
            let models = attempts.entry(provider).or_default();
            models.insert(model, old.unwrap_or_default());
        }
    }

    pub(crate) fn call(&self, call: &EndedCall) {
        if let Some(by_kind) = self.calls.get(call.outcome as usize) {
            by_kind.add(call.kind);
        }
        self.fallback
            .fetch_add(u64::from(call.by_fallback), Ordering::Relaxed);
        self.call_seconds.observe(call.took.as_secs_f64());
        if let Some(first_token) = call.first_token {
            self.first_token_seconds.observe(first_token.as_secs_f64());
        }
    }

    pub(crate) fn attempt(&self, provider: &str, model: &str, kind: Option<Kind>) {
        let catalogue = self.names.read();
        if !catalogue.holds(provider) {
            return;
        }
        if CallOutcome::of(kind) != CallOutcome::Neutral {
            catalogue.learn(provider, model);
        }
        let model = catalogue.label(provider, model);
        let attempts = self.read();
        let known = attempts.get(provider).and_then(|models| models.get(model));
        if let Some(by_kind) = known {
            return by_kind.add(kind);
        }
        drop(attempts);
        let mut attempts = self.write();
        let models = attempts.entry(provider.to_owned()).or_default();
        models.entry(model.to_owned()).or_default().add(kind);
    }

    pub(crate) fn abandoned(&self, dollars: f64) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        // Out of range, the cast saturates.
        let millionths = (dollars * 1e6).round() as u64;
        self.abandoned_cost.fetch_add(millionths, Ordering::Relaxed);
    }

    pub(crate) fn attempts(&self, provider: &str, model: &str) -> Option<Attempts> {
        let attempts = self.read();
        let by_kind = attempts.get(provider)?.get(model)?;
        let mut sum = Attempts::default();
        for (kind, count) in by_kind.counts() {
            sum.all += count;
            if CallOutcome::of(kind) == CallOutcome::Failure {
                sum.failures += count;
            }
        }
        Some(sum)
    }

    fn read(&self) -> RwLockReadGuard<'_, ByTarget> {
        self.attempts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByTarget> {
        self.attempts
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn families(&self) -> [Family; 5] {
        let abandoned = Value::Count(self.abandoned.load(Ordering::Relaxed));
        let cost = Value::Amount(self.abandoned_cost.load(Ordering::Relaxed) as f64 / 1e6);
        let fallback = Value::Count(self.fallback.load(Ordering::Relaxed));
        [
            Family::counter(names::CALLS, self.calls()),
            Family::counter(names::ATTEMPTS, self.attempts_by_target()),
            Family::counter(names::FALLBACK, Series::alone(fallback)),
            Family::counter(names::ABANDONED, Series::alone(abandoned)),
            Family::counter(names::ABANDONED_COST, Series::alone(cost)),
        ]
    }

    fn calls(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for (outcome, by_kind) in CallOutcome::ALL.into_iter().zip(&self.calls) {
            for (kind, count) in by_kind.counts() {
                // Each outcome is there from the start, so that its first increase is seen.
                let usual = match outcome {
                    CallOutcome::Success => None,
                    CallOutcome::Failure => Some(Kind::ServerError),
                    CallOutcome::Neutral => Some(Kind::BadRequest),
                    CallOutcome::Rejected => Some(Kind::Local),
                };
                if count > 0 || kind == usual {
                    let labels = [
                        (names::OUTCOME_LABEL, outcome.as_str()),
                        (names::KIND_LABEL, kind_label(kind)),
                    ];
                    series.push(Series::new(labels, Value::Count(count)));
                }
            }
        }
        series
    }

    fn attempts_by_target(&self) -> Vec<Series> {
        let attempts = self.read();
        let targets = attempts.iter().flat_map(|(provider, models)| {
            let models = models.iter();
            models.map(move |(model, by_kind)| (provider, model, by_kind))
        });
        let mut series = Vec::new();
        for (provider, model, by_kind) in targets {
            for (kind, count) in by_kind.counts() {
                if count > 0 || kind.is_none() {
                    let labels = [
                        (names::PROVIDER_LABEL, provider.as_str()),
                        (names::MODEL_LABEL, model.as_str()),
                        (names::OUTCOME_LABEL, CallOutcome::of(kind).as_str()),
                        (names::KIND_LABEL, kind_label(kind)),
                    ];
                    series.push(Series::new(labels, Value::Count(count)));
                }
            }
        }
        series
    }
}

/// The histograms.
impl Collector for Traffic {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for ((name, help), histogram) in [
            (names::CALL_SECONDS, &self.call_seconds),
            (names::FIRST_TOKEN_SECONDS, &self.first_token_seconds),
        ] {
            let family = encoder.encode_descriptor(
                name,
                help,
                None,
                EncodeMetric::metric_type(histogram),
            )?;
            histogram.encode(family)?;
        }
        Ok(())
    }
}

const fn kind_label(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(kind) => kind.as_str(),
        None => "none",
    }
}
