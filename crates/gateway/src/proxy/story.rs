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
    /// For the log alone.
    #[serde(skip)]
    took: Duration,
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
    pub(crate) fn tried(&mut self, target: String, kind: Kind, took: Duration, verdict: &Verdict) {
        self.attempts.push(Tried {
            target,
            kind: kind.as_str(),
            took,
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

    /// The attempts that failed and the targets that were not asked, as a list in JSON for the call's line in the log; none
    /// where there are neither.
    pub(crate) fn line(&self) -> Option<String> {
        let tried = self.attempts.iter().map(|tried| {
            let took_ms = millis(tried.took);
            serde_json::json!({ "target": tried.target, "kind": tried.kind, "took_ms": took_ms })
        });
        let skipped = self.skipped.iter().map(
            |skipped| serde_json::json!({ "target": skipped.target, "skipped": skipped.reason }),
        );
        let told: Vec<_> = tried.chain(skipped).collect();
        (!told.is_empty()).then(|| serde_json::Value::from(told).to_string())
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
