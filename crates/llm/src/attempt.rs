//! `Attempt`: one target, one permit, one verdict. The only place where permits and classification meet.
//!
//! A driver does the I/O and tells what it saw:
//!
//! 1. [`Attempt::begin`] asks the target's breakers for leave.
//! 2. [`head`](Attempt::head), [`body`](Attempt::body) for each piece, then one of
//!    [`answered`](Attempt::answered), where the answer was read, [`end`](Attempt::end), where it was passed on,
//!    [`failed`](Attempt::failed) and [`late`](Attempt::late). A stream under a [`StreamGuard`] is told by
//!    [`watched`](Attempt::watched) for each piece and [`stream_ended`](Attempt::stream_ended) instead. The first verdict
//!    stands: what is said after it changes nothing.
//! 3. With that verdict it asks the [`Plan`](crate::Plan) for the next step and hands it to
//!    [`settle`](Attempt::settle), which records the outcome unless the permit spans the coming retry; after the wait
//!    comes [`again`](Attempt::again).
//!
//! **Whatever happens, the permit settles exactly once.** A success is recorded the moment it is known. An attempt
//! that is dropped (a panic) is cancelled, in the middle of a retry's wait as well; so is one whose caller
//! [leaves](Attempt::cancelled), unless he has waited for so long that his leaving is the provider's failure.

use std::fmt;
use std::time::{Duration, SystemTime};

use fuseline_core::{Count, Kind, ScopedPermit, ScopedRejection, Scopes, Tick};

use crate::classify::{Answer, Body, Classifier, Phase, classify_end, classify_fault};
use crate::evidence::{Evidence, Fault};
use crate::head::Head;
use crate::request::{Operation, Shape};
use crate::route::{Standing, Step};
use crate::stream::{StreamEnding, StreamGuard, Usage};
use crate::verdict::Verdict;

/// Those of a stream's head say nothing of how it ended.
const NO_HEADERS: &[(&str, &str)] = &[];

/// What an attempt is to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What the request is for: only where an answer was asked for is an empty one a failure.
    pub operation: Operation,
    /// Whether the answer is a stream.
    pub shape: Shape,
    /// Whether the permit spans the target's retries.
    pub count: Count,
    /// The attempt's own time limit; a probe's lease outlives it.
    pub limit: Duration,
    /// A streaming probe that has delivered for this long is a success.
    pub probe_proof: Duration,
    /// A caller who leaves after this long without a byte of a body, of a watched stream without content, has met a
    /// timeout.
    pub cancel_counts_after: Duration,
}

/// One visit to a target.
#[derive(Debug)]
#[must_use = "an attempt that is dropped is cancelled: the call is not counted"]
pub struct Attempt {
    scopes: Scopes,
    permit: Option<ScopedPermit>,
    role: Role,
    terms: Terms,
    exchange: Exchange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Plain,
    Probe,
}

/// One request and its answer.
#[derive(Debug)]
struct Exchange {
    began: Tick,
    phase: Phase,
    /// The first byte of the body; of a watched stream, the first content event.
    began_to_deliver: Option<Tick>,
    body_bytes: u64,
    verdict: Option<Verdict>,
    /// What a whole answer says that it used.
    usage: Usage,
    /// Until the verdict, so far.
    took: Duration,
}

/// Why a target gets no further attempt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Denied {
    /// The circuit has changed since the permit was given.
    Outdated,
    /// A new permit was refused.
    Rejected(ScopedRejection),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outdated => f.write_str("the circuit has changed since the call was admitted"),
            Self::Rejected(rejection) => rejection.fmt(f),
        }
    }
}

impl std::error::Error for Denied {}

impl Attempt {
    /// Asks the target's breakers for leave.
    ///
    /// # Errors
    /// The refusal of the breaker with the longest wait.
    pub fn begin(scopes: &Scopes, terms: Terms, now: Tick) -> Result<Self, ScopedRejection> {
        let permit = scopes.try_acquire(terms.limit, now)?;
        let role = if permit.is_probe() {
            Role::Probe
        } else {
            Role::Plain
        };
        Ok(Self {
            scopes: scopes.clone(),
            permit: Some(permit),
            role,
            terms,
            exchange: Exchange::new(now),
        })
    }

    /// The head has come, with this status: what follows a failure is no stream, whatever was asked for.
    pub fn head(&mut self, status: u16, now: Tick) {
        let is_success = (200..300).contains(&status);
        self.exchange.phase = Phase::Body(if is_success {
            self.terms.shape
        } else {
            Shape::Plain
        });
        self.sign_of_life(now);
    }

    /// A piece of the body has come.
    pub fn body(&mut self, bytes: usize, now: Tick) {
        if bytes == 0 {
            return;
        }
        self.exchange.body_bytes = self.exchange.body_bytes.saturating_add(bytes as u64);
        let first = *self.exchange.began_to_deliver.get_or_insert(now);
        self.sign_of_life(now);
        if self.exchange.phase == Phase::Body(Shape::Stream) {
            self.prove(now.since(first), now);
        }
    }

    /// The guard has been told of another piece of the stream. Content events are signs of life, nothing else is.
    pub fn watched(&mut self, guard: &StreamGuard, now: Tick) {
        let (Some(took), Some(delivered)) = (guard.first_token(), guard.delivered_for()) else {
            return;
        };
        let first = guard.sent() + took;
        self.exchange.began_to_deliver = Some(first);
        if self.role == Role::Probe && guard.last_content() == Some(now) {
            self.sign_of_life(now);
            self.prove(delivered, now);
        }
    }

    /// The answer has been read as far as it is read before it is passed on; `wall` is what time it is. A rate limit's
    /// hint holds other calls of the same key back at once.
    pub fn answered(
        &mut self,
        classifier: &Classifier,
        answer: &Answer<'_>,
        wall: SystemTime,
        now: Tick,
    ) -> Verdict {
        let verdict = classifier.judge(answer, wall, &mut self.exchange.usage);
        self.judged(verdict, now)
    }

    /// The guard knows how the stream ended. `provider` is the name in the rules, as in [`Answer::provider`].
    pub fn stream_ended(
        &mut self,
        classifier: &Classifier,
        provider: &str,
        guard: &StreamGuard,
        wall: SystemTime,
        now: Tick,
    ) -> Verdict {
        let ending = guard.ending().unwrap_or(StreamEnding::Truncated);
        let answer = Answer {
            provider,
            operation: self.terms.operation,
            head: Some(Head::new(200, &NO_HEADERS)),
            body: Body::Stream(&guard.transcript()),
            ending: ending.for_classifier(),
        };
        let mut verdict = classifier.classify(&answer, wall);
        if matches!(verdict.evidence, Evidence::Fault(_)) {
            verdict.evidence = Evidence::Stream(ending);
        }
        self.judged(verdict, now)
    }

    fn judged(&mut self, verdict: Verdict, now: Tick) -> Verdict {
        if verdict.kind == Some(Kind::RateLimit)
            && let Some(hint) = verdict.wait()
        {
            self.scopes.hold(hint, now);
        }
        self.conclude(verdict, now)
    }

    /// The body has come to its proper end, passed on and not looked into.
    pub fn end(&mut self, now: Tick) -> Verdict {
        let verdict = classify_end(self.terms.operation, self.exchange.body_bytes);
        self.conclude(verdict, now)
    }

    /// The exchange has broken off.
    pub fn failed(&mut self, fault: Fault, now: Tick) -> Verdict {
        let verdict = classify_fault(fault, self.exchange.phase);
        self.conclude(verdict, now)
    }

    /// One of our limits has passed before there was a whole answer: the one of this name, `after` so long.
    pub fn late(&mut self, limit: &'static str, after: Duration, now: Tick) -> Verdict {
        let verdict = Verdict {
            evidence: Evidence::Late { limit, after },
            ..classify_fault(Fault::Deadline, self.exchange.phase)
        };
        self.conclude(verdict, now)
    }

    /// The driver knows that the failure is its own side's: it will be recorded as neutral.
    pub fn acquit(&mut self) {
        if let Some(verdict) = &mut self.exchange.verdict {
            verdict.provider_fault = false;
        }
    }

    /// Records the verdict, unless `next` repeats the attempt under the same permit. `patience` is how long the call
    /// could still wait for a target, [`Plan::patience`](crate::Plan::patience).
    pub fn settle(&mut self, next: Step, patience: Duration, now: Tick) {
        let Some(verdict) = self.exchange.verdict.clone() else {
            return;
        };
        let repeats = matches!(next, Step::RetryAfter { .. });
        let replaced = matches!(verdict.evidence, Evidence::Fault(fault) if fault.is_replaceable());
        if !repeats || (self.terms.count == Count::Attempt && !replaced) {
            self.record(&verdict, self.exchange.took, patience, now);
        }
    }

    /// Begins the retry that [`settle`](Self::settle) was told of: under the same permit if that is current, or under
    /// a new one where each attempt has its own.
    ///
    /// # Errors
    /// The target gets no further attempt now. The driver asks the plan for another and hands the step to
    /// [`settle`](Self::settle).
    pub fn again(&mut self, now: Tick) -> Result<(), Denied> {
        match &self.permit {
            Some(permit) if permit.is_current(now) => {}
            Some(_) => return Err(Denied::Outdated),
            None => *self = Self::begin(&self.scopes, self.terms, now).map_err(Denied::Rejected)?,
        }
        self.exchange = Exchange::new(now);
        Ok(())
    }

    /// The caller has left. That counts for nothing, unless he has waited for a first byte, of a watched stream for
    /// content, for longer than `cancel_counts_after`: then it is a timeout.
    pub fn cancelled(&mut self, now: Tick) {
        let waited = now.since(self.exchange.began);
        let is_kept_waiting =
            self.exchange.verdict.is_none() && self.exchange.began_to_deliver.is_none();
        if is_kept_waiting && waited >= self.terms.cancel_counts_after {
            let verdict = Verdict::failure(Kind::Timeout, Evidence::CallerLeft);
            self.record(&verdict, waited, Duration::ZERO, now);
        } else if let Some(permit) = self.permit.take() {
            permit.cancel(now);
        }
    }

    /// How the attempt stands with its breakers.
    pub fn standing(&self, now: Tick) -> Standing {
        match &self.permit {
            Some(permit) if permit.is_current(now) => match self.role {
                Role::Plain => Standing::Current,
                Role::Probe => Standing::Probe,
            },
            _ => Standing::Outdated,
        }
    }

    /// How long the exchange took until its verdict: a stream until its first content.
    pub fn took(&self) -> Duration {
        self.exchange.took
    }

    /// The verdict of the exchange, once there is one.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.exchange.verdict.as_ref()
    }

    /// What the whole answer that was told says that it used; of a stream, its guard knows.
    pub fn usage(&self) -> Usage {
        self.exchange.usage
    }

    /// A probe that has delivered for long enough has succeeded, however the stream goes on.
    fn prove(&mut self, delivered: Duration, now: Tick) {
        let Exchange {
            began,
            began_to_deliver: Some(first),
            verdict: None,
            ..
        } = self.exchange
        else {
            return;
        };
        if self.role == Role::Probe && delivered >= self.terms.probe_proof {
            self.record(&Verdict::success(), first.since(began), Duration::ZERO, now);
        }
    }

    fn sign_of_life(&self, now: Tick) {
        if let Some(permit) = &self.permit {
            permit.progress(now);
        }
    }

    fn conclude(&mut self, verdict: Verdict, now: Tick) -> Verdict {
        let exchange = &mut self.exchange;
        if exchange.verdict.is_none() {
            let content = match self.terms.shape {
                Shape::Plain => now,
                Shape::Stream => exchange.began_to_deliver.unwrap_or(now),
            };
            exchange.took = content.since(exchange.began);
        }
        let verdict = exchange.verdict.get_or_insert(verdict).clone();
        if verdict.is_success() {
            self.record(&verdict, self.exchange.took, Duration::ZERO, now);
        }
        verdict
    }

    fn record(&mut self, verdict: &Verdict, took: Duration, patience: Duration, now: Tick) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let patience = (self.role == Role::Plain).then_some(patience);
        permit.record(&verdict.outcome(took, patience), verdict.charged_to(), now);
    }
}

impl Exchange {
    fn new(now: Tick) -> Self {
        Self {
            began: now,
            phase: Phase::BeforeHead,
            began_to_deliver: None,
            body_bytes: 0,
            verdict: None,
            usage: Usage::default(),
            took: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
