//! `Story`: what became of a call at each of its targets, for the one who gets no answer.

use std::time::Duration;

use fuseline_core::{Kind, Reason};
use fuseline_llm::Verdict;
use serde::Serialize;

/// Attempts in their order, and the targets that were not asked. Names and numbers, nothing that anybody wrote.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Story {
    attempts: Vec<Tried>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
struct Tried {
    target: String,
    kind: &'static str,
    /// What the provider asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u64>,
    /// The request may have been carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Skipped {
    target: String,
    reason: &'static str,
    wait_ms: u64,
}

impl Story {
    pub(crate) fn tried(&mut self, target: String, kind: Kind, verdict: &Verdict) {
        self.attempts.push(Tried {
            target,
            kind: kind.as_str(),
            wait_ms: verdict.retry_after.map(millis),
            outcome: verdict.is_outcome_unknown().then_some("unknown"),
        });
    }

    /// A target was not asked; of several times the last counts.
    pub(crate) fn skipped(&mut self, target: String, reason: Reason, wait: Duration) {
        self.skipped.retain(|earlier| earlier.target != target);
        self.skipped.push(Skipped {
            target,
            reason: reason.as_str(),
            wait_ms: millis(wait),
        });
    }

    /// Whether there is anything to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.skipped.is_empty()
    }

    /// Whether the request may have been carried out somewhere.
    pub(crate) fn is_outcome_unknown(&self) -> bool {
        self.attempts.iter().any(|tried| tried.outcome.is_some())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
