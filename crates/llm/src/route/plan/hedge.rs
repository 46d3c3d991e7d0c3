//! A second attempt beside the first, at another target, when the first one takes long.

use fuseline_core::{Scope, Tick};

use super::{Chance, Plan};
use crate::route::step::Admission;
use crate::target::Target;
use crate::verdict::Verdict;

impl Plan {
    /// The target of a second attempt while the first goes on: the next one in order that has another model, if the call
    /// may make another attempt and the retry budget pays for it. Ask the target's breakers as for
    /// [`Step::Try`](super::Step::Try).
    ///
    /// Once both are under way the request may be running at two places, so that an unknown end of either is the end of
    /// the call, unless [`Limits::resend_unknown`](super::Limits::resend_unknown) says otherwise.
    pub fn hedge(
        &mut self,
        admission: impl FnMut(&Target) -> Admission,
        now: Tick,
    ) -> Option<usize> {
        let first = self.visiting.and_then(|at| self.targets.get(at)).cloned()?;
        let has_attempts = self.attempts.saturating_add(1) < self.limits.max_attempts;
        if !has_attempts || self.remaining(now).is_zero() || self.unknown_end == Chance::Used {
            return None;
        }
        let [_, mut others] = self.eligible();
        others.retain(|at| {
            let other = self.targets.get(*at);
            other.is_some_and(|other| !other.is_same_model(&first))
        });
        let at = self.choose(&others, admission, &mut None)?;
        if !self.pay_for_retry(now) {
            return None;
        }
        self.spend(at);
        self.unknown_end = Chance::Used;
        Some(at)
    }

    /// One of two attempts has failed; the call goes on with the other one, whatever the table says of the failure.
    pub fn lost(&mut self, failed: usize, verdict: &Verdict, survivor: usize) {
        self.attempts = self.attempts.saturating_add(1);
        if verdict.scope != Scope::Key
            && let Some(failed) = self.targets.get(failed).cloned()
        {
            self.spend_model(&failed);
        }
        if self.visiting != Some(survivor) {
            self.visiting = Some(survivor);
            self.retries = 0;
            self.replacement = Chance::Left;
        }
    }
}
