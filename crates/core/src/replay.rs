//! Replaying recorded events in virtual time: what the conformance vectors and `fuseline replay` are made of.
//!
//! A line either starts a case, with the settings of a fresh breaker, or is an event in it. Keys that are not known
//! here are ignored. The same lines give the same answers in every language.

use core::fmt;
use core::time::Duration;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::breaker::Breaker;
use crate::kind::Kind;
use crate::outcome::{Failure, Outcome};
use crate::permit::Permit;
use crate::policy::{Policy, PolicyError, PolicySpec};
use crate::scope::ScopeName;
use crate::state::State;
use crate::tick::Tick;

/// How far a time may lie before the one above it: what rounding to milliseconds can do to events of two threads. The
/// breaker takes it as the later one.
const ROUNDING_MS: u64 = 1;

/// One line of a replay.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Line<'a> {
    /// Starts a fresh breaker.
    Case {
        /// The case's name.
        case: String,
        /// The breaker's settings.
        #[serde(default)]
        breaker: Box<PolicySpec>,
    },
    /// Something that happens to it.
    #[serde(borrow)]
    Event(Event<'a>),
}

/// Something that happens at an instant.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    at_ms: u64,
    #[serde(rename = "do")]
    what: Verb,
    #[serde(rename = "as", default, borrow)]
    name: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    of: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    kind: Option<Kind>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    took_ms: u64,
    #[serde(default)]
    to: Option<ForceTo>,
    #[serde(default)]
    for_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Acquire,
    Success,
    Failure,
    Cancel,
    Progress,
    State,
    Force,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ForceTo {
    Open,
    Closed,
    Auto,
}

/// What an event came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// When.
    pub at_ms: u64,
    #[serde(rename = "do")]
    what: Verb,
    /// `allow`, `probe` or `reject`, for a call that asked for leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// In shadow mode: why it would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_reject: Option<&'static str>,
    /// The rest of the cooldown, for a rejection `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The state afterwards.
    pub state: State,
}

/// A line cannot be replayed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The case's settings cannot work.
    Policy(PolicyError),
    /// An event before any case.
    NoCase,
    /// Time runs backwards.
    Backwards {
        /// The event's time.
        at_ms: u64,
        /// The one before it.
        after_ms: u64,
    },
    /// No call of this name is unsettled.
    UnknownCall(String),
    /// The name is taken by an unsettled call.
    TakenCall(String),
    /// The event lacks a key that it needs.
    Missing(&'static str),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => write!(f, "breaker: {error}"),
            Self::NoCase => f.write_str(
                "an event before any case; begin with {\"case\": \"...\", \"breaker\": {...}}",
            ),
            Self::Backwards { at_ms, after_ms } => {
                write!(
                    f,
                    "at_ms is {at_ms}, must be {after_ms} or later: time runs backwards"
                )
            }
            Self::UnknownCall(name) => write!(
                f,
                "of is `{name}`: no call of this name was acquired and is unsettled"
            ),
            Self::TakenCall(name) => {
                write!(f, "as is `{name}`: a call of this name is not settled yet")
            }
            Self::Missing(key) => write!(f, "the key `{key}` is missing"),
        }
    }
}

impl core::error::Error for ReplayError {}

/// A breaker under replay, with the calls that are out.
#[derive(Debug, Default)]
pub struct Replay {
    breaker: Option<Breaker>,
    permits: HashMap<String, Permit<'static>>,
    now: u64,
}

impl Replay {
    /// No case yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one line. A case line has no answer.
    ///
    /// # Errors
    /// The line cannot be replayed; the replay should end.
    pub fn line(&mut self, line: &Line<'_>) -> Result<Option<Answer>, ReplayError> {
        match line {
            Line::Case { case, breaker } => {
                let policy = Policy::new(breaker).map_err(ReplayError::Policy)?;
                self.permits.clear();
                self.breaker = Some(Breaker::new(ScopeName::provider(case), policy));
                self.now = 0;
                Ok(None)
            }
            Line::Event(event) => self.event(event).map(Some),
        }
    }

    /// The breaker of the present case.
    pub fn breaker(&self) -> Option<&Breaker> {
        self.breaker.as_ref()
    }

    fn event(&mut self, event: &Event<'_>) -> Result<Answer, ReplayError> {
        let breaker = self.breaker.clone().ok_or(ReplayError::NoCase)?;
        if event.at_ms.saturating_add(ROUNDING_MS) < self.now {
            return Err(ReplayError::Backwards {
                at_ms: event.at_ms,
                after_ms: self.now,
            });
        }
        self.now = event.at_ms.max(self.now);
        let now = Tick::from_millis(event.at_ms);
        let mut answer = Answer {
            at_ms: event.at_ms,
            what: event.what,
            decision: None,
            reason: None,
            would_reject: None,
            retry_after_ms: None,
            state: State::Closed,
        };
        match event.what {
            Verb::Acquire => self.acquire(&breaker, event, now, &mut answer)?,
            Verb::Success => {
                self.take(event)?
                    .record(&Outcome::success(Duration::from_millis(event.took_ms)), now);
            }
            Verb::Failure => {
                let failure = event.failure()?;
                self.take(event)?.record(&Outcome::Failure(failure), now);
            }
            Verb::Cancel => self.take(event)?.cancel(now),
            Verb::Progress => {
                let name = event.of.as_deref().ok_or(ReplayError::Missing("of"))?;
                let unknown = || ReplayError::UnknownCall(name.to_owned());
                self.permits.get(name).ok_or_else(unknown)?.progress(now);
            }
            Verb::State => {}
            Verb::Force => {
                let until = event.for_ms.map(|ms| now + Duration::from_millis(ms));
                match event.to.ok_or(ReplayError::Missing("to"))? {
                    ForceTo::Open => breaker.force_open(until, now),
                    ForceTo::Closed => breaker.force_closed(until, now),
                    ForceTo::Auto => breaker.reset(now),
                }
            }
        }
        answer.state = breaker.state(now);
        Ok(answer)
    }

    fn acquire(
        &mut self,
        breaker: &Breaker,
        event: &Event<'_>,
        now: Tick,
        answer: &mut Answer,
    ) -> Result<(), ReplayError> {
        let name = event.name.as_deref().ok_or(ReplayError::Missing("as"))?;
        if self.permits.contains_key(name) {
            return Err(ReplayError::TakenCall(name.to_owned()));
        }
        match breaker.try_acquire_owned(Duration::ZERO, now) {
            Ok(permit) => {
                answer.decision = Some(if permit.is_probe() { "probe" } else { "allow" });
                answer.would_reject = permit
                    .would_reject()
                    .map(|rejection| rejection.reason.as_str());
                self.permits.insert(name.to_owned(), permit);
            }
            Err(rejection) => {
                answer.decision = Some("reject");
                answer.reason = Some(rejection.reason.as_str());
                if rejection.reason == crate::event::Reason::Open {
                    answer.retry_after_ms = Some(crate::tick::millis(rejection.retry_after));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, event: &Event<'_>) -> Result<Permit<'static>, ReplayError> {
        let name = event.of.as_deref().ok_or(ReplayError::Missing("of"))?;
        self.permits
            .remove(name)
            .ok_or_else(|| ReplayError::UnknownCall(name.to_owned()))
    }
}

impl Event<'_> {
    fn failure(&self) -> Result<Failure, ReplayError> {
        let mut failure = Failure::new(self.kind.ok_or(ReplayError::Missing("kind"))?);
        if let Some(ms) = self.retry_after_ms {
            failure = failure.retry_after(Duration::from_millis(ms));
        }
        Ok(if self.open {
            failure.open_now()
        } else {
            failure
        })
    }
}
