//! `Sum`: what a `cusum` rule counts, a sequential test of "ill" against "well" after each outcome.
//!
//! The sum of log-likelihood ratios, never below zero, told in failures: each adds one, each success takes the same share of
//! one off. Of a healthy provider it reaches the limit on average no more often than once in so many calls (Lorden's bound).
//!
//! As every success takes off the same and the sum stops at zero, what it is at a failure follows from how many successes
//! there were since the one before. So failures alone bring it up to date, and a success has nothing to write.

/// A failure, in the sum's units: whole numbers, so that the same outcomes come to the same whatever they are added up by.
pub(super) const FAILURE: u64 = 1_000_000_000;

/// In billionths of a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    /// What a success takes off.
    success: u64,
    pub(super) limit: u64,
    /// As the last failure left it.
    sum: u64,
}

impl Sum {
    pub(super) fn new(well: f64, ill: f64, calls_per_false_alarm: f64) -> Self {
        let failure = (ill / well).ln();
        let in_failures = |value: f64| (value / failure * FAILURE as f64).round().max(1.0) as u64;
        Self {
            success: in_failures(((1.0 - well) / (1.0 - ill)).ln()),
            limit: in_failures(calls_per_false_alarm.ln()),
            sum: 0,
        }
    }

    /// With the sum of a rule that weighs outcomes the same.
    pub(super) fn going_on(self, before: Self) -> Self {
        Self {
            sum: before.sum,
            ..self
        }
    }

    /// No less than it is now: successes since the last failure are not taken off.
    pub(super) const fn at_most(self) -> u64 {
        self.sum
    }

    /// With so many successes since the last failure.
    pub(super) const fn after(self, successes: u64) -> u64 {
        self.sum
            .saturating_sub(self.success.saturating_mul(successes))
    }

    /// So many failures, after so many successes since those before.
    pub(super) fn fail(&mut self, successes: u64, times: u32) {
        let more = u64::from(times).saturating_mul(FAILURE);
        self.sum = self.after(successes).saturating_add(more);
    }

    pub(super) fn clear(&mut self) {
        self.sum = 0;
    }
}

#[cfg(all(test, not(fuseline_loom)))]
mod tests {
    use super::super::{Counts, MANY};
    use super::*;
    use crate::kind::Kind;
    use crate::policy::{Policy, PolicySpec};
    use crate::state::Generation;
    use crate::tick::Tick;
    use crate::trip::TripRule;
    use crate::window::Shards;

    #[test]
    fn weights_and_limit_are_those_of_the_likelihood_ratio() {
        let sum = Sum::new(0.02, 0.15, 1e8);
        // ln(0.98 / 0.85) and ln(1e8), each by ln(7.5).
        assert_eq!((sum.success, sum.limit), (70_631_798, 9_142_217_048));
    }

    #[test]
    fn successes_lower_it_and_not_below_zero() {
        let mut sum = Sum::new(0.02, 0.15, 1e8);
        sum.fail(1_000, 2);
        assert_eq!(sum.after(0), 2 * FAILURE);
        assert_eq!(sum.after(3), 2 * FAILURE - 3 * sum.success);
        assert_eq!(sum.after(29), 0);
        assert_eq!(sum.after(u64::MAX), 0);
        sum.fail(1, 1);
        assert_eq!(sum.after(0), 3 * FAILURE - sum.success);
        sum.clear();
        assert_eq!(sum.at_most(), 0);
    }

    #[test]
    fn calls_without_end_are_begun_anew_before_their_count_is_full() {
        let policy = Policy::new(&PolicySpec {
            trip: Some(vec![TripRule::cusum()]),
            ..PolicySpec::default()
        });
        let (policy, shards, generation) = (policy.unwrap(), Shards::new(), Generation::FIRST);
        let mut counts = Counts::new(policy.checked(), &shards);
        let now = Tick::from_millis(5);
        let fail = |counts: &mut Counts, times| {
            counts.failure(Kind::Timeout, times, &shards, generation, now);
            counts.view(&shards, generation, now)[0].observed
        };
        assert!((fail(&mut counts, 2) - 2.0).abs() < 1e-6);
        counts.calls(u32::MAX, now);
        assert!((fail(&mut counts, 3) - 3.0).abs() < 1e-6, "all taken off");
        assert!(counts.calls_then < MANY);
        counts.calls(10, now);
        assert!((fail(&mut counts, 1) - 3.293_682).abs() < 1e-6);
        shards.add(generation, now);
        assert!((fail(&mut counts, 1) - 4.223_050).abs() < 1e-6);
    }

    fn calls_until_alarm(share: f64, seed: u64) -> u64 {
        let mut chance = crate::backoff::SplitMix::new(seed);
        let mut sum = Sum::new(0.02, 0.3, 1_000.0);
        let mut successes = 0;
        for call in 1.. {
            if chance.next() as f64 / u64::MAX as f64 >= share {
                successes += 1;
                continue;
            }
            sum.fail(successes, 1);
            successes = 0;
            if sum.at_most() >= sum.limit {
                return call;
            }
        }
        u64::MAX
    }

    #[test]
    fn alarms_are_quick_in_trouble_and_rarer_than_stated_in_health() {
        let mean = |share| {
            (0..50)
                .map(|seed| calls_until_alarm(share, seed))
                .sum::<u64>()
                / 50
        };
        assert!(mean(0.3) < 20, "{}", mean(0.3));
        assert!(mean(0.02) > 1_000, "{}", mean(0.02));
        assert_eq!(calls_until_alarm(1.0, 1), 3);
    }
}
