//! The rare path: everything behind the breaker's lock. A plain sequential state machine that publishes two words.
//!
//! Each operation first lets time pass ([`Machine::pass_time`]: leases and forced states that ended take effect, as of
//! their own time), then acts, then publishes the words for the hot path, last. Every change of state goes through
//! [`Machine::enter`], which begins a generation and clears what belonged to the last one.

use core::time::Duration;
use std::collections::VecDeque;

use crate::backoff::{SplitMix, cooldown};
use crate::event::{Cause, FailureNote, Reason, Rejection, Transition, Why};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::outcome::Failure;
use crate::permit::{Standing, Ticket};
use crate::policy::{Checked, OnSuccess, Policy};
use crate::rules::Counts;
use crate::state::{Deadline, Generation, RunWord, State, Tag, Watch, Word};
use crate::sync::{Ordering, fence};
use crate::tick::{Tick, millis};

/// Transitions kept.
pub(crate) const HISTORY: usize = 20;
/// Failures kept for explanations.
const FAILURES: usize = 5;
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

/// Admission growing after a closing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    since: Tick,
    calls: u64,
}

/// A live probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    id: u64,
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
    pub(crate) last_failures: VecDeque<FailureNote>,
    numbered: u64,
    leased: u64,
    random: SplitMix,
}

/// What opens a breaker.
struct Trip {
    cause: Cause,
    observed: f64,
    threshold: f64,
    kind: Option<Kind>,
    hint: Option<Duration>,
}

impl Trip {
    const fn new(cause: Cause, kind: Option<Kind>) -> Self {
        Self {
            cause,
            observed: 1.0,
            threshold: 1.0,
            kind,
            hint: None,
        }
    }
}

impl Machine {
    pub(crate) fn new(policy: Policy, seed: u64, hot: &Hot) -> Self {
        let counts = Counts::new(policy.checked(), &hot.shards);
        let machine = Self {
            policy,
            phase: Phase::Closed { ramp: None },
            since: Tick::ZERO,
            generation: Generation::FIRST,
            latest: Tick::ZERO,
            counts,
            episodes: 0,
            degraded: false,
            history: VecDeque::new(),
            entered: [0; State::ALL.len()],
            incident_since: None,
            last_failures: VecDeque::new(),
            numbered: 0,
            leased: 0,
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
            let why = self.why(&Trip {
                observed: 0.0,
                threshold: 0.0,
                ..Trip::new(Cause::Cooldown, None)
            });
            self.enter(
                hot,
                Phase::HalfOpen {
                    leases: Vec::new(),
                    successes: 0,
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
        match self.admit(limit, now) {
            Ok(standing) => {
                self.publish_word(hot);
                Ok(Ticket {
                    generation: self.generation,
                    standing,
                    seat,
                })
            }
            Err(rejection) => {
                hot.leave(seat);
                Err(rejection)
            }
        }
    }

    fn admit(&mut self, limit: Duration, now: Tick) -> Result<Standing, Rejection> {
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
                let length = policy.probe_timeout.max(limit.saturating_add(SOON));
                self.leased += 1;
                leases.push(Lease {
                    id: self.leased,
                    length,
                    end: now + length,
                });
                Ok(Standing::Probe(self.leased))
            }
            _ => Ok(Standing::Plain),
        }
    }

    /// A success of a permit of `generation`. `counted`: the caller's shard has it already.
    pub(crate) fn success(
        &mut self,
        hot: &Hot,
        ticket: &Ticket,
        took: Duration,
        counted: bool,
        now: Tick,
    ) {
        let now = self.pass_time(hot, now);
        if !self.is_current(ticket.generation) {
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
            self.counts.call(now);
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

    /// A failure of a permit of `generation`.
    pub(crate) fn failure(&mut self, hot: &Hot, ticket: &Ticket, failure: &Failure, now: Tick) {
        let rule = self.policy.kind(failure.kind);
        if !rule.count {
            return self.cancel(hot, ticket, now);
        }
        let now = self.pass_time(hot, now);
        if !self.is_current(ticket.generation) {
            return hot.late();
        }
        self.note(failure, now);
        let trip = |cause| Trip {
            hint: failure.retry_after,
            ..Trip::new(cause, Some(failure.kind))
        };
        if ticket.is_probe() {
            return self.probe_failed(hot, trip(Cause::Probe), now);
        }
        self.counts.failure(failure.kind, now);
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
            self.judge(hot, Some(failure), now);
        }
    }

    /// Gives a permit back unused: a probe's slot is free again, nothing else moves.
    pub(crate) fn cancel(&mut self, hot: &Hot, ticket: &Ticket, now: Tick) {
        self.pass_time(hot, now);
        self.free(ticket);
        self.publish_word(hot);
    }

    /// A sign of life of a probe: its lease begins anew.
    pub(crate) fn progress(&mut self, hot: &Hot, ticket: &Ticket, now: Tick) {
        let now = self.pass_time(hot, now);
        if self.generation == ticket.generation
            && let Phase::HalfOpen { leases, .. } = &mut self.phase
            && let Some(lease) = leases
                .iter_mut()
                .find(|lease| ticket.standing == Standing::Probe(lease.id))
        {
            lease.end = now + lease.length;
            self.publish_word(hot);
        }
    }

    /// Forces the state, until then or until released.
    pub(crate) fn force(&mut self, hot: &Hot, open: bool, until: Option<Tick>, now: Tick) {
        let now = self.pass_time(hot, now);
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
        self.pass_time(hot, now);
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

    /// Evaluates the rules after an outcome in `closed`; opens, or publishes what the next success must know.
    fn judge(&mut self, hot: &Hot, failure: Option<&Failure>, now: Tick) {
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

    fn probe_succeeded(&mut self, hot: &Hot, ticket: &Ticket, now: Tick) {
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

    fn probe_failed(&mut self, hot: &Hot, trip: Trip, at: Tick) {
        self.episodes = self.episodes.saturating_add(1);
        self.trip(hot, trip, at);
    }

    fn trip(&mut self, hot: &Hot, trip: Trip, at: Tick) {
        let base = self.base(trip.kind);
        let length = cooldown(
            self.policy.checked(),
            base,
            self.episodes,
            trip.hint,
            &mut self.random,
        );
        let why = self.why(&trip);
        self.incident_since = self.incident_since.or(Some(at));
        self.enter(hot, Phase::Open { end: at + length }, at, why);
    }

    fn base(&self, kind: Option<Kind>) -> Duration {
        let own = self.policy.checked().cooldown;
        kind.and_then(|kind| self.policy.kind(kind).cooldown)
            .unwrap_or(own)
    }

    /// A new state without a past: no episodes, no incident.
    fn fresh(&mut self, hot: &Hot, phase: Phase, cause: Cause, at: Tick) {
        self.episodes = 0;
        let why = self.why(&Trip {
            observed: 0.0,
            threshold: 0.0,
            ..Trip::new(cause, None)
        });
        self.enter(hot, phase, at, why);
    }

    fn enter(&mut self, hot: &Hot, phase: Phase, at: Tick, why: Why) {
        let from = self.state();
        self.phase = phase;
        self.since = at;
        self.generation = self.generation.next();
        self.counts.clear();
        self.degraded = false;
        let to = self.state();
        if to == State::Closed {
            self.incident_since = None;
        }
        self.remember(hot, from, to, at, why);
        self.publish(hot, Watch::Nothing);
    }

    /// The state, `degraded` as last seen by an evaluation.
    pub(crate) const fn state(&self) -> State {
        match &self.phase {
            Phase::Closed { .. } if self.degraded => State::Degraded,
            Phase::Closed { .. } => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::Forced { open: true, .. } => State::ForcedOpen,
            Phase::Forced { open: false, .. } => State::ForcedClosed,
        }
    }

    fn free(&mut self, ticket: &Ticket) {
        if self.generation == ticket.generation
            && let Phase::HalfOpen { leases, .. } = &mut self.phase
        {
            leases.retain(|lease| ticket.standing != Standing::Probe(lease.id));
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

    fn why(&self, trip: &Trip) -> Why {
        Why {
            cause: trip.cause,
            observed: trip.observed,
            threshold: trip.threshold,
            kind: trip.kind,
            last_failures: self.last_failures.iter().copied().collect(),
        }
    }

    fn remember(&mut self, hot: &Hot, from: State, to: State, at: Tick, why: Why) {
        self.numbered += 1;
        // A closed state that is only left behind by pressure, or made fresh, was not entered.
        let stayed = to == State::Closed && matches!(from, State::Closed | State::Degraded);
        if let Some(entered) = self.entered.get_mut(to as usize).filter(|_| !stayed) {
            *entered += 1;
        }
        let until = match self.phase {
            Phase::Open { end } => Some(end),
            Phase::Forced { until, .. } => until,
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        };
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let generation = self.generation.get();
        self.history.push_back(Transition {
            number: self.numbered,
            at,
            from,
            to,
            generation,
            until,
            why,
        });
        hot.changed();
    }

    /// The run word first, the state word last: who sees the new state sees its run too.
    fn publish(&self, hot: &Hot, watch: Watch) {
        self.publish_run(hot, watch);
        self.publish_word(hot);
    }

    fn publish_run(&self, hot: &Hot, watch: Watch) {
        hot.run.store(
            RunWord::new(self.generation, self.counts.run, watch).to_bits(),
            Ordering::Release,
        );
    }

    fn publish_word(&self, hot: &Hot) {
        let policy = self.policy.checked();
        let (tag, deadline) = match &self.phase {
            Phase::Closed { ramp: None } => (Tag::Closed, Deadline::None),
            Phase::Closed { ramp: Some(ramp) } => {
                (Tag::Closed, Deadline::At(ramp.since + policy.ramp))
            }
            Phase::Open { end } => (Tag::Open, Deadline::At(*end)),
            Phase::HalfOpen { leases, .. } => {
                let full = leases.len() >= policy.probes as usize;
                let first = leases.iter().map(|lease| lease.end).min().filter(|_| full);
                (Tag::HalfOpen, first.map_or(Deadline::None, Deadline::At))
            }
            Phase::Forced { open, until } => {
                let tag = if *open {
                    Tag::ForcedOpen
                } else {
                    Tag::ForcedClosed
                };
                (tag, until.map_or(Deadline::Never, Deadline::At))
            }
        };
        hot.word.store(
            Word::new(tag, self.generation, deadline).to_bits(),
            Ordering::Release,
        );
    }
}

impl Ramp {
    /// Whether the next call since closing passes; counts it.
    fn admits(&mut self, over: Duration, now: Tick) -> bool {
        let passes = self.would_admit(over, now);
        self.calls = self.calls.saturating_add(1);
        passes
    }

    /// The k-th call passes iff `floor(k x e / ramp) > floor((k - 1) x e / ramp)`, the first always, where `e` is the
    /// time since closing, at least a tenth of the ramp.
    pub(crate) fn would_admit(&self, over: Duration, now: Tick) -> bool {
        let ramp = u128::from(millis(over).max(1));
        let elapsed = u128::from(millis(now.since(self.since)).max(millis(over) / 10));
        let share = |calls: u64| u128::from(calls) * elapsed / ramp;
        self.calls == 0
            || elapsed >= ramp
            || share(self.calls.saturating_add(1)) > share(self.calls)
    }
}

pub(crate) fn probing_wait(leases: &[Lease], now: Tick) -> Duration {
    leases
        .iter()
        .map(|lease| lease.end.since(now))
        .min()
        .unwrap_or(SOON)
        .min(SOON)
}

pub(crate) fn is_degraded(policy: &Checked, pressure: f64) -> bool {
    policy.degraded_at < 1.0 && pressure >= policy.degraded_at * (1.0 - 1e-9)
}
