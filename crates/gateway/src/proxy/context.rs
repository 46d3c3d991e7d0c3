//! `Context`: what is known of one call while it runs, for its answer's headers and its line in the log.

mod tally;
mod text;

use std::fmt::{Display, Write as _};
use std::time::Duration;

use fuseline_core::{Clock, Kind, Reason, Registry, Tick};
use fuseline_llm::{StreamEnding, Target, Verdict};
use fuseline_telemetry::{CallOutcome, EndedCall, Metrics};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::guard::state_of;
use super::story::Story;
use super::streamed::Streamed;
use crate::caller::{CLIENT_SLOW, Caller};
use tally::Tally;
use text::{MAX_WHY, header_text, millis, new_id};

/// One call's own record.
pub(crate) struct Context {
    id: String,
    registry: Registry,
    tally: Tally,
    caller: Caller,
    began: Tick,
    attempts: u32,
    /// Among them those whose connection was dead, which count for nothing.
    replaced: u32,
    target: Option<Target>,
    answerer: Answerer,
    /// What went wrong last; while something is still going on, that the caller left before its end.
    kind: Option<Kind>,
    status: Option<StatusCode>,
    why: String,
    story: Story,
    streamed: Option<Streamed>,
}

/// Who answers, seen from the route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    First,
    Fallback,
    /// A target of `on_exhausted`.
    LastResort,
    /// The last good answer.
    Cache,
}

impl Answerer {
    /// What the caller is told of an answer that is not what he would usually get.
    const fn degraded(self) -> Option<&'static str> {
        match self {
            Self::First | Self::Fallback => None,
            Self::LastResort => Some("target"),
            Self::Cache => Some("cache"),
        }
    }
}

impl Context {
    pub(crate) fn begin(registry: &Registry, metrics: &Metrics, caller: Caller) -> Self {
        Self {
            id: new_id(),
            began: registry.now(),
            registry: registry.clone(),
            tally: Tally::new(metrics),
            caller,
            attempts: 0,
            replaced: 0,
            target: None,
            answerer: Answerer::First,
            kind: Some(Kind::Cancelled),
            status: None,
            why: String::new(),
            story: Story::default(),
            streamed: None,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.registry.clock()
    }

    pub(crate) fn now(&self) -> Tick {
        self.registry.now()
    }

    /// An attempt begins, at who would answer.
    pub(crate) fn attempt(&mut self) {
        self.attempts += 1;
        self.kind = Some(Kind::Cancelled);
        if let Some(target) = &self.target {
            self.tally.begin(target);
        }
    }

    /// The one who waits for the answer.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Who answers, as far as is known.
    pub(crate) fn answered(&mut self, target: &Target, answerer: Answerer) {
        self.target = Some(target.clone());
        self.answerer = answerer;
    }

    /// Nobody was asked; this target would have been the first.
    pub(crate) fn refused(&mut self, first: &Target) {
        self.target = Some(first.clone());
    }

    /// Nobody answers, and the call is served from what was answered before.
    pub(crate) fn recalled(&mut self, age: Duration) {
        self.because(format_args!(
            "answered from the cache, {} s old",
            age.as_secs()
        ));
        self.target = None;
        self.answerer = Answerer::Cache;
        self.kind = None;
    }

    /// Whether what came of the call so far is a success.
    pub(crate) fn is_success(&self) -> bool {
        self.kind.is_none()
    }

    /// What came of the call so far, and of the attempt at who would answer; none is a success.
    pub(crate) fn ended(&mut self, kind: Option<Kind>) {
        self.kind = kind;
        if let Some(target) = &self.target {
            self.tally.end(target, kind);
        }
    }

    /// What came of the attempt at this target, and of the call so far.
    pub(crate) fn ended_at(&mut self, target: &Target, kind: Option<Kind>) {
        self.kind = kind;
        self.tally.end(target, kind);
    }

    /// The gateway itself answers. What became of attempts that came to an end stays the reason.
    pub(crate) fn refuses(&mut self) {
        if self.attempts == 0 || self.tally.is_under_way() {
            self.ended(Some(Kind::Local));
        }
    }

    /// One more reason for what happened, in order.
    pub(crate) fn because(&mut self, reason: impl Display) {
        if self.why.len() < MAX_WHY {
            let separator = if self.why.is_empty() { "" } else { "; " };
            let _ = write!(self.why, "{separator}{reason}");
        }
    }

    /// An attempt has failed.
    pub(crate) fn failed(&mut self, target: String, kind: Kind, verdict: &Verdict) {
        self.because(format_args!("{target}: {kind} ({})", verdict.evidence));
        self.story.tried(target, kind, verdict);
    }

    /// A target was not asked.
    pub(crate) fn skipped(&mut self, target: String, reason: Reason, wait: Duration) {
        self.story.skipped(target, reason, wait);
    }

    /// What became of the call at each of its targets.
    pub(crate) fn story(&self) -> &Story {
        &self.story
    }

    /// Whether nothing has been sent yet.
    pub(crate) fn is_first(&self) -> bool {
        self.attempts == 0
    }

    /// The attempt that was begun last had a dead connection, and is made again.
    pub(crate) fn replaced(&mut self) {
        self.replaced += 1;
        if let Some(target) = &self.target {
            self.tally.forget(target);
        }
    }

    /// Why the call ended as it did.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// How the stream went that the caller got.
    pub(crate) fn streamed(&mut self, streamed: Streamed) {
        self.streamed = Some(streamed);
    }

    /// Adds our headers and takes nothing away.
    pub(crate) fn dress(&self, headers: &mut HeaderMap) {
        headers.reserve(7);
        let mut add = |name, value| headers.insert(HeaderName::from_static(name), value);
        add("x-fuseline-request-id", header_text(&self.id));
        add(
            "x-fuseline-attempts",
            (self.attempts - self.replaced).into(),
        );
        let is_first = self.answerer == Answerer::First;
        let fallback = if is_first { "false" } else { "true" };
        add("x-fuseline-fallback", HeaderValue::from_static(fallback));
        if let Some(degraded) = self.answerer.degraded() {
            add("x-fuseline-degraded", header_text(degraded));
        }
        add("x-fuseline-target", header_text(&self.target_name()));
        let breaker = HeaderValue::from_static(self.breaker_state());
        add("x-fuseline-breaker", breaker);
        let why = match (self.why.is_empty(), self.attempts) {
            (false, _) => header_text(&self.why),
            (true, 0) => HeaderValue::from_static("answered by the gateway"),
            (true, _) => HeaderValue::from_static("answered at first try"),
        };
        add("x-fuseline-why", why);
    }

    fn target_name(&self) -> String {
        let name = |target: &Target| format!("{}/{}", target.provider(), target.model());
        self.target.as_ref().map_or_else(|| "none".to_owned(), name)
    }

    /// The worst state among the target's breakers.
    fn breaker_state(&self) -> &'static str {
        self.target
            .as_ref()
            .map_or("none", |target| state_of(&self.registry, target).as_str())
    }

    fn outcome(&self) -> CallOutcome {
        let is_answered = self.kind.is_none() || self.status.is_none();
        if self.attempts == 0 && !is_answered {
            CallOutcome::Rejected
        } else {
            CallOutcome::of(self.kind)
        }
    }

    /// The caller gets this status.
    pub(crate) fn answer(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

/// The call is over, whichever way: it is counted, and has one line in the log.
impl Drop for Context {
    fn drop(&mut self) {
        let took = self.now().since(self.began);
        let took_ms = millis(took);
        let status = self.status.map(|status| status.as_u16());
        let is_ours = self.attempts == 0 && self.answerer != Answerer::Cache;
        if is_ours && status.is_some_and(|status| status < 400) {
            return tracing::debug!(request_id = self.id, status, took_ms, "answered here");
        }
        self.ended(self.kind);
        let outcome = self.outcome();
        let streamed = self.streamed.as_ref();
        self.tally.close(&EndedCall {
            outcome,
            kind: self.kind,
            took,
            first_token: streamed.and_then(|stream| stream.first_token),
            by_fallback: outcome == CallOutcome::Success && self.answerer != Answerer::First,
        });
        if is_ours && status == Some(401) {
            // Anybody can cause it; the log tells of all of them together.
            return tracing::debug!(
                request_id = self.id,
                status,
                took_ms,
                why = self.why,
                "call"
            );
        }
        let mut kind = self.kind.map(Kind::as_str);
        if let (Some(Kind::Cancelled), Some(limit)) = (self.kind, self.caller.slow()) {
            self.because(format_args!("the caller took nothing for {limit:?}"));
            kind = Some(CLIENT_SLOW);
        }
        let streamed = self.streamed.as_ref();
        if let Some(stream) = streamed.filter(|_| outcome == CallOutcome::Failure) {
            stream.tell_failure(&self.id, &self.target_name());
        }
        let usage = streamed.map(|stream| stream.usage);
        tracing::info!(
            request_id = self.id,
            status,
            target = self.target_name(),
            breaker_state = self.breaker_state(),
            attempts = self.attempts - self.replaced,
            degraded = self.answerer.degraded(),
            kind,
            took_ms,
            first_token_ms = streamed.and_then(|stream| stream.first_token).map(millis),
            stream = streamed
                .and_then(|stream| stream.ending)
                .map(StreamEnding::as_str),
            left_out = streamed
                .map(|stream| stream.left_out)
                .filter(|events| *events > 0),
            input_tokens = usage.and_then(|usage| usage.input_tokens),
            output_tokens = usage.and_then(|usage| usage.output_tokens),
            why = self.why,
            "call"
        );
    }
}
