//! Delays that do not line up: exponential, spread by a quarter to both sides, repeatable from a seed.

use std::time::Duration;

const CAP: Duration = Duration::from_secs(30);

/// A sequence of numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The delay before retry `n`, the first being 0: `base` x 2^n x U(0.75, 1.25), at most 30 s.
    pub(super) fn delay(&mut self, base: Duration, n: u32) -> Duration {
        let grown = base
            .saturating_mul(1_u32.checked_shl(n).unwrap_or(u32::MAX))
            .min(CAP);
        grown.mul_f64(0.75 + 0.5 * self.unit()).min(CAP)
    }

    /// A wait that must not be cut short: x U(1, 1.1), at most a second longer.
    pub(super) fn lengthened(&mut self, wait: Duration) -> Duration {
        wait.saturating_add(wait.mul_f64(0.1 * self.unit()).min(Duration::from_secs(1)))
    }

    /// Uniform in 0 to 1, 0 excluded.
    pub(super) fn positive(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform in 0 to `count`, `count` excluded; 0 where that is 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let scaled = (u128::from(self.next()) * count as u128) >> 64;
        usize::try_from(scaled).unwrap_or_default()
    }

    /// Uniform in 0 to 1, 1 excluded.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const BASE: Duration = Duration::from_millis(500);

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut numbers = Jitter::new(1_234_567);
        assert_eq!(numbers.next(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn delays_grow_within_their_bounds_and_stop_at_the_cap() {
        for seed in 0..200 {
            let mut jitter = Jitter::new(seed);
            let delays: Vec<_> = (0..5).map(|n| jitter.delay(BASE, n)).collect();
            assert!(delays.is_sorted_by(|a, b| a < b), "{delays:?}");
            assert!(delays[0] >= BASE.mul_f64(0.75) && delays[0] < BASE.mul_f64(1.25));
            for n in [7, 31, 32, u32::MAX] {
                let late = jitter.delay(BASE, n);
                assert!(late <= CAP && late >= CAP.mul_f64(0.75), "{late:?}");
            }
        }
    }

    #[test]
    fn report_21_two_hundred_first_delays_do_not_line_up_and_a_seed_repeats_them() {
        let first = |seed| Jitter::new(seed).delay(BASE, 0);
        let delays: BTreeSet<_> = (0..200).map(first).collect();
        assert!(delays.len() >= 100, "{}", delays.len());
        assert_eq!(first(7), first(7));
    }
}
