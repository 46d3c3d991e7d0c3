//! What the demo tells: each event is a line of `--json`, and a few on the terminal.

use std::net::SocketAddr;
use std::time::Duration;

use fuseline_core::{Cause, FailureNote, Kind, State};
use serde::{Serialize, Serializer};

use super::callers::Answer;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    /// Everything is up.
    Started(Cast),
    /// The primary behaves otherwise from now on.
    Incident { text: &'static str },
    /// The primary's circuit has changed its state.
    Transition(Change),
    /// A probe was good, and more are needed.
    GoodProbe { good: u32, needed: u32 },
    /// Of callers who came all at once at the end of a cooldown, how many were sent to the primary.
    Crowd { callers: usize, to_primary: usize },
    /// What has been answered since the last such event.
    Traffic(Traffic),
    /// The end.
    Summary(Summary),
}

/// Who plays, and by which rules.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cast {
    pub(super) gateway: SocketAddr,
    pub(super) primary: SocketAddr,
    pub(super) spare: SocketAddr,
    pub(super) failures_to_open: u32,
    #[serde(rename = "cooldown_ms", serialize_with = "millis")]
    pub(super) cooldown: Duration,
    pub(super) backoff: f64,
    pub(super) successes_to_close: u32,
    pub(super) seed: u64,
}

/// A change of state, with its reasons.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    pub(super) from: State,
    pub(super) to: State,
    pub(super) cause: Cause,
    pub(super) observed: f64,
    pub(super) threshold: f64,
    pub(super) kind: Option<Kind>,
    pub(super) last_failures: Vec<Failure>,
    /// How long it stays open.
    #[serde(rename = "open_for_ms", serialize_with = "opt_millis")]
    pub(super) open_for: Option<Duration>,
    /// Calls kept from the primary so far.
    pub(super) saved: u64,
    /// Since the first opening.
    #[serde(rename = "incident_ms", serialize_with = "opt_millis")]
    pub(super) incident: Option<Duration>,
}

/// A counted failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    kind: Kind,
    code: Option<u16>,
}

impl From<&FailureNote> for Failure {
    fn from(note: &FailureNote) -> Self {
        Self {
            kind: note.kind,
            code: note.code,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} {code}", self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}

/// Calls of both sides that ended within one stretch of time.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Traffic {
    pub(super) with: Lane,
    pub(super) without: Lane,
}

/// Calls of one side.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Lane {
    /// Who answered, in the order of the answers.
    #[serde(flatten, serialize_with = "counts")]
    pub(super) answers: Vec<Answer>,
    /// Calls under way.
    pub(super) waiting: usize,
    #[serde(rename = "median_ms", serialize_with = "opt_millis")]
    pub(super) median: Option<Duration>,
}

/// How it went.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Whether every check holds.
    pub(super) ok: bool,
    pub(super) with: Side,
    pub(super) without: Side,
    #[serde(rename = "incident_ms", serialize_with = "millis")]
    pub(super) incident: Duration,
    pub(super) opened: u64,
    /// Calls kept from the primary.
    pub(super) saved: u64,
    /// What each probe found.
    pub(super) probes: Vec<String>,
    pub(super) checks: Vec<Check>,
}

/// All calls of one side.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Side {
    pub(super) calls: usize,
    pub(super) answered: usize,
    /// Of the calls that began during the outage.
    #[serde(rename = "outage_median_ms", serialize_with = "opt_millis")]
    pub(super) outage_median: Option<Duration>,
    #[serde(rename = "outage_slowest_ms", serialize_with = "opt_millis")]
    pub(super) outage_slowest: Option<Duration>,
}

/// Something that must hold.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) holds: bool,
    pub(super) found: String,
}

fn millis<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn opt_millis<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => millis(duration, to),
        None => to.serialize_none(),
    }
}

/// Answers as numbers by who gave them.
fn counts<S: Serializer>(answers: &[Answer], to: S) -> Result<S::Ok, S::Error> {
    let names = [
        ("primary", Answer::Primary),
        ("spare", Answer::Spare),
        ("spare_after_failure", Answer::SpareAfterFailure),
        ("unanswered", Answer::Nobody),
    ];
    let count = |of| answers.iter().filter(|answer| **answer == of).count();
    to.collect_map(names.map(|(name, of)| (name, count(of))))
}
