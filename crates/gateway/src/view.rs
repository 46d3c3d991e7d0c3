//! Breakers and transitions as JSON. Instants become milliseconds ago, since nobody outside knows our clock.

mod event;

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::{Breaker, FailureNote, RuleSnapshot, Scope, Snapshot, Tick, Transition};
use fuseline_telemetry::Metrics;
use serde::Serialize;

pub(crate) use event::Event;

/// One breaker, with all that it remembers.
#[derive(Debug, Serialize)]
pub(crate) struct Detail {
    #[serde(flatten)]
    view: View,
    /// What the operator wrote when he forced it, while that holds.
    note: Option<String>,
    /// Its latest transitions, oldest first, at most 20.
    history: Vec<Why>,
}

impl Detail {
    pub(crate) fn of(
        breaker: &Breaker,
        note: Option<String>,
        metrics: &Metrics,
        now: Tick,
    ) -> Self {
        let history = breaker.history(0);
        Self {
            view: View::of(&breaker.snapshot(now), metrics),
            note,
            history: history.iter().map(|change| Why::of(change, now)).collect(),
        }
    }
}

/// One breaker.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    name: String,
    scope: &'static str,
    provider: String,
    /// The model, or the id of the key.
    part: Option<String>,
    mode: String,
    state: &'static str,
    since_ms_ago: u64,
    generation: u32,
    /// Why a call would be refused, and for how long.
    reason: Option<&'static str>,
    retry_after_ms: Option<u64>,
    run: u32,
    kinds: BTreeMap<&'static str, u32>,
    rules: Vec<Rule>,
    pressure: f64,
    episodes: u32,
    live_probes: u32,
    good_probes: u32,
    in_flight: u64,
    hold_ms: Option<u64>,
    late: u64,
    rejected: BTreeMap<&'static str, u64>,
    opened: u64,
    /// Attempts at a model since the start, and those that count against it, where the configuration names it.
    attempts: Option<u64>,
    failures: Option<u64>,
    incident_ms: Option<u64>,
    last_failures: Vec<Failure>,
    /// The transition that led to this state.
    why: Option<Why>,
}

#[derive(Debug, Serialize)]
struct Rule {
    rule: &'static str,
    hits: u64,
    calls: Option<u64>,
    observed: f64,
    threshold: f64,
    armed: bool,
}

#[derive(Debug, Serialize)]
struct Failure {
    kind: &'static str,
    code: Option<u16>,
    ms_ago: u64,
}

/// A transition, with what it rests on.
#[derive(Debug, Serialize)]
pub(crate) struct Why {
    from: &'static str,
    to: &'static str,
    cause: &'static str,
    observed: f64,
    threshold: f64,
    kind: Option<&'static str>,
    ms_ago: u64,
    /// The rest of the time that an `open` or a forced state was given.
    until_ms: Option<u64>,
    /// The same in words.
    text: String,
}

impl View {
    pub(crate) fn of(snapshot: &Snapshot, metrics: &Metrics) -> Self {
        let now = snapshot.at;
        let model = snapshot
            .name
            .part()
            .filter(|_| snapshot.scope() == Scope::Model);
        let attempts =
            model.and_then(|model| metrics.attempts(snapshot.name.provider_name(), model));
        let opened = fuseline_core::State::ALL.iter().zip(snapshot.entered);
        let opened = opened
            .filter(|(state, _)| **state == fuseline_core::State::Open)
            .map(|(_, count)| count)
            .sum();
        Self {
            name: snapshot.name.to_string(),
            scope: snapshot.scope().as_str(),
            provider: snapshot.name.provider_name().to_owned(),
            part: snapshot.name.part().map(str::to_owned),
            mode: format!("{:?}", snapshot.mode).to_lowercase(),
            state: snapshot.state.as_str(),
            since_ms_ago: ago(snapshot.since, now),
            generation: snapshot.generation,
            reason: snapshot.reason.map(fuseline_core::Reason::as_str),
            retry_after_ms: snapshot.retry_after.map(millis),
            run: snapshot.run,
            kinds: snapshot
                .kinds
                .iter()
                .map(|(kind, count)| (kind.as_str(), *count))
                .collect(),
            rules: snapshot.rules.iter().map(Rule::from).collect(),
            pressure: snapshot.pressure,
            episodes: snapshot.episodes,
            live_probes: snapshot.live_probes,
            good_probes: snapshot.good_probes,
            in_flight: snapshot.in_flight,
            hold_ms: snapshot.hold_until.map(|until| millis(until.since(now))),
            late: snapshot.late,
            rejected: snapshot
                .rejected
                .iter()
                .map(|(reason, count)| (reason.as_str(), *count))
                .collect(),
            opened,
            attempts: attempts.map(|attempts| attempts.all),
            failures: attempts.map(|attempts| attempts.failures),
            incident_ms: snapshot.incident_since.map(|since| ago(since, now)),
            last_failures: snapshot
                .last_failures
                .iter()
                .map(|failure| Failure::of(failure, now))
                .collect(),
            why: snapshot
                .why
                .as_ref()
                .map(|transition| Why::of(transition, now)),
        }
    }
}

impl From<&RuleSnapshot> for Rule {
    fn from(seen: &RuleSnapshot) -> Self {
        let RuleSnapshot {
            rule,
            hits,
            calls,
            observed,
            threshold,
            armed,
            ..
        } = *seen;
        Self {
            rule,
            hits,
            calls,
            observed,
            threshold,
            armed,
        }
    }
}

impl Failure {
    fn of(failure: &FailureNote, now: Tick) -> Self {
        Self {
            kind: failure.kind.as_str(),
            code: failure.code,
            ms_ago: ago(failure.at, now),
        }
    }
}

impl Why {
    fn of(transition: &Transition, now: Tick) -> Self {
        Self {
            from: transition.from.as_str(),
            to: transition.to.as_str(),
            cause: transition.why.cause.as_str(),
            observed: transition.why.observed,
            threshold: transition.why.threshold,
            kind: transition.why.kind.map(fuseline_core::Kind::as_str),
            ms_ago: ago(transition.at, now),
            until_ms: transition.until.map(|until| millis(until.since(now))),
            text: transition.why.to_string(),
        }
    }
}

fn ago(at: Tick, now: Tick) -> u64 {
    millis(now.since(at))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
