//! `Context`: what is known of one call while it runs, for its answer's headers and its line in the log.

use std::collections::hash_map::RandomState;
use std::fmt::{Display, Write as _};
use std::hash::BuildHasher as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fuseline_core::{Clock, Kind, Registry, Tick};
use fuseline_llm::{StreamEnding, StreamGuard, Target, Usage};
use fuseline_telemetry::{CallOutcome, EndedCall, Metrics};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::guard::state_of;
use crate::caller::{CLIENT_SLOW, Caller};

/// Longer explanations are cut: a header is no place for a story.
const MAX_WHY: usize = 512;

/// One call's own record.
pub(crate) struct Context {
    id: String,
    registry: Registry,
    metrics: Metrics,
    caller: Caller,
    began: Tick,
    attempts: u32,
    /// Whom the attempt is at that goes on.
    trying: Option<Target>,
    target: Option<Target>,
    answerer: Answerer,
    /// What went wrong last; while something is still going on, that the caller left before its end.
    kind: Option<Kind>,
    status: Option<StatusCode>,
    why: String,
    streamed: Option<Streamed>,
}

/// What the guard of a call's stream has seen.
struct Streamed {
    /// None where the caller left before its end.
    ending: Option<StreamEnding>,
    usage: Usage,
    left_out: u64,
    first_token: Option<Duration>,
}

/// Who answers, seen from the route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    First,
    Fallback,
}

impl Context {
    pub(crate) fn begin(registry: &Registry, metrics: &Metrics, caller: Caller) -> Self {
        Self {
            id: new_id(),
            began: registry.now(),
            registry: registry.clone(),
            metrics: metrics.clone(),
            caller,
            attempts: 0,
            trying: None,
            target: None,
            answerer: Answerer::First,
            kind: Some(Kind::Cancelled),
            status: None,
            why: String::new(),
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

    /// An attempt begins.
    pub(crate) fn attempt(&mut self, target: &Target, answerer: Answerer) {
        self.attempts += 1;
        self.kind = Some(Kind::Cancelled);
        self.trying = Some(target.clone());
        self.answered(target, answerer);
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

    /// What came of the call so far, and of the attempt that went on; none is a success.
    pub(crate) fn ended(&mut self, kind: Option<Kind>) {
        self.kind = kind;
        if let Some(target) = self.trying.take() {
            self.metrics
                .attempt(target.provider(), target.model(), kind);
        }
    }

    /// The gateway itself answers. What became of attempts that came to an end stays the reason.
    pub(crate) fn refuses(&mut self) {
        if self.attempts == 0 || self.trying.is_some() {
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

    /// Why the call ended as it did.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// How the stream went that the caller got.
    pub(crate) fn streamed(&mut self, guard: &StreamGuard) {
        self.streamed = Some(Streamed {
            ending: guard.ending(),
            usage: guard.usage(),
            left_out: guard.left_out(),
            first_token: guard.first_token(),
        });
    }

    /// Adds our headers and takes nothing away.
    pub(crate) fn dress(&self, headers: &mut HeaderMap) {
        let mut add = |name, value: &str| {
            headers.insert(HeaderName::from_static(name), header_text(value));
        };
        add("x-fuseline-request-id", &self.id);
        add("x-fuseline-attempts", &self.attempts.to_string());
        add(
            "x-fuseline-fallback",
            if self.answerer == Answerer::Fallback {
                "true"
            } else {
                "false"
            },
        );
        add("x-fuseline-target", &self.target_name());
        add("x-fuseline-breaker", self.breaker_state());
        add(
            "x-fuseline-why",
            match (self.why.is_empty(), self.attempts) {
                (false, _) => &self.why,
                (true, 0) => "answered by the gateway",
                (true, _) => "answered at first try",
            },
        );
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
        if self.attempts == 0 && self.status.is_some() {
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
        if self.attempts == 0 && status.is_some_and(|status| status < 400) {
            return tracing::debug!(request_id = self.id, status, took_ms, "answered here");
        }
        self.ended(self.kind);
        let outcome = self.outcome();
        let streamed = self.streamed.as_ref();
        self.metrics.call(&EndedCall {
            outcome,
            kind: self.kind,
            took,
            first_token: streamed.and_then(|stream| stream.first_token),
            by_fallback: outcome == CallOutcome::Success && self.answerer == Answerer::Fallback,
        });
        let mut kind = self.kind.map(Kind::as_str);
        if let (Some(Kind::Cancelled), Some(limit)) = (self.kind, self.caller.slow()) {
            self.because(format_args!("the caller took nothing for {limit:?}"));
            kind = Some(CLIENT_SLOW);
        }
        let streamed = self.streamed.as_ref();
        let usage = streamed.map(|stream| stream.usage);
        tracing::info!(
            request_id = self.id,
            status,
            target = self.target_name(),
            breaker_state = self.breaker_state(),
            attempts = self.attempts,
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Unique in this process, and most likely beyond it.
fn new_id() -> String {
    static PROCESS: LazyLock<u64> =
        LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(
        "fl-{:016x}-{:x}",
        *PROCESS,
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Text that any HTTP client can read.
fn header_text(text: &str) -> HeaderValue {
    let readable = |sign: char| {
        if (' '..='~').contains(&sign) {
            sign
        } else {
            '?'
        }
    };
    let text: String = text.chars().take(MAX_WHY).map(readable).collect();
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unreadable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_header_text_is_plain() {
        assert_ne!(new_id(), new_id());
        assert_eq!(header_text("a\nb\u{e9}"), "a?b?");
        assert_eq!(header_text(&"x".repeat(5_000)).len(), MAX_WHY);
    }
}
