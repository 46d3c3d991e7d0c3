//! `Ramp`: admission growing after a closing.

use core::time::Duration;

use crate::tick::{Tick, millis};

/// Admission growing after a closing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    pub(super) since: Tick,
    pub(super) calls: u64,
}

impl Ramp {
    /// Whether the next call since closing passes; counts it.
    pub(super) fn admits(&mut self, over: Duration, now: Tick) -> bool {
        let passes = self.would_admit(over, now);
        self.calls = self.calls.saturating_add(1);
        passes
    }

    /// The k-th call passes iff `floor(k x e / ramp) > floor((k - 1) x e / ramp)`, the first always, where `e` is the
    /// time since closing, at least a tenth of the ramp.
    pub(super) fn would_admit(&self, over: Duration, now: Tick) -> bool {
        let ramp = u128::from(millis(over).max(1));
        let elapsed = u128::from(millis(now.since(self.since)).max(millis(over) / 10));
        let share = |calls: u64| u128::from(calls) * elapsed / ramp;
        self.calls == 0
            || elapsed >= ramp
            || share(self.calls.saturating_add(1)) > share(self.calls)
    }
}
