//! What replicas have counted, and whether all of it together reaches a rule.
//!
//! A rule opens the fleet where the sum reaches its threshold *and* at least two replicas, or the only one there is, have
//! seen what it counts: one whose own way out is broken opens nobody else. A run of failures is one with no success anywhere:
//! each replica tells in which turns it had one, and all begin their runs anew after it. Counts are summed where they were
//! told under the same version of the fleet's record: those that led to an opening must not lead to the next one, told by
//! replicas that have not heard yet that it has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::{Evidence, RuleSnapshot, Tick, TripRule};
use serde::{Deserialize, Serialize};

/// A share this near to its threshold has reached it.
const NEARLY: f64 = 1.0 - 1e-9;
/// A turn this long after the last one says nothing about what went well between them.
const PAUSE: Duration = Duration::from_secs(1);
/// For how long a success anywhere keeps runs from being summed: by then all have begun theirs anew.
const SLICE: Duration = Duration::from_millis(250);

/// What one replica has counted of one breaker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// For each trip rule what counts towards it, and the calls among which it was.
    rules: Vec<(u64, u64)>,
    /// Turns in which a call went well.
    good: u64,
    /// The kind of the latest failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// Until when the provider asked to be left alone, in the server's time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) hold_until: u64,
    /// The version of the fleet's record that was known when this was told. What was counted under another is over: it led
    /// there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) version: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// What the rules see in all counts together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) observed: f64,
    pub(crate) threshold: f64,
}

impl Counted {
    pub(crate) fn has_failures(&self) -> bool {
        self.hold_until > 0 || self.rules.iter().any(|(hits, _)| *hits > 0)
    }
}

/// Follows one breaker's counts here, and what others tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counting {
    /// The run at the last turn, and as much of it as a success elsewhere has ended.
    run: u64,
    ended: u64,
    calls: BTreeMap<Tick, u32>,
    good: u64,
    /// When this replica last told; what happened before a pause is no news.
    told_at: Option<Tick>,
    /// When a success was last heard of, here or elsewhere.
    good_at: Option<Tick>,
    /// The last word of others on their good turns.
    heard: BTreeMap<String, u64>,
}

impl Counting {
    /// What to tell of this replica.
    pub(crate) fn tell(
        &mut self,
        evidence: &Evidence,
        kind: Option<String>,
        hold_until: u64,
        now: Tick,
    ) -> Counted {
        let run = evidence
            .rules
            .iter()
            .find(|rule| is_run(rule))
            .map_or(0, |rule| rule.hits);
        let is_news = self.told_at.is_some_and(|told| now.since(told) < PAUSE);
        self.told_at = Some(now);
        if self.went_well(evidence, run) && is_news {
            self.good += 1;
            self.good_at = Some(now);
        }
        if run < self.run {
            self.ended = 0;
        }
        self.run = run;
        let rules = evidence.rules.iter().map(|rule| match is_run(rule) {
            true => (rule.hits.saturating_sub(self.ended), 0),
            false => (rule.hits, rule.calls.unwrap_or(0)),
        });
        Counted {
            rules: rules.collect(),
            good: self.good,
            kind,
            hold_until,
            version: 0,
        }
    }

    /// Whether a call went well since the last turn: the run fell, or more calls settled than failed.
    fn went_well(&mut self, evidence: &Evidence, run: u64) -> bool {
        let before = core::mem::take(&mut self.calls);
        let settled: u64 = evidence
            .calls
            .iter()
            .map(|(at, count)| {
                u64::from(count.saturating_sub(before.get(at).copied().unwrap_or(0)))
            })
            .sum();
        self.calls = evidence.calls.iter().copied().collect();
        run < self.run || settled > run.saturating_sub(self.run)
    }

    /// What all have counted, where it opens the fleet: `own` is this replica's, `others` what was told, `alive` how many
    /// replicas there are.
    pub(crate) fn judge(
        &mut self,
        rules: &[TripRule],
        own: &Counted,
        others: &[(String, Counted)],
        alive: u64,
        now: Tick,
    ) -> Option<Sum> {
        let mut anew = false;
        for (who, counted) in others {
            let before = self.heard.insert(who.clone(), counted.good);
            anew |= before.is_some_and(|before| before != counted.good);
        }
        self.heard
            .retain(|who, _| others.iter().any(|(other, _)| other == who));
        if anew {
            self.ended = self.run;
            self.good_at = Some(now);
        }
        let in_slice = self.good_at.is_some_and(|good| now.since(good) < SLICE);
        let enough = alive.clamp(1, 2);
        rules.iter().enumerate().find_map(|(at, rule)| {
            if in_slice && matches!(rule, TripRule::Consecutive { .. }) {
                return None;
            }
            let all = core::iter::once(own).chain(others.iter().map(|(_, counted)| counted));
            let told = all
                .filter(|counted| counted.version == own.version)
                .filter(|counted| counted.rules.len() == rules.len())
                .filter_map(|counted| counted.rules.get(at).copied());
            let (mut hits, mut calls, mut replicas) = (0_u64, 0_u64, 0_u64);
            for (own_hits, own_calls) in told {
                hits = hits.saturating_add(own_hits);
                calls = calls.saturating_add(own_calls);
                replicas += u64::from(own_hits > 0);
            }
            reached(rule, hits, calls).filter(|_| replicas >= enough)
        })
    }
}

fn is_run(rule: &RuleSnapshot) -> bool {
    rule.rule == "consecutive"
}

/// What this rule sees, where that opens.
fn reached(rule: &TripRule, hits: u64, calls: u64) -> Option<Sum> {
    let (observed, threshold, is_armed) = match *rule {
        TripRule::Consecutive { failures } | TripRule::Window { failures, .. } => {
            (hits as f64, f64::from(failures), true)
        }
        TripRule::Rate {
            threshold,
            min_calls,
            ..
        }
        | TripRule::Slow {
            threshold,
            min_calls,
            ..
        } => {
            let share = hits as f64 / calls.max(1) as f64;
            (share, threshold, calls >= u64::from(min_calls))
        }
        // Sums that stop at zero cannot be added: each replica judges its own, as `cusum` does.
        _ => return None,
    };
    (is_armed && observed >= threshold * NEARLY).then_some(Sum {
        observed,
        threshold,
    })
}

#[cfg(test)]
mod tests {
    use fuseline_core::{Breaker, Kind, Outcome, Policy, PolicySpec, ScopeName, State};

    use super::*;

    const NOW: Tick = Tick::from_millis(5_000);

    /// Replicas that count, each by a real breaker.
    struct Fleet {
        policy: Policy,
        breakers: Vec<Breaker>,
        counting: Vec<Counting>,
        told: Vec<Counted>,
        now: Tick,
    }

    impl Fleet {
        fn of(replicas: usize, trip: Vec<TripRule>) -> Self {
            let policy = Policy::new(&PolicySpec {
                trip: Some(trip),
                ..PolicySpec::default()
            })
            .unwrap();
            let new = |_| {
                let breaker = Breaker::new(ScopeName::provider("p"), policy.clone());
                breaker.count_calls();
                breaker
            };
            Self {
                breakers: (0..replicas).map(new).collect(),
                counting: vec![Counting::default(); replicas],
                told: vec![Counted::default(); replicas],
                policy,
                now: NOW,
            }
        }

        fn calls(&self, at: usize, outcomes: &str) {
            for sign in outcomes.chars() {
                let Ok(permit) = self.breakers[at].try_acquire(NOW) else {
                    continue;
                };
                let outcome = match sign {
                    'x' => Outcome::failure(Kind::ServerError),
                    _ => Outcome::success(Duration::ZERO),
                };
                permit.record(&outcome, NOW);
            }
        }

        /// One turn of each, in order; what each would open for.
        fn turn(&mut self) -> Vec<Option<f64>> {
            self.now = self.now + Duration::from_millis(100);
            let turn = |at: usize, fleet: &mut Self| {
                let evidence = fleet.breakers[at].evidence(fleet.now);
                let own = fleet.counting[at].tell(&evidence, None, 0, fleet.now);
                fleet.told[at] = own.clone();
                let others: Vec<_> = (0..fleet.told.len())
                    .filter(|other| *other != at)
                    .map(|other| (other.to_string(), fleet.told[other].clone()))
                    .filter(|(_, told)| !told.rules.is_empty())
                    .collect();
                let alive = fleet.told.len() as u64;
                let sum =
                    fleet.counting[at].judge(fleet.policy.trip(), &own, &others, alive, fleet.now);
                sum.map(|sum| sum.observed)
            };
            (0..self.breakers.len()).map(|at| turn(at, self)).collect()
        }
    }

    fn run(failures: u32) -> TripRule {
        TripRule::Consecutive { failures }
    }

    fn rate() -> TripRule {
        TripRule::Rate {
            threshold: 0.5,
            window: Duration::from_secs(60),
            min_calls: 10,
        }
    }

    #[test]
    fn runs_are_summed_over_the_replicas() {
        let mut fleet = Fleet::of(3, vec![run(5)]);
        fleet.calls(0, "xx");
        fleet.calls(1, "xx");
        assert_eq!(fleet.turn(), [None, None, None]);
        fleet.calls(2, "x");
        assert_eq!(fleet.turn(), [None, None, Some(5.0)]);
        assert_eq!(fleet.turn(), [Some(5.0); 3]);
    }

    #[test]
    fn a_success_anywhere_begins_every_run_anew() {
        let mut fleet = Fleet::of(3, vec![run(5)]);
        fleet.turn();
        fleet.calls(0, "xxx");
        fleet.calls(1, "xx");
        fleet.calls(2, ".");
        fleet.turn();
        assert_eq!(fleet.turn(), [None, None, None]);
        fleet.calls(0, "x");
        fleet.calls(1, "xx");
        for _ in 0..4 {
            assert_eq!(fleet.turn(), [None, None, None]);
        }
        fleet.calls(0, "x");
        fleet.calls(2, "x");
        fleet.turn();
        assert_eq!(fleet.turn(), [Some(5.0); 3], "2, 2 and 1 since");
    }

    #[test]
    fn one_replica_whose_way_out_is_broken_opens_nobody_else() {
        let mut fleet = Fleet::of(3, vec![run(5), rate()]);
        fleet.calls(0, "xxxxxxxxxxxxxxxxxxxx");
        assert_eq!(
            fleet.breakers[0].snapshot(NOW).entered[2],
            1,
            "it opened itself"
        );
        assert_eq!(fleet.turn(), [None, None, None]);
        fleet.turn();
        fleet.calls(1, "..........");
        fleet.calls(2, "..........");
        fleet.turn();
        assert_eq!(fleet.turn(), [None, None, None]);
        fleet.calls(1, "x");
        fleet.turn();
        assert_eq!(
            fleet.turn(),
            [None, None, None],
            "there were successes since"
        );
    }

    #[test]
    fn the_only_replica_is_enough() {
        let mut fleet = Fleet::of(1, vec![run(5)]);
        fleet.calls(0, "xxxxx");
        assert_eq!(fleet.turn(), [Some(5.0)]);
    }

    #[test]
    fn shares_are_of_all_calls() {
        let mut fleet = Fleet::of(2, vec![rate()]);
        fleet.calls(0, "xxx.");
        fleet.calls(1, ".x...");
        fleet.turn();
        assert_eq!(fleet.turn(), [None, None], "4 of 9, and 9 are too few");
        fleet.calls(1, "x");
        fleet.turn();
        assert_eq!(fleet.turn(), [Some(0.5); 2]);
    }

    #[test]
    fn a_cusum_rule_is_each_replicas_own_and_those_beside_it_are_summed() {
        let mut fleet = Fleet::of(2, vec![TripRule::cusum(), run(20)]);
        fleet.calls(0, "xxxxxxxxx");
        fleet.calls(1, "xxxxxxxxx");
        fleet.turn();
        assert_eq!(fleet.turn(), [None, None], "9 of 9.14 each");
        fleet.calls(0, "xx");
        assert_eq!(fleet.breakers[0].state(NOW), State::Open);
        fleet.turn();
        assert_eq!(fleet.turn(), [None, None], "19 in a row");
        fleet.calls(1, "x");
        assert_eq!(fleet.breakers[1].state(NOW), State::Open);
        fleet.turn();
        assert_eq!(fleet.turn(), [Some(20.0); 2]);
    }

    #[test]
    fn counts_under_other_rules_are_not_added() {
        let mut fleet = Fleet::of(2, vec![run(2)]);
        fleet.calls(0, "x");
        fleet.turn();
        let other = Counted {
            rules: vec![(9, 0), (9, 9)],
            ..Counted::default()
        };
        let own = fleet.told[0].clone();
        let others = [("1".to_owned(), other)];
        assert_eq!(
            fleet.counting[0].judge(fleet.policy.trip(), &own, &others, 2, NOW),
            None
        );
    }
}
