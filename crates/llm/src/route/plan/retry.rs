//! Further attempts on the same target: when, and whether at all.

use std::time::Duration;

use fuseline_core::{Kind, Tick};

use super::{Again, Chance, Plan};
use crate::evidence::Evidence;
use crate::route::step::{Admission, Standing};
use crate::target::Target;
use crate::verdict::Verdict;

const BASE: Duration = Duration::from_millis(500);
/// Overload passes in seconds, not in tenths.
const OVERLOADED_BASE: Duration = Duration::from_secs(2);

impl Plan {
    /// Whether [`after`](Self::after) will replace the attempt's connection: one that was dead before the provider began is
    /// replaced once a visit, which is no attempt and no retry.
    pub fn replaces_connection(&self, verdict: &Verdict, standing: Standing, now: Tick) -> bool {
        let is_replaceable =
            matches!(verdict.evidence, Evidence::Fault(fault) if fault.is_replaceable());
        is_replaceable
            && standing != Standing::Outdated
            && !self.remaining(now).is_zero()
            && self.replacement == Chance::Left
    }

    /// Whether another key of the same model takes calls: then the limited one rests alone.
    pub(super) fn has_other_key(
        &self,
        limited: &Target,
        mut admission: impl FnMut(&Target) -> Admission,
    ) -> bool {
        let mut others = self.targets.iter().zip(&self.spent);
        others.any(|(target, spent)| {
            let mut takes_calls =
                |target| matches!(admission(target), Admission::Ready | Admission::Probe);
            !spent && target.is_same_model(limited) && takes_calls(target)
        })
    }

    /// How long to wait for the next attempt on the same target; none where there is to be none.
    pub(super) fn delay(
        &mut self,
        kind: Kind,
        verdict: &Verdict,
        again: Again,
        now: Tick,
    ) -> Option<Duration> {
        if !verdict.retryable
            || self.retries >= self.limits.retries
            || self.attempts >= self.limits.max_attempts
        {
            return None;
        }
        let delay = match (again, verdict.wait()) {
            (Again::AtOnce, _) if self.retries == 0 => Duration::ZERO,
            (Again::AtOnce | Again::Never, _) => return None,
            (Again::Backoff, Some(hint)) if hint <= self.limits.max_wait => hint,
            (Again::Backoff, Some(_)) => return None,
            (Again::Backoff, None) if kind == Kind::Overloaded => {
                self.jitter.delay(OVERLOADED_BASE, self.retries)
            }
            (Again::Backoff, None) => self.jitter.delay(BASE, self.retries),
        };
        let is_in_time = delay < self.remaining(now);
        (is_in_time && self.pay_for_retry(now)).then_some(delay)
    }

    pub(super) fn pay_for_retry(&mut self, now: Tick) -> bool {
        let granted = self
            .retry_budget
            .as_ref()
            .is_none_or(|budget| budget.try_spend(now));
        self.retry_denied |= !granted;
        granted
    }
}
