//! What a verdict means for a breaker where nobody waits for the provider, and the wall's time.

use std::time::{Duration, SystemTime};

use fuseline_core::Outcome;
use fuseline_llm::{Limits, Verdict};

/// A short hint is no reason to pass a failure over, as nobody waits for it; a long one opens at once.
pub(crate) fn outcome(verdict: &Verdict, took: Duration) -> Outcome {
    let max_wait = Limits::default().max_wait;
    let patience = verdict.retry_after.filter(|hint| *hint > max_wait);
    verdict.outcome(took, patience.map(|_| max_wait))
}

/// What time it is, for hints that are dates.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
