//! `Cusum`: a sequential change detector, tried beside the trip rules of the core.
//!
//! After each outcome the sum grows by the log-likelihood ratio of "ill" against "well" and never falls below zero; at the
//! limit it raises an alarm. Of a healthy provider, false alarms come on average no more often than once in e^limit calls
//! (Lorden's bound), so that the limit states the rate of false alarms.

use fuseline_core::Outcome;

/// A detector's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cusum {
    failure: f64,
    success: f64,
    limit: f64,
}

impl Cusum {
    /// Tells a provider that fails a share of `ill` from one that fails a share of `well`, with at most one false alarm in
    /// `calls`, on average. Shares are 0 to 1, `well` the smaller.
    pub fn new(well: f64, ill: f64, calls: f64) -> Self {
        Self {
            failure: (ill / well).ln(),
            success: ((1.0 - ill) / (1.0 - well)).ln(),
            limit: calls.ln(),
        }
    }

    /// The sum after one more outcome.
    pub(crate) fn after(&self, sum: f64, outcome: &Outcome) -> f64 {
        let step = match outcome {
            Outcome::Success { .. } => self.success,
            Outcome::Failure(_) => self.failure,
            Outcome::Neutral => 0.0,
        };
        (sum + step).max(0.0)
    }

    pub(crate) fn is_alarm(&self, sum: f64) -> bool {
        sum >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fuseline_core::Kind;

    use super::*;

    fn calls_until_alarm(cusum: Cusum, share: f64, seed: u64) -> u32 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut sum = 0.0;
        for call in 1.. {
            let outcome = if chance.f64() < share {
                Outcome::failure(Kind::ServerError)
            } else {
                Outcome::success(Duration::ZERO)
            };
            sum = cusum.after(sum, &outcome);
            if cusum.is_alarm(sum) {
                return call;
            }
        }
        u32::MAX
    }

    #[test]
    fn alarms_are_quick_in_trouble_and_rarer_than_stated_in_health() {
        let cusum = Cusum::new(0.02, 0.3, 1_000.0);
        let mean = |share| {
            let runs = (0..50).map(|seed| u64::from(calls_until_alarm(cusum, share, seed)));
            runs.sum::<u64>() / 50
        };
        assert!(mean(0.3) < 20, "{}", mean(0.3));
        assert!(mean(0.02) > 1_000, "{}", mean(0.02));
        assert_eq!(calls_until_alarm(cusum, 1.0, 1), 3);
    }
}
