//! `Ticket`: what a permit carries, in one word, so that the hot path keeps it in a register.
//!
//! Generation (24 bits), seat (1), standing (2), and what goes with the standing (37): a lease's number, or a refusal's
//! reason (3) and wait in ms (34, saturating: half a year).

use crate::event::Reason;
use crate::state::Generation;

const SEAT: u64 = 1 << 24;
const STANDING: u32 = 25;
const REST: u32 = 27;
const LONGEST_WAIT: u64 = (1 << 34) - 1;

/// Generation, standing and seat of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

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

impl Ticket {
    /// No ticket: [`new`](Self::new) makes none with these bits.
    pub(crate) const SETTLED: Self = Self(u64::MAX);
    /// Lease numbers that fit.
    pub(crate) const LEASES: u64 = 1 << (64 - REST);

    /// A plain call that is not counted in flight.
    #[inline]
    pub(crate) const fn plain(generation: Generation) -> Self {
        Self(generation.get() as u64)
    }

    pub(crate) fn new(generation: Generation, standing: Standing, seat: Seat) -> Self {
        let (tag, rest) = match standing {
            Standing::Plain => (0, 0),
            Standing::Probe(lease) => (1, lease % Self::LEASES),
            Standing::Ghost(reason, wait) => (2, wait.min(LONGEST_WAIT) << 3 | reason.number()),
            Standing::Off => (3, 0),
        };
        let seat = if seat == Seat::Taken { SEAT } else { 0 };
        Self(u64::from(generation.get()) | seat | tag << STANDING | rest << REST)
    }

    #[inline]
    pub(crate) const fn generation(self) -> Generation {
        Generation::from_bits(self.0 as u32)
    }

    /// Whether it is a plain call's.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 >> STANDING & 3 == 0
    }

    pub(crate) const fn is_probe(self) -> bool {
        self.0 >> STANDING & 3 == 1
    }

    pub(crate) fn standing(self) -> Standing {
        let rest = self.0 >> REST;
        match self.0 >> STANDING & 3 {
            0 => Standing::Plain,
            1 => Standing::Probe(rest),
            2 => Standing::Ghost(Reason::from_number(rest & 7), rest >> 3),
            _ => Standing::Off,
        }
    }

    #[inline]
    pub(crate) const fn seat(self) -> Seat {
        if self.0 & SEAT == 0 {
            Seat::Unlimited
        } else {
            Seat::Taken
        }
    }
}

#[cfg(all(test, not(fuseline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let last = Generation::from_bits(u32::MAX);
        let ghosts = Reason::COUNTED.map(|reason| Standing::Ghost(reason, 3_600_000));
        let others = [
            Standing::Plain,
            Standing::Probe(Ticket::LEASES - 1),
            Standing::Off,
        ];
        for standing in ghosts.into_iter().chain(others) {
            for generation in [Generation::FIRST, last] {
                for seat in [Seat::Taken, Seat::Unlimited] {
                    let ticket = Ticket::new(generation, standing, seat);
                    assert_ne!(ticket, Ticket::SETTLED);
                    assert_eq!(ticket.generation(), generation);
                    assert_eq!(ticket.standing(), standing);
                    assert_eq!(ticket.seat(), seat);
                    assert_eq!(ticket.is_plain(), standing == Standing::Plain);
                    assert_eq!(ticket.is_probe(), matches!(standing, Standing::Probe(_)));
                }
            }
        }
        assert_eq!(
            Ticket::plain(last),
            Ticket::new(last, Standing::Plain, Seat::Unlimited)
        );
    }

    #[test]
    fn an_endless_wait_saturates() {
        let ghost = Standing::Ghost(Reason::Forced, u64::MAX);
        let ticket = Ticket::new(Generation::FIRST, ghost, Seat::Unlimited);
        assert_eq!(
            ticket.standing(),
            Standing::Ghost(Reason::Forced, LONGEST_WAIT)
        );
    }
}
