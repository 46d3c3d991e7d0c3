//! Replaying recorded events in virtual time: what the conformance vectors and `fuseline replay` are made of.
//!
//! A line either starts a case, with the settings of a fresh breaker, or is an event in it. Keys that are not known
//! here are ignored. The same lines give the same answers in every language.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
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

/// One line of a replay: with `case` it starts a fresh breaker with the settings in `breaker`, else it is an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line<'a> {
    #[serde(borrow)]
    case: Option<Cow<'a, str>>,
    breaker: Option<Box<PolicySpec>>,
    at_ms: Option<u64>,
    #[serde(rename = "do")]
    what: Option<Verb>,
    #[serde(rename = "as", borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    of: Option<Cow<'a, str>>,
    kind: Option<Kind>,
    retry_after_ms: Option<u64>,
    open: bool,
    took_ms: Option<u64>,
    to: Option<ForceTo>,
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
pub struct Answer<'e> {
    /// When.
    pub at_ms: u64,
    #[serde(rename = "do")]
    what: Verb,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    name: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'e str>,
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

impl<'e> Answer<'e> {
    fn new(at_ms: u64, what: Verb, event: &'e Line<'_>) -> Self {
        Self {
            at_ms,
            what,
            name: event.name.as_deref(),
            of: event.of.as_deref(),
            decision: None,
            reason: None,
            would_reject: None,
            retry_after_ms: None,
            state: State::Closed,
        }
    }
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
    permits: HashMap<String, Permit>,
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
    pub fn line<'e>(&mut self, line: &'e Line<'_>) -> Result<Option<Answer<'e>>, ReplayError> {
        let Some(case) = &line.case else {
            return self.event(line).map(Some);
        };
        let settings = line.breaker.as_deref().cloned().unwrap_or_default();
        let policy = Policy::new(&settings).map_err(ReplayError::Policy)?;
        self.permits.clear();
        self.breaker = Some(Breaker::new(ScopeName::provider(case), policy));
        self.now = 0;
        Ok(None)
    }

    /// The breaker of the present case.
    pub fn breaker(&self) -> Option<&Breaker> {
        self.breaker.as_ref()
    }

    fn event<'e>(&mut self, event: &'e Line<'_>) -> Result<Answer<'e>, ReplayError> {
        let breaker = self.breaker.clone().ok_or(ReplayError::NoCase)?;
        let at_ms = event.at_ms.ok_or(ReplayError::Missing("at_ms"))?;
        let what = event.what.ok_or(ReplayError::Missing("do"))?;
        if at_ms.saturating_add(ROUNDING_MS) < self.now {
            return Err(ReplayError::Backwards {
                at_ms,
                after_ms: self.now,
            });
        }
        self.now = at_ms.max(self.now);
        let now = Tick::from_millis(at_ms);
        let mut answer = Answer::new(at_ms, what, event);
        match what {
            Verb::Acquire => self.acquire(&breaker, event, now, &mut answer)?,
            Verb::Success => {
                let took = Duration::from_millis(event.took_ms.unwrap_or(0));
                self.take(event)?.record(&Outcome::success(took), now);
            }
            Verb::Failure => {
                let failure = event.failure()?;
                self.take(event)?.record(&Outcome::Failure(failure), now);
            }
            Verb::Cancel => self.take(event)?.cancel(now),
            Verb::Progress => {
                let name = event.of()?;
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
        event: &Line<'_>,
        now: Tick,
        answer: &mut Answer<'_>,
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

    fn take(&mut self, event: &Line<'_>) -> Result<Permit, ReplayError> {
        let name = event.of.as_deref().ok_or(ReplayError::Missing("of"))?;
        self.permits
            .remove(name)
            .ok_or_else(|| ReplayError::UnknownCall(name.to_owned()))
    }
}

impl Line<'_> {
    fn of(&self) -> Result<&str, ReplayError> {
        self.of.as_deref().ok_or(ReplayError::Missing("of"))
    }

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
