//! What a verdict means for a breaker where nobody waits for the provider, and the wall's time.

use std::time::{Duration, SystemTime};

use fuseline_core::Outcome;
use fuseline_llm::{Limits, Verdict};

/// What a breaker is told of a verdict on a call of the library's own, which nobody repeats: a short wait hint is no reason to
/// pass a failure over, as nobody waits for it; one of more than 30 s opens at once.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use fuseline::{Outcome, classify::{Head, classify_head}, outcome};
///
/// let headers = [("retry-after", "90")].as_slice();
/// let verdict = classify_head(&Head::new(429, &headers), SystemTime::UNIX_EPOCH);
/// let Some(verdict) = verdict else { unreachable!("429 is no success") };
/// assert!(matches!(outcome(&verdict, Duration::ZERO), Outcome::Failure(_)));
/// ```
pub fn outcome(verdict: &Verdict, took: Duration) -> Outcome {
    let max_wait = Limits::default().max_wait;
    let patience = verdict.retry_after.filter(|hint| *hint > max_wait);
    verdict.outcome(took, patience.map(|_| max_wait))
}

/// What time it is, for hints that are dates.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
