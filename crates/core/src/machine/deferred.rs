//! Failures that waited in the backlogs of their threads, and how they reach the counts.
//!
//! Invariant: a backlog holds no more than the published allowance, and where that is 0 at most one failure, whose thread is on
//! its way to the lock. All allowances together are less than the slack of the rules, so what waits can be counted late: no
//! rule misses it.

use super::Machine;
use crate::hot::Hot;
use crate::outcome::Failure;
use crate::state::Watch;
use crate::sync::{Ordering, fence};
use crate::tick::Tick;
use crate::ticket::Ticket;

impl Machine {
    /// A failure that its shard has deferred, and that saw the run word change.
    pub(crate) fn deferred_failure(
        &mut self,
        hot: &Hot,
        ticket: Ticket,
        failure: &Failure,
        now: Tick,
    ) {
        self.drain(hot);
        let now = self.pass_time(hot, now);
        if self.is_current(ticket.generation()) {
            self.judge(hot, Some(failure), now);
        }
    }

    /// Takes up the failures that wait, if some may; until rules are judged again, none may. They are not judged: by the
    /// allowance under which they were kept, no rule is near.
    #[inline]
    pub(crate) fn take_up(&mut self, hot: &Hot) {
        if hot.run().allowance() != 0 {
            self.publish_run(hot, Watch::Nothing);
            fence(Ordering::SeqCst);
            self.drain(hot);
        }
    }

    pub(super) fn drain(&mut self, hot: &Hot) {
        let mut left = hot.shards.waiting();
        while left > 0
            && let Some((deferred, times)) = hot.shards.next_deferred()
        {
            left = left.saturating_sub(u64::from(times));
            let (failure, at) = (deferred.failure, deferred.at);
            if deferred.generation == self.generation && hot.is_deferrable(&failure) {
                let at = self.pass_time(hot, at);
                self.absorb(hot, &failure, times, at);
                continue;
            }
            // Its state has passed, or the settings have changed.
            for _ in 0..times {
                self.count(hot, Ticket::plain(deferred.generation, at), &failure, at);
            }
        }
    }
}
