//! `Ticket`: what a permit carries, in one word, so that permits move in registers.
//!
//! From the lowest bit: generation (24), seat (1), standing (2), lease (6), when the permit was given (31, in ms, wrapping
//! every 24 days). A ghost has no generation and no lease: there stand its wait in ms (24 + 3, saturating at 37 hours) and
//! its reason (3).

use core::time::Duration;

use crate::event::Reason;
use crate::state::Generation;
use crate::tick::Tick;

const SEAT: u64 = 1 << 24;
const STANDING: u32 = 25;
const LEASE: u32 = 27;
const SINCE: u32 = 33;
const LOW: u64 = (1 << 24) - 1;
const LONGEST_WAIT: u64 = (1 << 27) - 1;
const SINCE_MASK: u64 = (1 << (64 - SINCE)) - 1;

/// Generation, standing, seat and time of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// In what capacity a call goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Plain,
    /// With the number of its lease, below [`Ticket::LEASES`].
    Probe(u8),
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
    /// Leases that can be told apart: as many as there can be live probes.
    pub(crate) const LEASES: u8 = 64;

    /// A plain call that is not counted in flight.
    #[inline]
    pub(crate) const fn plain(generation: Generation, now: Tick) -> Self {
        Self(generation.get() as u64 | now.as_millis() << SINCE)
    }

    pub(crate) fn new(generation: Generation, standing: Standing, seat: Seat, now: Tick) -> Self {
        let generation = u64::from(generation.get());
        let (tag, low, rest) = match standing {
            Standing::Plain => (0, generation, 0),
            Standing::Probe(lease) => (1, generation, u64::from(lease % Self::LEASES)),
            Standing::Ghost(reason, wait) => {
                let wait = wait.min(LONGEST_WAIT);
                (2, wait & LOW, wait >> 24 << 3 | reason.number())
            }
            Standing::Off => (3, generation, 0),
        };
        let seat = if seat == Seat::Taken { SEAT } else { 0 };
        Self(low | seat | tag << STANDING | rest << LEASE | now.as_millis() << SINCE)
    }

    /// Of a ghost it says nothing.
    #[inline]
    pub(crate) const fn generation(self) -> Generation {
        Generation::from_bits(self.0 as u32)
    }

    /// Time since the permit was given: exact up to 12 days; zero where `now` is earlier.
    #[inline]
    pub(crate) const fn elapsed(self, now: Tick) -> Duration {
        let passed = now.as_millis().wrapping_sub(self.0 >> SINCE) & SINCE_MASK;
        if passed > SINCE_MASK / 2 {
            return Duration::ZERO;
        }
        Duration::from_millis(passed)
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
        let rest = self.0 >> LEASE & 0x3f;
        match self.0 >> STANDING & 3 {
            0 => Standing::Plain,
            1 => Standing::Probe(rest as u8),
            2 => {
                let wait = self.0 & LOW | rest >> 3 << 24;
                Standing::Ghost(Reason::from_number(rest & 7), wait)
            }
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
        let others = [
            Standing::Plain,
            Standing::Probe(Ticket::LEASES - 1),
            Standing::Off,
        ];
        for standing in others {
            for generation in [Generation::FIRST, last] {
                for (seat, now) in [(Seat::Taken, 0), (Seat::Unlimited, SINCE_MASK)] {
                    let now = Tick::from_millis(now);
                    let ticket = Ticket::new(generation, standing, seat, now);
                    assert_ne!(ticket, Ticket::SETTLED);
                    assert_eq!(ticket.generation(), generation);
                    assert_eq!(ticket.standing(), standing);
                    assert_eq!(ticket.seat(), seat);
                    assert_eq!(ticket.is_plain(), standing == Standing::Plain);
                    assert_eq!(ticket.is_probe(), matches!(standing, Standing::Probe(_)));
                    assert_eq!(ticket.elapsed(now + Duration::from_secs(5)).as_secs(), 5);
                }
            }
        }
        let now = Tick::from_millis(77);
        assert_eq!(
            Ticket::plain(last, now),
            Ticket::new(last, Standing::Plain, Seat::Unlimited, now)
        );
    }

    #[test]
    fn a_ghost_keeps_its_refusal_and_an_endless_wait_saturates() {
        for reason in Reason::COUNTED {
            for (wait, kept) in [(0, 0), (3_600_001, 3_600_001), (u64::MAX, LONGEST_WAIT)] {
                let ghost = Standing::Ghost(reason, wait);
                let ticket = Ticket::new(
                    Generation::from_bits(u32::MAX),
                    ghost,
                    Seat::Unlimited,
                    Tick::from_millis(9),
                );
                assert_eq!(ticket.standing(), Standing::Ghost(reason, kept));
                assert_eq!(ticket.seat(), Seat::Unlimited);
                assert_eq!(ticket.elapsed(Tick::from_millis(11)).as_millis(), 2);
            }
        }
    }

    #[test]
    fn time_is_told_across_the_turn_of_the_bits_and_never_backwards() {
        let before = Tick::from_millis(SINCE_MASK - 10);
        let ticket = Ticket::plain(Generation::FIRST, before);
        let day = Duration::from_secs(86_400);
        assert_eq!(ticket.elapsed(before + day), day);
        let earlier = Tick::from_millis(SINCE_MASK - 500);
        assert_eq!(ticket.elapsed(earlier), Duration::ZERO);
    }
}
