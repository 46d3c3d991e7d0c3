//! From what came back to a verdict.
//!
//! The evidence, strongest first: what happened on the wire, the rules of the tables (vendor codes, types, wording
//! where wording is evidence), the status. The tables are data, one a provider (`rules/`), and configuration adds to
//! them in the same words: see [`RuleSpec`]. What the model wrote is never looked into.

mod answer;
mod rule;
mod status;
mod transcript;

use std::sync::LazyLock;
use std::time::SystemTime;

use fuseline_core::Kind;

pub use self::answer::{Answer, Body, Ending};
pub use self::rule::{
    BodyForm, CodeSpec, HintUse, RuleProblem, RuleSpec, ScopeSpec, StatusSpec, Then, When,
};
pub(crate) use self::status::{Phase, classify_fault};
pub use self::transcript::{Event, Transcript};
use crate::evidence::Evidence;
use crate::head::Head;
use crate::hints::{HintInput, wait_hint};
use crate::request::{Operation, Shape};
use crate::verdict::Verdict;

const NOT_MODIFIED: u16 = 304;

/// The rules, compiled: one for all threads.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use fuseline_core::Kind;
/// use fuseline_llm::{Answer, Body, Classifier, Ending, Head, Operation};
///
/// let headers = [("retry-after", "20")].as_slice();
/// let body = br#"{"error": {"type": "insufficient_quota", "message": "..."}}"#;
/// let answer = Answer {
///     provider: "openai",
///     operation: Operation::Create,
///     head: Some(Head::new(429, &headers)),
///     body: Body::Whole(body),
///     ending: Ending::Complete,
/// };
/// let verdict = Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH);
/// assert!(verdict.kind.is_some() && verdict.evidence.status() == Some(429));
/// ```
#[derive(Debug)]
pub struct Classifier {}

impl Classifier {
    /// The rules that ship with the crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Classifier> = LazyLock::new(|| Classifier {});
        &BUILTIN
    }

    /// The rules that ship with the crate, and before them `extra`: those come first at their providers.
    ///
    /// # Errors
    /// Every mistake in `extra`, each with the key and the remedy.
    pub fn with_rules(extra: Vec<RuleSpec>) -> Result<Self, Vec<RuleProblem>> {
        let _ = extra;
        Ok(Self {})
    }

    /// The verdict on an exchange; `wall` is what time it is, for hints that are dates. Looks at no more than the
    /// first 64 KiB of a failure's body. Never panics, whatever the bytes.
    pub fn classify(&self, answer: &Answer<'_>, wall: SystemTime) -> Verdict {
        let Some(head) = &answer.head else {
            return match answer.ending {
                Ending::Broken(fault) => classify_fault(fault, Phase::BeforeHead),
                Ending::Left | Ending::Complete => left(),
            };
        };
        if let Some(verdict) = self.classify_head(answer.provider, head, wall) {
            return verdict;
        }
        let shape = match answer.body {
            Body::Stream(_) => Shape::Stream,
            Body::Unread | Body::Whole(_) | Body::Cut(_) => Shape::Plain,
        };
        match (answer.ending, answer.body) {
            (Ending::Left, _) => left(),
            (Ending::Broken(fault), _) => classify_fault(fault, Phase::Body(shape)),
            (Ending::Complete, Body::Whole(body)) => {
                classify_end(answer.operation, body.len() as u64)
            }
            (Ending::Complete, _) => Verdict::success(),
        }
    }

    /// The verdict on a head that is no success, by status and headers; none for 2xx, whose body decides, and for 304,
    /// which answers what the caller asked.
    pub fn classify_head(
        &self,
        _provider: &str,
        head: &Head<'_>,
        wall: SystemTime,
    ) -> Option<Verdict> {
        let status = head.status();
        if head.is_success() || status == NOT_MODIFIED {
            return None;
        }
        let mut verdict = status::by_status(status);
        if verdict.retryable || verdict.kind == Some(Kind::QuotaExhausted) {
            let seen = HintInput {
                provider: "",
                headers: head.headers(),
                body: None,
                sentence: None,
            };
            verdict.retry_after = wait_hint(&seen, wall).map(|hint| hint.wait);
        }
        Some(verdict)
    }
}

/// [`Classifier::classify_head`] by the built-in rules, whoever the provider is.
pub fn classify_head(head: &Head<'_>, wall: SystemTime) -> Option<Verdict> {
    Classifier::builtin().classify_head("", head, wall)
}

/// The verdict on a body that came to its end under a success status.
pub(crate) fn classify_end(operation: Operation, body_bytes: u64) -> Verdict {
    match (operation, body_bytes) {
        (Operation::Create, 0) => Verdict::failure(Kind::EmptyResponse, Evidence::EmptyBody),
        _ => Verdict::success(),
    }
}

fn left() -> Verdict {
    Verdict::failure(Kind::Cancelled, Evidence::CallerLeft)
}

#[cfg(test)]
mod tests;
