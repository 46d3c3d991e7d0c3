//! `Tick`: an instant of one registry's own time, in whole milliseconds since its origin.
//!
//! A breaker's decisions are made in seconds, so a millisecond is exact enough; it makes the state word, the
//! conformance vectors and the three languages agree to the digit. Arithmetic saturates: a clock that steps back
//! or a wait of a thousand years is a wrong number, never a panic.

use core::time::Duration;

/// An instant in milliseconds since the registry's origin.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::Tick;
///
/// let start = Tick::from_millis(1_500);
/// assert_eq!(start + Duration::from_secs(2), Tick::from_millis(3_500));
/// assert_eq!(start.since(Tick::from_millis(9_000)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Tick(u64);

impl Tick {
    /// The registry's origin.
    pub const ZERO: Self = Self(0);
    /// Later than any instant that can occur; stands for "no end".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `millis` after the origin.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the origin.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero where `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Tick {
    type Output = Self;

    #[inline]
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }
}

/// Whole milliseconds of a duration, saturating.
#[inline]
pub(crate) fn millis(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000);
    whole.saturating_add(u64::from(duration.subsec_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Tick::MAX + Duration::MAX, Tick::MAX);
        assert_eq!(Tick::ZERO.since(Tick::MAX), Duration::ZERO);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }
}
