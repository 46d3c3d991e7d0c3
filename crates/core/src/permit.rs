//! `Permit`: leave to make one call, and the duty to say how it went.

use core::borrow::Borrow;
use core::fmt;
use core::time::Duration;

use crate::breaker::{Breaker, Inner};
use crate::event::{Rejection, Transition};
use crate::outcome::Outcome;
use crate::tick::Tick;
use crate::ticket::{Standing, Ticket};

/// Leave to make one call.
///
/// It settles exactly once: [`record`](Self::record) and [`cancel`](Self::cancel) consume it, and dropping it (a
/// cancelled future, a panic, a client that left) cancels it, as of the breaker's [`now`](crate::Breaker::now). A
/// cancelled permit moves no counter; a probe's slot is free again at once.
///
/// `Permit<Breaker>`, or `Permit` for short, owns its breaker; a `Permit<&Breaker>` borrows it and costs no reference
/// count.
#[must_use = "a permit that is dropped is cancelled: the call is not counted"]
pub struct Permit<B: Borrow<Breaker> = Breaker> {
    breaker: B,
    /// [`Ticket::SETTLED`] once settled: a flag beside it would be copied byte by byte.
    ticket: Ticket,
}

impl<B: Borrow<Breaker>> Permit<B> {
    /// Asks for leave to make one call that is given up after `limit` (zero where there is no limit): a probe's lease
    /// then outlives it. [`Breaker::try_acquire`] and its kin are short for this; a type that wraps a breaker gets
    /// permits that hold the wrapper.
    ///
    /// # Errors
    /// The call must not be made; the rejection says why and when to ask again.
    #[inline(always)]
    pub fn acquire(breaker: B, limit: Duration, now: Tick) -> Result<Self, Rejection> {
        let ticket = breaker.borrow().0.acquire(limit, now)?;
        Ok(Self { breaker, ticket })
    }

    #[inline(always)]
    fn inner(&self) -> &Inner {
        &self.breaker.borrow().0
    }

    /// The breaker that gave it.
    pub const fn breaker(&self) -> &B {
        &self.breaker
    }

    /// Says how the call went. Returns the transition that followed, if one did; the breaker's history has it too.
    ///
    /// An outcome of an earlier generation, or while an operator forces the state, is counted as late and changes
    /// nothing.
    #[inline(always)]
    pub fn record(mut self, outcome: &Outcome, now: Tick) -> Option<Transition> {
        let ticket = self.take();
        self.inner().settle(ticket, outcome, now)
    }

    /// Gives the permit back: the call says nothing about the provider.
    pub fn cancel(mut self, now: Tick) {
        let ticket = self.take();
        self.inner().cancel(ticket, now);
    }

    #[inline(always)]
    fn take(&mut self) -> Ticket {
        core::mem::replace(&mut self.ticket, Ticket::SETTLED)
    }

    /// A sign of life, such as a content event of a stream: a probe's lease begins anew.
    pub fn progress(&self, now: Tick) {
        if self.is_probe() {
            self.inner().progress(self.ticket, now);
        }
    }

    /// Whether this is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.ticket.is_probe()
    }

    /// The present, as [`Breaker::now`](crate::Breaker::now) tells it.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        self.inner().now()
    }

    /// Time since the permit was given, exact up to 12 days; zero where `now` is earlier.
    #[inline(always)]
    pub fn elapsed(&self, now: Tick) -> Duration {
        self.ticket.elapsed(now)
    }

    /// For a probe, how long a stream under it must deliver to be a success: the policy's
    /// [`probe_proof`](crate::Policy::probe_proof).
    pub fn probe_proof(&self) -> Option<Duration> {
        self.is_probe().then(|| self.inner().policy().probe_proof())
    }

    /// In shadow mode, the rejection that an enforcing breaker would have given.
    pub fn would_reject(&self) -> Option<Rejection> {
        match self.ticket.standing() {
            Standing::Ghost(reason, ms) => Some(Rejection {
                reason,
                retry_after: Duration::from_millis(ms),
            }),
            Standing::Plain | Standing::Probe(_) | Standing::Off => None,
        }
    }

    /// Whether the state in which this permit was given still stands, so that a further attempt under it makes sense.
    pub fn is_current(&self, now: Tick) -> bool {
        self.inner().is_current(self.ticket, now)
    }
}

impl<B: Borrow<Breaker> + Clone> Permit<&B>
where
    for<'a> &'a B: Borrow<Breaker>,
{
    /// The same permit, holding its breaker: it can be moved to another task.
    #[inline(always)]
    pub fn into_owned(mut self) -> Permit<B> {
        let ticket = self.take();
        Permit {
            breaker: self.breaker.clone(),
            ticket,
        }
    }
}

impl<B: Borrow<Breaker>> Drop for Permit<B> {
    #[inline]
    fn drop(&mut self) {
        if self.ticket != Ticket::SETTLED {
            self.inner().dropped(self.ticket);
        }
    }
}

impl<B: Borrow<Breaker>> fmt::Debug for Permit<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("breaker", &self.inner().name)
            .field("ticket", &self.ticket)
            .finish()
    }
}

#[cfg(all(test, not(fuseline_loom)))]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::kind::Kind;
    use crate::policy::{Policy, PolicySpec};
    use crate::scope::ScopeName;
    use crate::trip::TripRule;

    const NONE: Duration = Duration::ZERO;

    fn at(ms: u64) -> Tick {
        Tick::from_millis(ms)
    }

    fn spec() -> PolicySpec {
        PolicySpec {
            trip: Some(vec![TripRule::Consecutive { failures: 1 }]),
            probe_proof: Some(Duration::from_secs(7)),
            jitter: Some(0.0),
            ..PolicySpec::default()
        }
    }

    #[test]
    fn now_is_the_clocks_or_else_the_latest_that_was_told() {
        let name = || ScopeName::provider("p");
        let told = Breaker::new(name(), Policy::default());
        assert_eq!(told.now(), Tick::ZERO);
        told.reset(at(40));
        told.reset(at(30));
        assert_eq!(told.now(), at(40));
        assert_eq!(told.try_acquire(at(41)).unwrap().now(), at(40));

        let clock = Clock::manual();
        let clocked = Breaker::with_clock(name(), Policy::default(), 0, clock.clone());
        let permit = clocked.try_acquire(clocked.now()).unwrap();
        let begun = permit.now();
        clock.advance(Duration::from_millis(250));
        assert_eq!(permit.now(), begun + Duration::from_millis(250));
        assert_eq!(clocked.now(), permit.now());
        assert_eq!(permit.elapsed(permit.now()), Duration::from_millis(250));
    }

    #[test]
    fn a_probe_alone_has_something_to_prove() {
        let policy = Policy::new(&spec()).unwrap();
        let breaker = Breaker::new(ScopeName::provider("p"), policy);
        let plain = breaker.try_acquire(at(0)).unwrap();
        assert_eq!(plain.probe_proof(), None);
        plain.record(&Outcome::failure(Kind::Timeout), at(0));
        let probe = breaker.try_acquire_owned(NONE, at(60_000)).unwrap();
        assert_eq!(probe.probe_proof(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn handles_print_by_name() {
        let breaker = Breaker::new(ScopeName::provider("p"), Policy::default());
        let permit = breaker.try_acquire(at(0)).unwrap();
        for text in [format!("{breaker:?}"), format!("{permit:?}")] {
            assert!(text.contains("ScopeName"), "{text}");
            assert!(text.contains("\"p\""), "{text}");
        }
    }
}
