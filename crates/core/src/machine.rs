//! The rare path: everything behind the breaker's lock. A plain sequential state machine that publishes two words.
//!
//! Each operation first lets time pass ([`Machine::pass_time`]: leases and forced states that ended take effect, as of
//! their own time), then acts, then publishes the words for the hot path, last. What acts on outcomes is in `settle.rs`;
//! every change of state goes through `transition.rs`.

mod deferred;
mod granted;
mod questions;
mod ramp;
mod saved;
mod settle;
mod transition;

use core::time::Duration;
use std::collections::VecDeque;

use crate::backoff::SplitMix;
use crate::event::{Cause, FailureNote, Reason, Rejection, Transition};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::policy::Policy;
use crate::rules::Counts;
use crate::state::{Generation, State, Watch};
use crate::tick::Tick;
use crate::ticket::{Standing, Ticket};
use granted::Frozen;
pub(crate) use granted::Leave;
use questions::probing_wait;
use ramp::Ramp;
use transition::Trip;

/// What is said where no better time is known.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// What is said of a forced state without expiry.
pub(crate) const FORCED_WAIT: Duration = Duration::from_secs(60);

/// The state, with what belongs to it alone.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Closed {
        ramp: Option<Ramp>,
    },
    Open {
        end: Tick,
    },
    HalfOpen {
        /// The live probes: slot and lease.
        leases: Vec<Lease>,
        successes: u32,
    },
    Forced {
        open: bool,
        until: Option<Tick>,
    },
}

/// A live probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    id: u8,
    length: Duration,
    pub(crate) end: Tick,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) policy: Policy,
    pub(crate) phase: Phase,
    pub(crate) since: Tick,
    pub(crate) generation: Generation,
    /// The latest `now` seen here.
    pub(crate) latest: Tick,
    pub(crate) counts: Counts,
    pub(crate) episodes: u32,
    pub(crate) degraded: bool,
    pub(crate) history: VecDeque<Transition>,
    pub(crate) entered: [u64; State::ALL.len()],
    pub(crate) incident_since: Option<Tick>,
    /// Time spent open, without the present state's.
    pub(crate) open_for: Duration,
    pub(crate) last_failures: VecDeque<FailureNote>,
    /// Whose leave probes need, and how far those of others have come.
    pub(crate) leave: Leave,
    good: u32,
    /// What opened it, where its own rules did.
    frozen: Option<Frozen>,
    numbered: u64,
    random: SplitMix,
}

impl Machine {
    pub(crate) fn new(policy: Policy, seed: u64, hot: &Hot, since: Tick) -> Self {
        let counts = Counts::new(policy.checked(), &hot.shards);
        let machine = Self {
            policy,
            phase: Phase::Closed { ramp: None },
            since,
            generation: Generation::FIRST,
            latest: Tick::ZERO,
            counts,
            episodes: 0,
            degraded: false,
            history: VecDeque::new(),
            entered: [0; State::ALL.len()],
            incident_since: None,
            open_for: Duration::ZERO,
            last_failures: VecDeque::new(),
            leave: Leave::Own,
            good: 0,
            frozen: None,
            numbered: 0,
            random: SplitMix::new(seed),
        };
        hot.follow(machine.policy.checked());
        machine.publish(hot, Watch::Nothing);
        machine
    }

    /// Asks for leave. `limit` is the attempt's own time limit.
    pub(crate) fn acquire(
        &mut self,
        hot: &Hot,
        limit: Duration,
        now: Tick,
    ) -> Result<Ticket, Rejection> {
        let now = self.pass_time(hot, now);
        if let Phase::Open { end } = self.phase {
            if now < end {
                return Err(Rejection {
                    reason: Reason::Open,
                    retry_after: end.since(now),
                });
            }
            if let Some(unlicensed) = self.unlicensed(now) {
                hot.wish();
                return Err(unlicensed);
            }
            let why = self.why(&Trip {
                observed: 0.0,
                threshold: 0.0,
                ..Trip::new(Cause::Cooldown, None)
            });
            self.enter(
                hot,
                Phase::HalfOpen {
                    leases: Vec::new(),
                    successes: self.good,
                },
                now,
                why,
            );
        }
        if let Phase::Forced { open: true, until } = self.phase {
            let retry_after = until.map_or(FORCED_WAIT, |until| until.since(now));
            return Err(Rejection {
                reason: Reason::Forced,
                retry_after,
            });
        }
        let seat = hot.enter()?;
        match self.admit(hot, limit, now) {
            Ok(standing) => {
                self.publish_word(hot);
                Ok(Ticket::new(self.generation, standing, seat, now))
            }
            Err(rejection) => {
                hot.leave(seat);
                Err(rejection)
            }
        }
    }

    fn admit(&mut self, hot: &Hot, limit: Duration, now: Tick) -> Result<Standing, Rejection> {
        let unlicensed = self.unlicensed(now);
        let policy = self.policy.checked();
        match &mut self.phase {
            Phase::Closed { ramp: Some(ramp) } => {
                let passes = ramp.admits(policy.ramp, now);
                if passes {
                    Ok(Standing::Plain)
                } else {
                    Err(Rejection {
                        reason: Reason::Ramping,
                        retry_after: SOON,
                    })
                }
            }
            Phase::HalfOpen { leases, .. } => {
                if leases.len() >= policy.probes as usize {
                    return Err(Rejection {
                        reason: Reason::Probing,
                        retry_after: probing_wait(leases, now),
                    });
                }
                if let Some(unlicensed) = unlicensed {
                    hot.wish();
                    return Err(unlicensed);
                }
                let outlives = if limit.is_zero() {
                    Duration::ZERO
                } else {
                    limit.saturating_add(SOON)
                };
                let length = policy.probe_timeout.max(outlives);
                // At most 64 are live, and within a generation a permit has its number for as long as its lease.
                let taken = |id: &u8| leases.iter().any(|lease| lease.id == *id);
                let id = (0..Ticket::LEASES).find(|id| !taken(id)).unwrap_or(0);
                leases.push(Lease {
                    id,
                    length,
                    end: now + length,
                });
                Ok(Standing::Probe(id))
            }
            _ => Ok(Standing::Plain),
        }
    }

    /// Forces the state, until then or until released.
    pub(crate) fn force(&mut self, hot: &Hot, open: bool, until: Option<Tick>, now: Tick) {
        let now = self.pass_time(hot, now);
        let until = until.map(|until| until.max(now));
        self.fresh(hot, Phase::Forced { open, until }, Cause::Operator, now);
    }

    /// Ends a forced state in a fresh closed one; does nothing in any other.
    pub(crate) fn release(&mut self, hot: &Hot, now: Tick) {
        let now = self.pass_time(hot, now);
        if matches!(self.phase, Phase::Forced { .. }) {
            self.fresh(hot, Phase::Closed { ramp: None }, Cause::Operator, now);
        }
    }

    /// A fresh closed state, from any.
    pub(crate) fn reset(&mut self, hot: &Hot, now: Tick) {
        let now = self.pass_time(hot, now);
        self.fresh(hot, Phase::Closed { ramp: None }, Cause::Operator, now);
    }

    /// Opens from closed, because of what other breakers show.
    pub(crate) fn open_by_models(&mut self, hot: &Hot, kind: Kind, open: u32, of: u32, now: Tick) {
        let now = self.pass_time(hot, now);
        if matches!(self.phase, Phase::Closed { .. }) {
            let (observed, threshold) = (f64::from(open), f64::from(of) / 2.0);
            self.trip(
                hot,
                Trip {
                    observed,
                    threshold,
                    ..Trip::new(Cause::Models, Some(kind))
                },
                now,
            );
        }
    }

    /// Other settings from now on. Generation, run, episodes and the end of a cooldown stay.
    pub(crate) fn reconfigure(&mut self, hot: &Hot, policy: Policy, now: Tick) {
        let now = self.pass_time(hot, now);
        if let Phase::Closed { ramp } = &mut self.phase {
            // One that is over stays over.
            let over = self.policy.checked().ramp;
            *ramp = ramp.filter(|ramp| now < ramp.since + over);
        }
        self.policy = policy;
        self.counts.follow(self.policy.checked(), &hot.shards);
        hot.follow(self.policy.checked());
        // Rules are judged when an outcome is recorded: the next one, whatever it is.
        let watch = match self.phase {
            Phase::Closed { .. } => Watch::Every,
            Phase::Open { .. } | Phase::HalfOpen { .. } | Phase::Forced { .. } => Watch::Nothing,
        };
        self.publish(hot, watch);
    }

    /// Leases and forced states that ended by `now` take effect. Returns the latest `now` seen.
    pub(crate) fn pass_time(&mut self, hot: &Hot, now: Tick) -> Tick {
        self.latest = self.latest.max(now);
        if let Some(end) = self.ended(self.latest) {
            match self.phase {
                Phase::HalfOpen { .. } => {
                    self.probe_failed(hot, Trip::new(Cause::Lease, Some(Kind::Timeout)), end);
                }
                Phase::Forced { .. } => {
                    self.fresh(hot, Phase::Closed { ramp: None }, Cause::Expiry, end)
                }
                Phase::Closed { .. } | Phase::Open { .. } => {}
            }
        }
        self.latest
    }

    /// When the first lease, or the forced state, ended, if it has by `now`.
    pub(crate) fn ended(&self, now: Tick) -> Option<Tick> {
        let end = match &self.phase {
            Phase::HalfOpen { leases, .. } => leases.iter().map(|lease| lease.end).min(),
            Phase::Forced { until, .. } => *until,
            Phase::Closed { .. } | Phase::Open { .. } => None,
        };
        end.filter(|end| *end <= now)
    }

    /// Whether an outcome of this generation still counts.
    pub(crate) fn is_current(&self, generation: Generation) -> bool {
        self.generation == generation && !matches!(self.phase, Phase::Forced { .. })
    }
}
