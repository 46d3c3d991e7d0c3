//! `Traffic`: when calls come and how long their answers are. An hour of a real service, whole or thinned.

use core::time::Duration;

use fuseline_core::Tick;

/// Calls of about an hour, which repeats for as long as a run lasts.
#[derive(Clone, Debug)]
pub struct Traffic {
    calls: Vec<Arrival>,
    /// From one call to its repetition.
    period: u64,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Tick,
    /// Tokens of its answer.
    pub(crate) tokens: u32,
}

impl Traffic {
    /// The recorded hour: 19,366 calls of a conversation service, 5.5 a second. `data/README.md` says where it is from.
    pub fn recorded() -> Self {
        let rows = include_str!("../data/arrivals.csv").lines().skip(1);
        let calls: Vec<Arrival> = rows.filter_map(arrival).collect();
        let last = calls.last().map_or(0, |call| call.at.as_millis());
        let gap = last / calls.len().max(1) as u64;
        Self {
            period: last + gap.max(1),
            calls,
        }
    }

    /// One call in `every` of these, chosen by the seed: the same hour of a smaller service.
    #[must_use]
    pub fn thinned(&self, every: u32, seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        let calls = self.calls.iter().copied();
        Self {
            calls: calls.filter(|_| chance.u32(0..every.max(1)) == 0).collect(),
            period: self.period,
        }
    }

    /// Calls in a second, on average.
    pub fn rate(&self) -> f64 {
        self.calls.len() as f64 / Duration::from_millis(self.period).as_secs_f64()
    }

    /// Calls from a place in the hour on, without end; their times begin anew at zero.
    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = Arrival> {
        let place = place % self.calls.len().max(1);
        let begin = self.calls.get(place).map_or(0, |call| call.at.as_millis());
        let rounds = (0_u64..).flat_map(move |round| {
            let later = self.period.saturating_mul(round);
            let calls = self.calls.iter();
            calls.map(move |call| (call.at.as_millis() + later, call.tokens))
        });
        let calls = rounds.skip(place);
        calls.map(move |(at, tokens)| Arrival {
            at: Tick::from_millis(at - begin),
            tokens,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }
}

fn arrival(row: &str) -> Option<Arrival> {
    let mut cells = row.split(',');
    let at = Tick::from_millis(cells.next()?.parse().ok()?);
    let tokens = cells.nth(1)?.parse().ok()?;
    Some(Arrival { at, tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hour_is_whole_and_goes_round() {
        let traffic = Traffic::recorded();
        assert_eq!(traffic.len(), 19_366);
        assert!((5.4..5.6).contains(&traffic.rate()), "{}", traffic.rate());
        let times: Vec<_> = traffic.from(19_365).take(3).map(|call| call.at).collect();
        assert_eq!(times, [0, 180, 4_495].map(Tick::from_millis));
        let mut calls = traffic.from(7).map(|call| call.at).take(60_000);
        assert!(calls.by_ref().is_sorted());
    }

    #[test]
    fn thinning_keeps_the_share_and_follows_the_seed() {
        let traffic = Traffic::recorded();
        let (a, b) = (traffic.thinned(20, 1), traffic.thinned(20, 1));
        assert_eq!(a.calls, b.calls);
        assert!((850..1_100).contains(&a.len()), "{}", a.len());
    }
}
