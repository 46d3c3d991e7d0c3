//! `Breaker`: the handle that callers, drivers and operators hold.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::clock::Clock;
use crate::event::{Reason, Rejection, Transition};
use crate::hot::{Asked, Hot, Recorded};
use crate::kind::Kind;
use crate::machine::{Leave, Machine};
use crate::outcome::Outcome;
use crate::permit::Permit;
use crate::policy::{Mode, Policy};
use crate::saved::SavedBreaker;
use crate::scope::ScopeName;
use crate::state::{Generation, State, Word};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::tick::{Tick, millis};
use crate::ticket::{Seat, Standing, Ticket};

/// A circuit breaker. Clones are handles on the same one.
///
/// It never decides by a clock: `now` is the last argument of everything. A `now` that goes backwards counts as the latest
/// one seen. Time passes only when somebody asks: nothing runs in the background. Methods come in four kinds:
///
/// - *questions* have no effect: [`state`](Self::state), [`is_available`](Self::is_available),
///   [`snapshot`](Self::snapshot), [`history`](Self::history), [`export`](Self::export);
/// - *inputs*: [`try_acquire`](Self::try_acquire), then [`Permit::record`], [`Permit::progress`], [`Permit::cancel`];
/// - *commands* of an operator: [`force_open`](Self::force_open), [`force_closed`](Self::force_closed),
///   [`release`](Self::release), [`reset`](Self::reset), [`reconfigure`](Self::reconfigure), [`restore`](Self::restore);
/// - *outputs*: the [`Transition`] that an input returns, and the numbered history that keeps the last 20.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Breaker, Kind, Outcome, Policy, ScopeName, State, Tick};
///
/// let breaker = Breaker::new(ScopeName::provider("openai"), Policy::default());
/// let now = Tick::ZERO;
/// for _ in 0..5 {
///     breaker.try_acquire(now)?.record(&Outcome::failure(Kind::ServerError), now);
/// }
/// assert_eq!(breaker.state(now), State::Open);
/// let refused = breaker.try_acquire(now).unwrap_err();
/// assert!(refused.retry_after >= Duration::from_secs(15));
///
/// let probe = breaker.try_acquire(now + refused.retry_after)?;
/// assert!(probe.is_probe());
/// # Ok::<(), fuseline_core::Rejection>(())
/// ```
#[derive(Clone)]
pub struct Breaker(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: ScopeName,
    pub(crate) hot: Hot,
    /// For drivers, and for permits that are dropped: no decision reads it.
    clock: Option<Clock>,
    machine: Mutex<Machine>,
}

impl Breaker {
    /// A closed breaker. Its jitter is seeded by its name; [`with_seed`](Self::with_seed) tells replicas apart.
    pub fn new(name: ScopeName, policy: Policy) -> Self {
        Self::with_seed(name, policy, 0)
    }

    /// A closed breaker whose jitter follows from this seed and its name.
    pub fn with_seed(name: ScopeName, policy: Policy, seed: u64) -> Self {
        Self::build(name, policy, seed, None)
    }

    /// As [`with_seed`](Self::with_seed), with the clock that its drivers read: [`now`](Self::now) is that clock's.
    pub fn with_clock(name: ScopeName, policy: Policy, seed: u64, clock: Clock) -> Self {
        Self::build(name, policy, seed, Some(clock))
    }

    fn build(name: ScopeName, policy: Policy, seed: u64, clock: Option<Clock>) -> Self {
        let seed = name
            .to_string()
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
            });
        let hot = Hot::new();
        let since = clock.as_ref().map_or(Tick::ZERO, Clock::now);
        let machine = Mutex::new(Machine::new(policy, seed, &hot, since));
        Self(Arc::new(Inner {
            name,
            hot,
            clock,
            machine,
        }))
    }

    /// Its name, which tells its scope.
    pub fn name(&self) -> &ScopeName {
        &self.0.name
    }

    /// The present by its clock, for its drivers; without a clock, the latest instant that it was told.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        self.0.now()
    }

    /// The settings in force.
    pub fn policy(&self) -> Policy {
        self.0.policy()
    }

    /// Asks for leave to make one call.
    ///
    /// # Errors
    /// The call must not be made; the rejection says why and when to ask again.
    #[inline]
    pub fn try_acquire(&self, now: Tick) -> Result<Permit<&Self>, Rejection> {
        self.try_acquire_within(Duration::ZERO, now)
    }

    /// Asks for leave to make one call that is given up after `limit`: a probe's lease then outlives it.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_within(
        &self,
        limit: Duration,
        now: Tick,
    ) -> Result<Permit<&Self>, Rejection> {
        Permit::acquire(self, limit, now)
    }

    /// As [`try_acquire_within`](Self::try_acquire_within), with a permit that owns its breaker.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_owned(&self, limit: Duration, now: Tick) -> Result<Permit, Rejection> {
        Permit::acquire(self, limit, now).map(Permit::into_owned)
    }

    /// The state as the next operation would find it. An `open` whose cooldown has ended still reads `open`: only a
    /// call makes it half-open.
    pub fn state(&self, now: Tick) -> State {
        self.0.ask(now, Machine::state_now)
    }

    /// Whether a call would be let through now.
    pub fn is_available(&self, now: Tick) -> bool {
        self.check(now).is_ok()
    }

    /// Asks as [`try_acquire`](Self::try_acquire) does, and changes nothing.
    ///
    /// # Errors
    /// The rejection that a call would get.
    pub fn check(&self, now: Tick) -> Result<(), Rejection> {
        if self.0.hot.mode() != Mode::Enforce || self.0.hot.is_quiet(now) {
            return Ok(());
        }
        self.0.ask(now, Machine::refusal).map_or(Ok(()), Err)
    }

    /// Whether the next call would be a probe: half-open with a free slot, or open with the cooldown over.
    pub fn is_due(&self, now: Tick) -> bool {
        let may_probe = self.mode() != Mode::Off && !self.0.hot.is_quiet(now);
        may_probe && self.0.ask(now, |machine, _, now| machine.is_due(now))
    }

    /// Transitions after number `after`, oldest first; the last 20 are kept.
    pub fn history(&self, after: u64) -> Vec<Transition> {
        self.0
            .lock()
            .history
            .iter()
            .filter(|transition| transition.number > after)
            .cloned()
            .collect()
    }

    /// Counts the transitions so far: an observer that has read up to this number has seen all.
    pub fn changes(&self) -> u64 {
        self.0.hot.changes()
    }

    /// Rejects all calls, until `until` or until released.
    pub fn force_open(&self, until: Option<Tick>, now: Tick) {
        self.clear_hold();
        self.0.lock().force(&self.0.hot, true, until, now);
    }

    /// Lets all calls pass, until `until` or until released.
    pub fn force_closed(&self, until: Option<Tick>, now: Tick) {
        self.clear_hold();
        self.0.lock().force(&self.0.hot, false, until, now);
    }

    /// Ends a forced state in a fresh `closed`, and a hold. Leaves any other state as it is.
    pub fn release(&self, now: Tick) {
        self.clear_hold();
        self.0.lock().release(&self.0.hot, now);
    }

    /// A fresh `closed`, from any state.
    pub fn reset(&self, now: Tick) {
        self.clear_hold();
        self.0.lock().reset(&self.0.hot, now);
    }

    /// Other settings from now on. Generation, run, episodes and the end of a running cooldown stay; a window that
    /// changed starts empty. Calls in flight under no `max_in_flight` are not counted against a new one.
    pub fn reconfigure(&self, policy: Policy, now: Tick) {
        self.0.lock().reconfigure(&self.0.hot, policy, now);
    }

    /// What the breaker does with its decisions.
    pub fn mode(&self) -> Mode {
        self.0.hot.mode()
    }

    /// Somebody was told to wait for a grant.
    pub(crate) fn wish(&self) {
        self.0.hot.wish();
    }

    pub(crate) fn hold_until(&self, until: Tick) {
        self.0.hot.hold(until);
    }

    pub(crate) fn clear_hold(&self) {
        self.0.hot.clear_hold();
    }

    /// The wait that the provider asked for, if it is not over.
    pub(crate) fn held(&self, now: Tick) -> Option<Rejection> {
        self.0.hot.held(now)
    }

    pub(crate) fn count_rejection(&self, reason: Reason) {
        self.0.hot.rejected(reason);
    }

    /// Closed, and nobody else holds a handle or a permit.
    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        Arc::strong_count(&self.0) == 1
            && self.held(now).is_none()
            && matches!(self.state(now), State::Closed | State::Degraded)
    }

    pub(crate) fn has_failures(&self, now: Tick) -> bool {
        self.0.ask(now, |machine, hot, now| {
            let generation = machine.generation;
            machine.counts.has_failures(&hot.shards, generation, now)
        })
    }

    /// Records the outcome of a call that began before there was this breaker: as that of a permit of its first
    /// generation, so that it is late where the state has changed since.
    pub(crate) fn record_as_first(&self, outcome: &Outcome, now: Tick) -> Option<Transition> {
        let standing = if self.mode() == Mode::Off {
            Standing::Off
        } else {
            Standing::Plain
        };
        self.0.settle(self.0.unseated(standing, now), outcome, now)
    }

    /// Opens a closed breaker because `open` of the `of` models behind it are.
    pub(crate) fn open_by_models(&self, kind: Kind, open: u32, of: u32, now: Tick) {
        self.0
            .lock()
            .open_by_models(&self.0.hot, kind, open, of, now);
    }
}

impl Inner {
    /// The machine, which knows of every failure that was recorded by now.
    fn lock(&self) -> MutexGuard<'_, Machine> {
        let mut machine = lock(&self.machine);
        machine.take_up(&self.hot);
        machine
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Tick {
        match &self.clock {
            Some(clock) => clock.now(),
            None => self.latest(),
        }
    }

    #[cold]
    fn latest(&self) -> Tick {
        self.lock().latest
    }

    pub(crate) fn policy(&self) -> Policy {
        self.lock().policy.clone()
    }

    pub(crate) fn count_calls(&self) {
        let mut machine = self.lock();
        let policy = machine.policy.clone();
        machine.counts.always(policy.checked(), &self.hot.shards);
    }

    pub(crate) fn open_by_fleet(&self, kind: Option<Kind>, seen: (f64, f64), now: Tick) {
        self.lock().open_by_fleet(&self.hot, kind, seen, now);
    }

    pub(crate) fn await_grant(&self) {
        self.lock().leave_to(Leave::Awaited);
    }

    pub(crate) fn probe_freely(&self) {
        self.lock().leave_to(Leave::Own);
    }

    pub(crate) fn grant_probes(&self, until: Tick, good: u32) {
        self.lock().grant(until, good);
    }

    pub(crate) fn restore(&self, saved: &SavedBreaker, now: Tick) {
        self.lock().restore(&self.hot, saved, now);
    }

    /// Answers a question about what the next operation would find, without letting time pass.
    pub(crate) fn ask<R>(&self, now: Tick, question: impl FnOnce(&Machine, &Hot, Tick) -> R) -> R {
        let machine = self.lock();
        let now = machine.latest.max(now);
        if machine.ended(now).is_none() {
            return question(&machine, &self.hot, now);
        }
        // Time passes for a copy, which publishes into the void.
        let mut later = machine.clone();
        drop(machine);
        later.pass_time(&Hot::new(), now);
        question(&later, &self.hot, now)
    }

    #[inline(always)]
    pub(crate) fn acquire(&self, limit: Duration, now: Tick) -> Result<Ticket, Rejection> {
        let word = self.hot.word();
        if let Some(ticket) = self.hot.plain(word, now) {
            return Ok(ticket);
        }
        if let Some(rejection) = self.hot.plainly_open(word, now) {
            return Err(rejection);
        }
        self.acquire_limited(word, limit, now)
    }

    #[inline(never)]
    fn acquire_limited(&self, word: Word, limit: Duration, now: Tick) -> Result<Ticket, Rejection> {
        let mode = self.hot.mode();
        if mode == Mode::Off {
            return Ok(self.unseated(Standing::Off, now));
        }
        let rejection = match self.hot.ask(word, now) {
            Asked::Admitted(ticket) => return Ok(ticket),
            Asked::Rejected(rejection) => rejection,
            Asked::Unclear => match self.lock().acquire(&self.hot, limit, now) {
                Ok(ticket) => return Ok(ticket),
                Err(rejection) => rejection,
            },
        };
        self.hot.rejected(rejection.reason);
        if mode == Mode::Shadow {
            let wait = millis(rejection.retry_after);
            return Ok(self.unseated(Standing::Ghost(rejection.reason, wait), now));
        }
        Err(rejection)
    }

    fn unseated(&self, standing: Standing, now: Tick) -> Ticket {
        Ticket::new(Generation::FIRST, standing, Seat::Unlimited, now)
    }

    #[inline(always)]
    pub(crate) fn settle(
        &self,
        ticket: Ticket,
        outcome: &Outcome,
        now: Tick,
    ) -> Option<Transition> {
        let mut recorded = Recorded::Undecided;
        if ticket.is_plain() {
            let generation = ticket.generation();
            recorded = match outcome {
                Outcome::Success { took } => self.hot.success(generation, *took, now),
                Outcome::Failure(failure) => self.hot.failure(generation, failure, now),
                Outcome::Neutral => Recorded::Undecided,
            };
            if recorded == Recorded::Done && ticket.seat() == Seat::Unlimited {
                return None;
            }
        }
        self.settle_rest(ticket, outcome, recorded, now)
    }

    /// Settles what the hot path could not: `recorded` says how far the hot path came with it.
    #[inline(never)]
    fn settle_rest(
        &self,
        ticket: Ticket,
        outcome: &Outcome,
        recorded: Recorded,
        now: Tick,
    ) -> Option<Transition> {
        self.hot.leave(ticket.seat());
        let hot = &self.hot;
        match (ticket.standing(), outcome, recorded) {
            (Standing::Ghost(..) | Standing::Off, ..)
            | (Standing::Plain, Outcome::Neutral, _)
            | (_, _, Recorded::Done) => None,
            (_, _, Recorded::Late) => {
                hot.late();
                None
            }
            (_, Outcome::Success { took }, Recorded::Undecided | Recorded::Counted) => {
                let counted = recorded == Recorded::Counted;
                self.locked(self.lock(), |machine| {
                    machine.success(hot, ticket, *took, counted, now)
                })
            }
            (_, Outcome::Failure(failure), Recorded::Counted) => self
                .locked(self.lock(), |machine| {
                    machine.deferred_failure(hot, ticket, failure, now)
                }),
            (_, Outcome::Failure(failure), Recorded::Undecided) => {
                // Takes up what waits only where it must.
                self.locked(lock(&self.machine), |machine| {
                    machine.failure(hot, ticket, failure, now)
                })
            }
            (Standing::Probe(_), Outcome::Neutral, _) => {
                self.locked(self.lock(), |machine| machine.cancel(hot, ticket, now))
            }
        }
    }

    /// Runs an operation and gives back the last transition that came of it.
    fn locked(
        &self,
        mut machine: MutexGuard<'_, Machine>,
        operate: impl FnOnce(&mut Machine),
    ) -> Option<Transition> {
        let before = self.hot.changes();
        operate(&mut machine);
        if self.hot.changes() == before {
            None
        } else {
            machine.history.back().cloned()
        }
    }

    pub(crate) fn cancel(&self, ticket: Ticket, now: Tick) {
        self.settle(ticket, &Outcome::Neutral, now);
    }

    /// A permit went without a word.
    #[cold]
    #[inline(never)]
    pub(crate) fn dropped(&self, ticket: Ticket) {
        self.cancel(ticket, self.now());
    }

    pub(crate) fn progress(&self, ticket: Ticket, now: Tick) {
        self.lock().progress(&self.hot, ticket, now);
    }

    pub(crate) fn is_current(&self, ticket: Ticket, now: Tick) -> bool {
        match ticket.standing() {
            Standing::Ghost(..) | Standing::Off => true,
            Standing::Plain | Standing::Probe(_) => self.ask(now, |machine, _, _| {
                machine.generation == ticket.generation()
            }),
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
