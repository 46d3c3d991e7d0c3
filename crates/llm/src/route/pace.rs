//! `Pace`: how fast a target has answered lately.

use std::collections::VecDeque;
use std::time::Duration;

use fuseline_core::Tick;

/// Within this time two thirds of what is known of a peak are forgotten.
const DECAY: Duration = Duration::from_secs(10);
/// So many answers are remembered one by one.
const RECENT: usize = 64;
/// With fewer, a quantile would be a guess.
const ENOUGH: usize = 20;

/// How long answers of one target take: an average that jumps to each peak at once and comes down from it slowly, by
/// new answers and by time alone. So it stays close to a high quantile of what is to be expected, and a target that was
/// slow once is looked at again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    average: Option<(f64, Tick)>,
    recent: VecDeque<Duration>,
}

impl Pace {
    /// An answer took this long: a stream until its first content, anything else as a whole.
    pub fn observe(&mut self, took: Duration, now: Tick) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(took);
        let took = took.as_secs_f64();
        let average = match self.average {
            Some((average, _)) if average < took => took,
            Some((average, since)) => {
                let kept = kept(since, now);
                took.mul_add(1.0 - kept, average * kept)
            }
            None => took,
        };
        self.average = Some((average, now));
    }

    /// What a further call has to reckon with, in seconds, while so many others are under way; none before the first
    /// answer.
    pub fn load(&self, in_flight: u32, now: Tick) -> Option<f64> {
        let (average, since) = self.average?;
        Some(average * kept(since, now) * (f64::from(in_flight) + 1.0))
    }

    /// The time within which this share of the last 64 answers came; none before there were 20.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        if self.recent.len() < ENOUGH {
            return None;
        }
        let mut sorted: Vec<_> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted
            .get(rank.saturating_sub(1))
            .or_else(|| sorted.last())
            .copied()
    }
}

/// The share of an average that is left after the time from `since` to `now`.
fn kept(since: Tick, now: Tick) -> f64 {
    (-now.since(since).as_secs_f64() / DECAY.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1_000)
    }

    fn millis(pace: &Pace, seconds: u64) -> f64 {
        (pace.load(0, at(seconds)).unwrap() * 1_000.0).round()
    }

    #[test]
    fn it_jumps_up_at_once_and_comes_down_slowly() {
        let mut pace = Pace::default();
        assert_eq!(pace.load(3, at(0)), None);
        pace.observe(Duration::from_millis(100), at(0));
        pace.observe(Duration::from_millis(800), at(0));
        assert_eq!(millis(&pace, 0), 800.0);
        pace.observe(Duration::from_millis(100), at(0));
        assert_eq!(millis(&pace, 0), 800.0, "no time has passed");
        pace.observe(Duration::from_millis(100), at(10));
        assert_eq!(millis(&pace, 10), 358.0, "100 + 700 / e");
        assert_eq!(millis(&pace, 20), 132.0, "by time alone");
    }

    #[test]
    fn a_quantile_is_of_the_last_answers_and_needs_enough_of_them() {
        let mut pace = Pace::default();
        for millis in 1..20 {
            pace.observe(Duration::from_millis(millis), at(0));
        }
        assert_eq!(pace.quantile(0.5), None);
        pace.observe(Duration::from_millis(20), at(0));
        let quantiles =
            [0.0, 0.5, 0.95, 1.0].map(|share| pace.quantile(share).unwrap().as_millis());
        assert_eq!(quantiles, [1, 10, 19, 20]);
        for _ in 0..RECENT {
            pace.observe(Duration::from_secs(1), at(0));
        }
        assert_eq!(pace.quantile(0.01), Some(Duration::from_secs(1)));
    }

    #[test]
    fn calls_under_way_make_the_next_one_dearer() {
        let mut pace = Pace::default();
        pace.observe(Duration::from_secs(1), at(0));
        assert_eq!(pace.load(3, at(0)), Some(4.0));
    }
}
