//! Probes by grant: where a fleet decides who probes, a replica's seats open only while it holds the fleet's grant.

use core::time::Duration;

use super::transition::Trip;
use super::{Machine, Phase};
use crate::event::{Cause, Reason, Rejection};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::rules::Seen;
use crate::tick::Tick;

/// What one is told who wants to probe without a grant: by then one may have come.
pub(super) const GRANT_WAIT: Duration = Duration::from_millis(250);

/// Whose leave a probe needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nobody's.
    Own,
    /// The fleet's, which has not given it.
    Awaited,
    /// The fleet's, which has given it until then.
    Granted(Tick),
}

/// What the rules saw when one of them opened the breaker.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) at: Tick,
    pub(crate) seen: Vec<Seen>,
}

impl Machine {
    /// Gives leave, with so many good probes of this episode elsewhere.
    pub(crate) fn grant(&mut self, until: Tick, good: u32) {
        self.leave = Leave::Granted(until);
        // One that closes is still to come.
        self.good = good.min(self.policy.checked().successes_to_close.saturating_sub(1));
        if let Phase::HalfOpen { successes, .. } = &mut self.phase {
            *successes = self.good.max(*successes);
        }
    }

    /// Probes need nobody's leave, or leave that is still to come: an earlier grant is over.
    pub(crate) fn leave_to(&mut self, leave: Leave) {
        self.leave = leave;
        self.good = 0;
    }

    pub(super) fn may_probe(&self, now: Tick) -> bool {
        match self.leave {
            Leave::Own => true,
            Leave::Awaited => false,
            Leave::Granted(until) => now < until,
        }
    }

    /// The rejection of a probe that lacks leave.
    pub(super) fn unlicensed(&self, now: Tick) -> Option<Rejection> {
        (!self.may_probe(now)).then_some(Rejection {
            reason: Reason::Probing,
            retry_after: GRANT_WAIT,
        })
    }

    /// Opens from closed, because of what all replicas have counted together.
    pub(crate) fn open_by_fleet(
        &mut self,
        hot: &Hot,
        kind: Option<Kind>,
        (observed, threshold): (f64, f64),
        now: Tick,
    ) {
        let now = self.pass_time(hot, now);
        if matches!(self.phase, Phase::Closed { .. }) {
            let trip = Trip {
                observed,
                threshold,
                ..Trip::new(Cause::Fleet, kind)
            };
            self.trip(hot, trip, now);
        }
    }

    /// What the rules see; of a breaker that a rule has opened, what they saw then, as far as it is not too old.
    pub(crate) fn evidence(&self, hot: &Hot, now: Tick) -> Vec<Seen> {
        let Some(Frozen { at, seen }) = &self.frozen else {
            return self.counts.view(&hot.shards, self.generation, now);
        };
        let is_old = |seen: &Seen| {
            seen.rule
                .window()
                .is_some_and(|window| now.since(*at) >= window)
        };
        let aged = |seen: &Seen| match is_old(seen) {
            true => Seen {
                hits: 0,
                calls: seen.calls.map(|_| 0),
                ..*seen
            },
            false => *seen,
        };
        seen.iter().map(aged).collect()
    }
}
