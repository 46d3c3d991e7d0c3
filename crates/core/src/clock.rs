//! `Clock`: where `now` comes from, at the edges. The one place in this crate that reads the time.
//!
//! One clock per registry. The deciding code takes `now` as an argument; only drivers hold a clock.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tick::{Tick, millis};

/// A source of monotonic time: the system's, or one that a test moves by hand. Clones share the time.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Clock, Tick};
///
/// let clock = Clock::manual();
/// clock.advance(Duration::from_secs(15));
/// assert_eq!(clock.now(), Tick::from_millis(15_000));
/// ```
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(system::Origin),
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Monotonic system time, its origin being [`PAST`](Self::PAST) ago. Steps of the wall clock do not move it.
    ///
    /// With feature `coarse-clock` on Linux it is the coarse clock: cheaper to read, 1 to 4 ms a step.
    pub fn system() -> Self {
        Self(Source::System(system::Origin::new()))
    }

    /// How much time a system clock has behind it from the start, so that what a process before this one has kept can be
    /// told by it: 30 days.
    pub const PAST: Duration = Duration::from_secs(30 * 86_400);

    /// A clock that stands at zero until [`advance`](Self::advance) moves it.
    pub fn manual() -> Self {
        Self(Source::Manual(Arc::default()))
    }

    /// The present instant.
    #[inline(always)]
    pub fn now(&self) -> Tick {
        match &self.0 {
            Source::System(origin) => Tick::from_millis(origin.elapsed_millis()),
            Source::Manual(millis) => Tick::from_millis(millis.load(Ordering::Relaxed)),
        }
    }

    /// Moves a manual clock forward. A system clock ignores it.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(now) = &self.0 {
            now.fetch_add(millis(by), Ordering::Relaxed);
        }
    }
}

#[cfg(all(feature = "coarse-clock", target_os = "linux"))]
mod system {
    //! CLOCK_MONOTONIC_COARSE: a read of shared memory, no counter of the processor.

    use rustix::time::{ClockId, clock_gettime};

    use super::Clock;
    use crate::tick::millis;

    /// Wraps around where the machine has not been running for as long as the past.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Origin(u64);

    impl Origin {
        pub(super) fn new() -> Self {
            Self(monotonic_millis().wrapping_sub(millis(Clock::PAST)))
        }

        #[inline]
        pub(super) fn elapsed_millis(self) -> u64 {
            monotonic_millis().wrapping_sub(self.0)
        }
    }

    #[inline]
    fn monotonic_millis() -> u64 {
        // Neither part is ever negative, nor the sum anywhere near the end of 64 bits.
        let time = clock_gettime(ClockId::MonotonicCoarse);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        time.tv_sec.cast_unsigned().wrapping_mul(1_000) + nanos / 1_000_000
    }
}

#[cfg(not(all(feature = "coarse-clock", target_os = "linux")))]
mod system {
    //! `std::time::Instant`.

    use std::time::Instant;

    use super::Clock;
    use crate::tick::millis;

    /// The start; most systems have no instant before they were booted.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Origin(Instant);

    impl Origin {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the clock"
        )]
        pub(super) fn new() -> Self {
            Self(Instant::now())
        }

        #[inline]
        pub(super) fn elapsed_millis(self) -> u64 {
            millis(self.0.elapsed() + Clock::PAST)
        }
    }
}
