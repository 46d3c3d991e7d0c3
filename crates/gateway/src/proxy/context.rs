//! `Context`: what is known of one call while it runs, for its answer's headers and its line in the log.

mod over;
mod purpose;
mod tally;
mod text;

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use fuseline_core::{Clock, Kind, Reason, Registry, State, Tick};
use fuseline_llm::{Price, Target, Usage, Verdict};
use fuseline_telemetry::{CallOutcome, CallSpan, Metrics, Upstream};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Uri};
use tokio::sync::oneshot;

use super::aim::Aim;
use super::guard::state_of;
use super::story::Story;
use super::streamed::Streamed;
use super::way::Way;
use crate::caller::Caller;
pub(crate) use purpose::Delivered;
use purpose::Purpose;
use tally::{Tally, Told};
pub(crate) use text::header_text;
use text::{MAX_WHY, new_id};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-fuseline-request-id");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-fuseline-attempts");
const FALLBACK: HeaderName = HeaderName::from_static("x-fuseline-fallback");
const DEGRADED: HeaderName = HeaderName::from_static("x-fuseline-degraded");
const TARGET: HeaderName = HeaderName::from_static("x-fuseline-target");
const BREAKER: HeaderName = HeaderName::from_static("x-fuseline-breaker");
const WHY: HeaderName = HeaderName::from_static("x-fuseline-why");

/// Who answers where no target does.
const NOBODY: &str = "none";

/// One call's own record.
pub(crate) struct Context {
    id: String,
    registry: Registry,
    tally: Tally,
    caller: Caller,
    began: Tick,
    /// When the latest attempt began.
    attempt_began: Tick,
    attempts: u32,
    /// Among them those whose connection was dead, which count for nothing.
    replaced: u32,
    /// Where the answer comes from, as far as is known.
    aim: Option<Arc<Aim>>,
    /// The latest address at which nothing was found.
    not_found: Option<Uri>,
    answerer: Answerer,
    /// What went wrong last; while something is still going on, that the caller left before its end.
    kind: Option<Kind>,
    status: Option<StatusCode>,
    why: String,
    story: Story,
    streamed: Option<Streamed>,
    purpose: Purpose,
    /// By a plain answer.
    used: Usage,
    /// Of who answers.
    price: Option<Price>,
    /// Where calls are traced.
    span: Option<CallSpan>,
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
    /// Nobody yet: the call waits.
    Queue,
}

impl Answerer {
    /// What the caller is told of an answer that is not what he would usually get.
    const fn degraded(self) -> Option<&'static str> {
        match self {
            Self::First | Self::Fallback => None,
            Self::LastResort => Some("target"),
            Self::Cache => Some("cache"),
            Self::Queue => Some("queue"),
        }
    }
}

impl Context {
    pub(crate) fn begin(
        registry: &Registry,
        metrics: &Metrics,
        caller: Caller,
        span: Option<CallSpan>,
    ) -> Self {
        let now = registry.now();
        Self {
            id: new_id(),
            began: now,
            attempt_began: now,
            registry: registry.clone(),
            tally: Tally::new(metrics),
            caller,
            attempts: 0,
            replaced: 0,
            aim: None,
            not_found: None,
            answerer: Answerer::First,
            kind: Some(Kind::Cancelled),
            status: None,
            why: String::new(),
            story: Story::default(),
            streamed: None,
            purpose: Purpose::Call,
            used: Usage::default(),
            price: None,
            span,
        }
    }

    /// It is no call, and is not counted as one.
    pub(crate) fn is_errand(&mut self) {
        self.purpose = Purpose::Errand;
    }

    /// Tells how the call has ended once it has, whichever way.
    pub(crate) fn delivery(&mut self) -> oneshot::Receiver<Delivered> {
        let (teller, end) = oneshot::channel();
        self.purpose = Purpose::Delivery(teller);
        end
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
        self.attempt_began = self.now();
        self.kind = Some(Kind::Cancelled);
        self.used = Usage::default();
        if let Some(aim) = &self.aim {
            self.tally.begin(&aim.target, self.attempt_began);
        }
    }

    /// Nothing was found at the address that the latest attempt was sent to.
    pub(crate) fn not_found_at(&mut self, address: Uri) {
        self.not_found = Some(address);
    }

    pub(crate) const fn is_traced(&self) -> bool {
        self.span.is_some()
    }

    /// What is asked for, and of which model.
    pub(crate) fn asks(&mut self, operation: &'static str, model: &str) {
        if let Some(span) = &mut self.span {
            span.asks(operation, model);
        }
    }

    /// The attempt that was begun last goes there, and its request says which trace it belongs to.
    pub(crate) fn trace(&mut self, to: &Upstream<'_>, headers: &mut HeaderMap) {
        if let Some(span) = &mut self.span {
            self.tally.trace(span.attempt(to, headers));
        }
    }

    /// The one who waits for the answer.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Who answers, as far as is known.
    pub(crate) fn answered(&mut self, way: &Way<'_>) {
        self.is_at(way);
        self.answerer = way.answerer;
        self.price = way.price;
    }

    /// Nobody was asked; this target would have been the first.
    pub(crate) fn refused(&mut self, first: &Way<'_>) {
        self.is_at(first);
    }

    fn is_at(&mut self, way: &Way<'_>) {
        self.aim = Some(Arc::clone(&way.aim));
    }

    /// Nobody answers, and the call is served from what was answered before.
    pub(crate) fn recalled(&mut self, age: Duration) {
        self.because(format_args!(
            "answered from the cache, {} s old",
            age.as_secs()
        ));
        self.aim = None;
        self.price = None;
        self.answerer = Answerer::Cache;
        self.kind = None;
    }

    /// Nobody answers, and the call waits.
    pub(crate) fn queued(&mut self, id: &str) {
        self.because(format_args!("queued as {id}"));
        self.aim = None;
        self.price = None;
        self.answerer = Answerer::Queue;
        self.kind = Some(Kind::Local);
    }

    /// Whether what came of the call so far is a success.
    pub(crate) fn is_success(&self) -> bool {
        self.kind.is_none()
    }

    /// Whether a quota is what is spent, so that no repeating helps before it is filled again.
    pub(crate) fn is_spent(&self) -> bool {
        self.kind == Some(Kind::QuotaExhausted)
    }

    /// What came of the call so far, and of the attempt at who would answer; none is a success.
    pub(crate) fn ended(&mut self, kind: Option<Kind>) {
        self.kind = kind;
        let told = self.told(kind, self.status.map(|status| status.as_u16()));
        if let Some(aim) = &self.aim {
            self.tally.end(&aim.target, &told);
        }
    }

    /// What came of the attempt at this target, with which status, and of the call so far.
    pub(crate) fn ended_at(&mut self, target: &Target, kind: Option<Kind>, status: Option<u16>) {
        self.kind = kind;
        let told = self.told(kind, status);
        self.tally.end(target, &told);
    }

    fn told(&self, kind: Option<Kind>, status: Option<u16>) -> Told {
        let streamed = self.streamed.as_ref();
        Told {
            kind,
            status,
            usage: self.usage(),
            first_token: streamed.and_then(|stream| stream.first_token),
            now: self.registry.now(),
        }
    }

    /// What the attempt's whole answer used.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.used = usage;
    }

    /// What the answer used, as far as its provider has said.
    fn usage(&self) -> Usage {
        self.streamed
            .as_ref()
            .map_or(self.used, |stream| stream.usage)
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
        let took = self.now().since(self.attempt_began);
        self.story.tried(target, kind, took, verdict);
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
        if let Some(aim) = &self.aim {
            self.tally.forget(&aim.target);
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
        let mut add = |name, value| headers.insert(name, value);
        add(REQUEST_ID, header_text(&self.id));
        add(ATTEMPTS, (self.attempts - self.replaced).into());
        let is_first = self.answerer == Answerer::First;
        let fallback = match is_first {
            true => const { HeaderValue::from_static("false") },
            false => const { HeaderValue::from_static("true") },
        };
        add(FALLBACK, fallback);
        if let Some(degraded) = self.answerer.degraded() {
            add(DEGRADED, header_text(degraded));
        }
        let none = HeaderValue::from_static(NOBODY);
        add(
            TARGET,
            self.aim.as_ref().map_or(none, |aim| aim.name.clone()),
        );
        let breaker = HeaderValue::from_static(self.breaker_state());
        add(BREAKER, breaker);
        let why = match (self.why.is_empty(), self.attempts) {
            (false, _) => header_text(&self.why),
            (true, 0) => const { HeaderValue::from_static("answered by the gateway") },
            (true, _) => const { HeaderValue::from_static("answered at first try") },
        };
        add(WHY, why);
    }

    fn target_name(&self) -> String {
        let name = |aim: &Arc<Aim>| [aim.target.provider(), "/", aim.target.model()].concat();
        self.aim.as_ref().map_or_else(|| NOBODY.to_owned(), name)
    }

    /// The worst state among the target's breakers.
    fn breaker_state(&self) -> &'static str {
        match self.aim.as_ref().map(|aim| &aim.scopes) {
            None => NOBODY,
            Some(None) => State::Closed.as_str(),
            Some(Some(scopes)) => state_of(scopes, self.now()).as_str(),
        }
    }

    fn outcome(&self) -> CallOutcome {
        let is_answered =
            self.kind.is_none() || self.status.is_none() || self.answerer == Answerer::Queue;
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
