//! How outcomes settle: successes and failures of plain calls, probes, and what is given back.

use core::time::Duration;

use super::questions::is_degraded;
use super::ramp::Ramp;
use super::transition::Trip;
use super::{Machine, Phase};
use crate::event::{Cause, FailureNote};
use crate::hot::Hot;
use crate::outcome::Failure;
use crate::policy::OnSuccess;
use crate::state::{State, Watch};
use crate::sync::{Ordering, fence};
use crate::tick::{Tick, millis};
use crate::ticket::{Standing, Ticket};

/// Failures kept for explanations.
const FAILURES: usize = 5;

impl Machine {
    /// A success of a permit of `generation`. `counted`: the caller's shard has it already.
    pub(crate) fn success(
        &mut self,
        hot: &Hot,
        ticket: Ticket,
        took: Duration,
        counted: bool,
        now: Tick,
    ) {
        let now = self.pass_time(hot, now);
        if !self.is_current(ticket.generation()) {
            // One that its shard counted was recorded in time: the state changed after it.
            if !counted {
                hot.late();
            }
            return;
        }
        let slow = millis(took) > crate::rules::slow_limit(&self.policy.checked().trip);
        if ticket.is_probe() {
            return if slow {
                self.probe_failed(hot, Trip::new(Cause::Slow, None), now);
            } else {
                self.probe_succeeded(hot, ticket, now);
            };
        }
        if !counted {
            self.counts.calls(1, now);
            self.counts.slow(millis(took), now);
        }
        let take = match self.policy.checked().on_success {
            OnSuccess::Reset => u32::MAX,
            OnSuccess::Decrement => 1,
        };
        self.counts.run = self.counts.run.saturating_sub(take);
        for count in &mut self.counts.kinds {
            *count = count.saturating_sub(take);
        }
        self.judge(hot, None, now);
    }

    /// A failure of a permit of `generation`. While it changes nothing of what is published, other threads go on deferring.
    pub(crate) fn failure(&mut self, hot: &Hot, ticket: Ticket, failure: &Failure, now: Tick) {
        let allowance = hot.run().allowance();
        let deferrable = ticket.is_plain()
            && ticket.generation() == self.generation
            && hot.is_deferrable(failure);
        if allowance != 0 && deferrable {
            self.drain(hot);
            let now = self.pass_time(hot, now);
            self.absorb(hot, failure, 1, now);
            if hot.shards.allowance(self.counts.slack(now)) >= allowance {
                return;
            }
            self.take_up(hot);
            return self.judge(hot, Some(failure), self.latest);
        }
        self.take_up(hot);
        if self.count(hot, ticket, failure, now) {
            self.judge(hot, Some(failure), self.latest);
        }
    }

    /// Counts a failure; true if the trip rules are to be judged for it.
    pub(super) fn count(
        &mut self,
        hot: &Hot,
        ticket: Ticket,
        failure: &Failure,
        now: Tick,
    ) -> bool {
        let rule = self.policy.kind(failure.kind);
        if !rule.count {
            self.cancel(hot, ticket, now);
            return false;
        }
        let now = self.pass_time(hot, now);
        if !self.is_current(ticket.generation()) {
            hot.late();
            return false;
        }
        let trip = |cause| Trip {
            hint: failure.retry_after,
            ..Trip::new(cause, Some(failure.kind))
        };
        if ticket.is_probe() {
            self.note(failure, now);
            self.probe_failed(hot, trip(Cause::Probe), now);
            return false;
        }
        self.absorb(hot, failure, 1, now);
        let of_kind = self
            .counts
            .kinds
            .get(failure.kind.index())
            .copied()
            .unwrap_or(0);
        let threshold = if rule.immediate_open {
            Some(1)
        } else {
            rule.threshold
        };
        if failure.open_now {
            self.trip(hot, trip(Cause::OpenNow), now);
        } else if let Some(threshold) = threshold.filter(|threshold| of_kind >= *threshold) {
            let (observed, threshold) = (f64::from(of_kind), f64::from(threshold));
            self.trip(
                hot,
                Trip {
                    observed,
                    threshold,
                    ..trip(Cause::Kind)
                },
                now,
            );
        } else {
            return true;
        }
        false
    }

    /// So many failures of a closed state.
    pub(super) fn absorb(&mut self, hot: &Hot, failure: &Failure, times: u32, now: Tick) {
        for _ in 0..(times as usize).min(FAILURES) {
            self.note(failure, now);
        }
        let kind = failure.kind;
        self.counts
            .failure(kind, times, &hot.shards, self.generation, now);
    }

    /// Gives a permit back unused: a probe's slot is free again, nothing else moves.
    pub(crate) fn cancel(&mut self, hot: &Hot, ticket: Ticket, now: Tick) {
        self.pass_time(hot, now);
        self.free(ticket);
        self.publish_word(hot);
    }

    /// A sign of life of a probe: its lease begins anew.
    pub(crate) fn progress(&mut self, hot: &Hot, ticket: Ticket, now: Tick) {
        let now = self.pass_time(hot, now);
        if self.generation == ticket.generation()
            && let Phase::HalfOpen { leases, .. } = &mut self.phase
            && let Some(lease) = leases
                .iter_mut()
                .find(|lease| ticket.standing() == Standing::Probe(lease.id))
        {
            lease.end = now + lease.length;
            self.publish_word(hot);
        }
    }

    /// Evaluates the rules after an outcome in `closed`; opens, or publishes what the next outcome must know.
    pub(super) fn judge(&mut self, hot: &Hot, failure: Option<&Failure>, now: Tick) {
        let slack = self.counts.slack(now);
        if slack > 0 && !self.degraded {
            return self.publish_slack(hot, slack);
        }
        if self.counts.in_reach(now) {
            // From here on a success either is in the sums below or sees this word and comes through the lock.
            self.publish_run(hot, Watch::Every);
            fence(Ordering::SeqCst);
        } else {
            self.publish_run(hot, Watch::Nothing);
        }
        let found = self.counts.evaluate(&hot.shards, self.generation, now);
        if let Some((cause, observed, threshold)) = found.tripped {
            let kind = failure.map(|failure| failure.kind);
            let hint = failure.and_then(|failure| failure.retry_after);
            return self.trip(
                hot,
                Trip {
                    cause,
                    observed,
                    threshold,
                    kind,
                    hint,
                },
                now,
            );
        }
        self.publish_run(hot, found.watch);
        self.see_pressure(hot, found.pressure, now);
    }

    fn see_pressure(&mut self, hot: &Hot, pressure: f64, now: Tick) {
        let degraded = is_degraded(self.policy.checked(), pressure);
        if degraded != self.degraded {
            self.degraded = degraded;
            let threshold = self.policy.checked().degraded_at;
            let why = self.why(&Trip {
                observed: pressure,
                threshold,
                ..Trip::new(Cause::Pressure, None)
            });
            let (from, to) = if degraded {
                (State::Closed, State::Degraded)
            } else {
                (State::Degraded, State::Closed)
            };
            self.remember(hot, from, to, now, why);
        }
    }

    fn probe_succeeded(&mut self, hot: &Hot, ticket: Ticket, now: Tick) {
        self.free(ticket);
        let needed = self.policy.checked().successes_to_close;
        let Phase::HalfOpen { successes, .. } = &mut self.phase else {
            return;
        };
        *successes += 1;
        if *successes < needed {
            return self.publish_word(hot);
        }
        let (observed, threshold) = (f64::from(*successes), f64::from(needed));
        self.episodes = 0;
        let why = self.why(&Trip {
            observed,
            threshold,
            ..Trip::new(Cause::Probe, None)
        });
        let ramp = (!self.policy.checked().ramp.is_zero()).then_some(Ramp {
            since: now,
            calls: 0,
        });
        self.enter(hot, Phase::Closed { ramp }, now, why);
    }

    pub(super) fn probe_failed(&mut self, hot: &Hot, trip: Trip, at: Tick) {
        self.episodes = self.episodes.saturating_add(1);
        self.trip(hot, trip, at);
    }

    fn free(&mut self, ticket: Ticket) {
        if self.generation == ticket.generation()
            && let Phase::HalfOpen { leases, .. } = &mut self.phase
        {
            leases.retain(|lease| ticket.standing() != Standing::Probe(lease.id));
        }
    }

    fn note(&mut self, failure: &Failure, now: Tick) {
        if self.last_failures.len() == FAILURES {
            self.last_failures.pop_front();
        }
        self.last_failures.push_back(FailureNote {
            at: now,
            kind: failure.kind,
            code: failure.code,
        });
    }
}
