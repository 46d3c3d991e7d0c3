//! What there is to see of a breaker, as plain objects. Times are milliseconds by the breaker's clock.

use std::collections::BTreeMap;

use fuseline::{Snapshot, State, Tick};
use napi_derive::napi;

use crate::policy::in_ms;

/// A breaker at one instant.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What it guards.
    pub scope: &'static str,
    /// The instant.
    pub at_ms: f64,
    /// The state as the next call would find it.
    pub state: &'static str,
    /// When that was entered.
    pub since_ms: f64,
    /// Counts the states entered.
    pub generation: u32,
    /// Why a call would be refused, if it would.
    pub reason: Option<&'static str>,
    /// When asking again is of use, where it is not now.
    pub retry_after_ms: Option<f64>,
    /// Failures with no success between them.
    pub run: u32,
    /// Failures by kind since the last closing.
    pub kinds: BTreeMap<String, u32>,
    /// Every trip rule, with what it observes.
    pub rules: Vec<Rule>,
    /// The largest observed/threshold over the armed rules.
    pub pressure: f64,
    /// Probe episodes that failed since it was last closed.
    pub episodes: u32,
    /// Live probes.
    pub live_probes: u32,
    /// Good probes so far.
    pub good_probes: u32,
    /// Unsettled permits, where `max_in_flight` is set.
    pub in_flight: i64,
    /// Outcomes whose state had passed.
    pub late: i64,
    /// Refused calls by reason.
    pub rejected: BTreeMap<String, i64>,
    /// How often each state was entered.
    pub entered: BTreeMap<String, i64>,
    /// How long it has been open in all.
    pub open_for_ms: f64,
    /// Since when it has not been closed, if it opened.
    pub incident_since_ms: Option<f64>,
    /// The latest counted failures.
    pub last_failures: Vec<Note>,
    /// The transition that led here.
    pub why: Option<Transition>,
}

/// A trip rule and what it observes.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub rule: &'static str,
    /// Failures, or slow successes.
    pub hits: i64,
    /// Calls, for rules with a share.
    pub calls: Option<i64>,
    /// What is held against the threshold.
    pub observed: f64,
    /// The threshold.
    pub threshold: f64,
    /// Whether there are calls enough.
    pub armed: bool,
}

/// A change of state.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Transition {
    /// 1 for a breaker's first.
    pub number: i64,
    /// When it took effect.
    pub at_ms: f64,
    /// The state left.
    pub from: &'static str,
    /// The state entered.
    pub to: &'static str,
    /// The generation that began with it.
    pub generation: u32,
    /// When the state ends, where that is known.
    pub until_ms: Option<f64>,
    /// What it rests on.
    pub why: Why,
}

/// What a transition rests on.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Why {
    /// The rule or event that decided.
    pub cause: &'static str,
    /// What was observed.
    pub observed: f64,
    /// What it was held against.
    pub threshold: f64,
    /// The kind of the failure that decided, if one did.
    pub kind: Option<&'static str>,
    /// The latest counted failures.
    pub last_failures: Vec<Note>,
    /// All of it in a sentence.
    pub text: String,
}

/// One counted failure.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Note {
    /// When it was recorded.
    pub at_ms: f64,
    /// Its kind.
    pub kind: &'static str,
    /// Such as an HTTP status.
    pub code: Option<u16>,
}

/// An instant.
pub(crate) fn at(tick: Tick) -> f64 {
    // Exact for as long as anything runs.
    tick.as_millis() as f64
}

/// A count, which JavaScript holds exactly up to 2^53.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn status(seen: &Snapshot) -> Status {
    Status {
        name: seen.name.to_string(),
        scope: seen.scope().as_str(),
        at_ms: at(seen.at),
        state: seen.state.as_str(),
        since_ms: at(seen.since),
        generation: seen.generation,
        reason: seen.reason.map(|reason| reason.as_str()),
        retry_after_ms: seen.retry_after.map(in_ms),
        run: seen.run,
        kinds: seen
            .kinds
            .iter()
            .map(|(kind, count)| (kind.as_str().to_owned(), *count))
            .collect(),
        rules: seen.rules.iter().map(rule).collect(),
        pressure: seen.pressure,
        episodes: seen.episodes,
        live_probes: seen.live_probes,
        good_probes: seen.good_probes,
        in_flight: count(seen.in_flight),
        late: count(seen.late),
        rejected: seen
            .rejected
            .iter()
            .map(|(reason, times)| (reason.as_str().to_owned(), count(*times)))
            .collect(),
        entered: State::ALL
            .into_iter()
            .zip(seen.entered)
            .map(|(state, times)| (state.as_str().to_owned(), count(times)))
            .collect(),
        open_for_ms: in_ms(seen.open_for),
        incident_since_ms: seen.incident_since.map(at),
        last_failures: seen.last_failures.iter().map(note).collect(),
        why: seen.why.as_ref().map(transition),
    }
}

pub(crate) fn transition(change: &fuseline::Transition) -> Transition {
    Transition {
        number: count(change.number),
        at_ms: at(change.at),
        from: change.from.as_str(),
        to: change.to.as_str(),
        generation: change.generation,
        until_ms: change.until.map(at),
        why: Why {
            cause: change.why.cause.as_str(),
            observed: change.why.observed,
            threshold: change.why.threshold,
            kind: change.why.kind.map(|kind| kind.as_str()),
            last_failures: change.why.last_failures.iter().map(note).collect(),
            text: change.why.to_string(),
        },
    }
}

fn note(note: &fuseline::FailureNote) -> Note {
    Note {
        at_ms: at(note.at),
        kind: note.kind.as_str(),
        code: note.code,
    }
}

fn rule(seen: &fuseline::RuleSnapshot) -> Rule {
    Rule {
        rule: seen.rule,
        hits: count(seen.hits),
        calls: seen.calls.map(count),
        observed: seen.observed,
        threshold: seen.threshold,
        armed: seen.armed,
    }
}
