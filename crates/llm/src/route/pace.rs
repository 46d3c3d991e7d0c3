//! `Pace`: how fast a target has answered lately.

use std::time::Duration;

use fuseline_core::Tick;

/// Within this time two thirds of what is known of a peak are forgotten.
const DECAY: Duration = Duration::from_secs(10);

/// How long answers of one target take: an average that jumps to each peak at once and comes down from it slowly, by
/// new answers and by time alone. So it stays close to a high quantile of what is to be expected, and a target that was
/// slow once is looked at again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace(Option<(f64, Tick)>);

impl Pace {
    /// An answer took this long: a stream until its first content, anything else as a whole.
    pub fn observe(&mut self, took: Duration, now: Tick) {
        let took = took.as_secs_f64();
        let average = match self.0 {
            Some((average, _)) if average < took => took,
            Some((average, since)) => {
                let kept = kept(since, now);
                took.mul_add(1.0 - kept, average * kept)
            }
            None => took,
        };
        self.0 = Some((average, now));
    }

    /// What a further call has to reckon with, in seconds, while so many others are under way; none before the first
    /// answer.
    pub fn load(&self, in_flight: u32, now: Tick) -> Option<f64> {
        let (average, since) = self.0?;
        Some(average * kept(since, now) * (f64::from(in_flight) + 1.0))
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
    fn calls_under_way_make_the_next_one_dearer() {
        let mut pace = Pace::default();
        pace.observe(Duration::from_secs(1), at(0));
        assert_eq!(pace.load(3, at(0)), Some(4.0));
    }
}
