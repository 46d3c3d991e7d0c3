//! `Permit`: leave to make one call, and the duty to say how it went.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::breaker::Inner;
use crate::event::{Reason, Rejection, Transition};
use crate::outcome::Outcome;
use crate::state::Generation;
use crate::tick::Tick;

/// Leave to make one call.
///
/// It settles exactly once: [`record`](Self::record) and [`cancel`](Self::cancel) consume it, and dropping it (a
/// cancelled future, a panic, a client that left) cancels it as of the latest time that the breaker has seen. A
/// cancelled permit moves no counter; a probe's slot is free again at once.
///
/// `Permit<'static>` owns its breaker; a shorter one borrows it and costs no reference count.
#[must_use = "a permit that is dropped is cancelled: the call is not counted"]
pub struct Permit<'a> {
    breaker: Handle<'a>,
    ticket: Ticket,
    settled: bool,
}

pub(crate) enum Handle<'a> {
    Borrowed(&'a Inner),
    Owned(Arc<Inner>),
}

impl core::ops::Deref for Handle<'_> {
    type Target = Inner;

    #[inline]
    fn deref(&self) -> &Inner {
        match self {
            Self::Borrowed(inner) => inner,
            Self::Owned(inner) => inner,
        }
    }
}

/// What a permit carries: a few words, no pointer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: Generation,
    pub(crate) standing: Standing,
    pub(crate) seat: Seat,
}

impl Ticket {
    pub(crate) const fn is_probe(&self) -> bool {
        matches!(self.standing, Standing::Probe(_))
    }
}

/// In what capacity a call goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Plain,
    /// With the number of its lease.
    Probe(u64),
    /// It would have been rejected, for this reason and so many ms, but the breaker only watches.
    Ghost(Reason, u64),
    /// There is no breaker.
    Off,
}

/// Whether the call is counted in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    Taken,
    Unlimited,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(crate) const fn new(breaker: Handle<'a>, ticket: Ticket) -> Self {
        Self {
            breaker,
            ticket,
            settled: false,
        }
    }

    /// Says how the call went. Returns the transition that followed, if one did; the breaker's history has it too.
    ///
    /// An outcome of an earlier generation, or while an operator forces the state, is counted as late and changes
    /// nothing.
    #[inline]
    pub fn record(mut self, outcome: &Outcome, now: Tick) -> Option<Transition> {
        self.settled = true;
        self.breaker.settle(&self.ticket, outcome, now)
    }

    /// Gives the permit back: the call says nothing about the provider.
    pub fn cancel(mut self, now: Tick) {
        self.settled = true;
        self.breaker.cancel(&self.ticket, now);
    }

    /// A sign of life, such as a content event of a stream: a probe's lease begins anew.
    pub fn progress(&self, now: Tick) {
        if self.is_probe() {
            self.breaker.progress(&self.ticket, now);
        }
    }

    /// Whether this is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.ticket.is_probe()
    }

    /// In shadow mode, the rejection that an enforcing breaker would have given.
    pub fn would_reject(&self) -> Option<Rejection> {
        match self.ticket.standing {
            Standing::Ghost(reason, ms) => Some(Rejection {
                reason,
                retry_after: Duration::from_millis(ms),
            }),
            Standing::Plain | Standing::Probe(_) | Standing::Off => None,
        }
    }

    /// Whether the state in which this permit was given still stands, so that a further attempt under it makes sense.
    pub fn is_current(&self, now: Tick) -> bool {
        self.breaker.is_current(&self.ticket, now)
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.dropped(&self.ticket);
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("breaker", &self.breaker.name)
            .field("ticket", &self.ticket)
            .finish()
    }
}
