//! Strategies: in which order a call's targets are tried. No clock; the same seed gives the same order.

use std::cmp::Ordering;

use super::jitter::Jitter;

/// In which order targets are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// As written.
    #[default]
    Priority,
    /// The lowest [`cost`](Contender::cost) first.
    Cheapest,
    /// The less loaded of two random ones first, the others behind it by their [`load`](Contender::load).
    Fastest,
    /// At random by [`weight`](Contender::weight), the others behind it in the same way.
    Weighted,
}

/// What is known of one target when a call begins.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "complete by definition: what the strategies look at"
)]
pub struct Contender {
    /// What the call would cost there, in US dollars; none where nobody knows.
    pub cost: Option<f64>,
    /// Its share of the calls; 0 counts as 1.
    pub weight: u32,
    /// How long an answer is to be waited for, in seconds; none where it has not been tried.
    pub load: Option<f64>,
    /// Its breaker is under pressure.
    pub is_degraded: bool,
}

impl Strategy {
    /// The targets' indexes in the order in which this call tries them. Degraded ones come behind the healthy, but for
    /// [`Priority`](Self::Priority), whose order is the operator's own.
    ///
    /// ```
    /// use fuseline_llm::{Contender, Strategy};
    ///
    /// let of = |cost, is_degraded| Contender { cost: Some(cost), weight: 1, load: None, is_degraded };
    /// let targets = [of(0.03, false), of(0.01, true), of(0.02, false)];
    /// assert_eq!(Strategy::Cheapest.rank(&targets, 7), [2, 0, 1]);
    /// assert_eq!(Strategy::Priority.rank(&targets, 7), [0, 1, 2]);
    /// ```
    pub fn rank(self, targets: &[Contender], seed: u64) -> Vec<usize> {
        let mut ranked: Vec<(usize, &Contender)> = targets.iter().enumerate().collect();
        let mut random = Jitter::new(seed);
        match self {
            Self::Priority => {}
            Self::Cheapest => ranked.sort_by(|(_, a), (_, b)| known_first(a.cost, b.cost)),
            Self::Fastest => {
                // What has not been tried is tried, since nothing speaks against it yet.
                let load = |target: &Contender| target.load.unwrap_or_default();
                ranked.sort_by(|(_, a), (_, b)| load(a).total_cmp(&load(b)));
                let healthy = ranked.iter().filter(|(_, target)| !target.is_degraded);
                let healthy: Vec<_> = healthy.map(|(at, _)| *at).collect();
                if let Some(better) = better_of_two(healthy.len(), &mut random)
                    && let Some(first) = healthy.get(better)
                {
                    ranked.sort_by_key(|(at, _)| at != first);
                }
            }
            Self::Weighted => {
                // The first of several waiting times, each in inverse proportion to its weight, is a draw by weight.
                let mut drawn: Vec<_> = ranked
                    .iter()
                    .map(|entry| {
                        (
                            -random.positive().ln() / f64::from(entry.1.weight.max(1)),
                            *entry,
                        )
                    })
                    .collect();
                drawn.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                ranked = drawn.into_iter().map(|(_, entry)| entry).collect();
            }
        }
        if self != Self::Priority {
            ranked.sort_by_key(|(_, target)| target.is_degraded);
        }
        ranked.into_iter().map(|(at, _)| at).collect()
    }
}

/// The place of the better of two different random ones out of `count`, which are sorted, the best first.
fn better_of_two(count: usize, random: &mut Jitter) -> Option<usize> {
    if count < 2 {
        return (count == 1).then_some(0);
    }
    let one = random.below(count);
    let other = random.below(count - 1);
    let other = if other < one { other } else { other + 1 };
    Some(one.min(other))
}

fn known_first(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const PLAIN: Contender = Contender {
        cost: None,
        weight: 1,
        load: None,
        is_degraded: false,
    };

    fn loads(loads: &[f64]) -> Vec<Contender> {
        let of = |load: &f64| Contender {
            load: Some(*load),
            ..PLAIN
        };
        loads.iter().map(of).collect()
    }

    /// How often each target came first in 10,000 calls.
    fn firsts(strategy: Strategy, targets: &[Contender]) -> Vec<u32> {
        let mut firsts = vec![0; targets.len()];
        for seed in 0..10_000 {
            firsts[strategy.rank(targets, seed)[0]] += 1;
        }
        firsts
    }

    #[test]
    fn the_cheapest_comes_first_and_who_has_no_price_last() {
        let costs = [None, Some(0.3), Some(0.1), None, Some(0.2)];
        let targets = costs.map(|cost| Contender { cost, ..PLAIN });
        assert_eq!(Strategy::Cheapest.rank(&targets, 1), [2, 4, 1, 0, 3]);
    }

    #[test]
    fn equals_stay_in_the_order_written() {
        let targets = [PLAIN; 4];
        for strategy in [Strategy::Priority, Strategy::Cheapest] {
            assert_eq!(strategy.rank(&targets, 3), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn of_two_the_faster_is_always_first_and_of_four_mostly() {
        assert_eq!(firsts(Strategy::Fastest, &loads(&[0.3, 0.1])), [0, 10_000]);
        let firsts = firsts(Strategy::Fastest, &loads(&[0.4, 0.1, 0.3, 0.2]));
        let about = |found: u32, expected: u32| found.abs_diff(expected) < 300;
        assert!(
            about(firsts[1], 5_000) && about(firsts[3], 3_333),
            "{firsts:?}"
        );
        assert!(
            about(firsts[2], 1_667) && firsts[0] == 0,
            "{firsts:?}: never the worst"
        );
        let order = Strategy::Fastest.rank(&loads(&[0.4, 0.1, 0.3, 0.2]), 5);
        let behind: Vec<_> = order[1..].to_vec();
        assert!(
            behind.is_sorted_by_key(|at| [4, 1, 3, 2][*at]),
            "the others stand by their load: {order:?}"
        );
    }

    #[test]
    fn what_has_not_been_tried_is() {
        let mut targets = loads(&[0.1, 0.2]);
        targets[1].load = None;
        assert_eq!(Strategy::Fastest.rank(&targets, 1), [1, 0]);
    }

    #[test]
    fn calls_are_shared_by_weight() {
        let targets = [3, 1, 0].map(|weight| Contender { weight, ..PLAIN });
        let firsts = firsts(Strategy::Weighted, &targets);
        let shares = firsts.iter().zip([6_000_u32, 2_000, 2_000]);
        assert!(
            shares
                .clone()
                .all(|(found, share)| found.abs_diff(share) < 250),
            "{firsts:?}"
        );
    }

    proptest! {
        #[test]
        fn every_target_once_and_the_degraded_behind(
            states in prop::collection::vec((prop::option::of(0.0..9.0), 0_u32..5, prop::option::of(0.0..9.0), any::<bool>()), 0..6),
            seed in any::<u64>(),
        ) {
            let targets: Vec<_> = states.into_iter().map(|(cost, weight, load, is_degraded)| Contender { cost, weight, load, is_degraded }).collect();
            for strategy in [Strategy::Priority, Strategy::Cheapest, Strategy::Fastest, Strategy::Weighted] {
                let order = strategy.rank(&targets, seed);
                prop_assert_eq!(&order, &strategy.rank(&targets, seed));
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert!(sorted.into_iter().eq(0..targets.len()));
                prop_assert!(strategy == Strategy::Priority || order.is_sorted_by_key(|at| targets[*at].is_degraded));
            }
        }
    }
}
