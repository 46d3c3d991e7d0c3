//! What the rules see: how near each is to its threshold, which has reached it, and what that means for the next success.

use super::cusum::{FAILURE, Sum};
use super::{Counts, NEARLY, RuleCounts};
use crate::event::Cause;
use crate::state::{Generation, Watch};
use crate::tick::Tick;
use crate::trip::TripRule;
use crate::window::Shards;

/// A rule as seen now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) rule: TripRule,
    pub(crate) hits: u64,
    /// Calls in the window, for rules with a share.
    pub(crate) calls: Option<u64>,
    /// What is held against the threshold.
    pub(crate) observed: f64,
    pub(crate) threshold: f64,
    /// Whether the share means anything yet.
    pub(crate) armed: bool,
}

impl Seen {
    pub(crate) fn pressure(&self) -> f64 {
        if self.armed {
            self.observed / self.threshold
        } else {
            0.0
        }
    }

    fn cause(&self) -> Cause {
        match self.rule {
            TripRule::Consecutive { .. } => Cause::Consecutive,
            TripRule::Window { .. } => Cause::Window,
            TripRule::Rate { .. } => Cause::Rate,
            TripRule::Slow { .. } => Cause::Slow,
            TripRule::Cusum { .. } => Cause::Cusum,
        }
    }
}

/// What an evaluation found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluation {
    /// The first rule that has reached its threshold.
    pub(crate) tripped: Option<(Cause, f64, f64)>,
    pub(crate) pressure: f64,
    pub(crate) watch: Watch,
}

impl Counts {
    /// How many more failures it takes before some rule can trip, or its pressure reach `degraded_at`; 0 where one can.
    /// Successes and time alone do not bring it nearer.
    pub(crate) fn slack(&self, now: Tick) -> u64 {
        let slack = self.rules.iter().map(|rule| {
            let hits = match rule.rule {
                TripRule::Consecutive { .. } => u64::from(self.run),
                _ => rule.total(now),
            };
            match (rule.pressing.saturating_sub(hits), rule.rule) {
                (1.., TripRule::Slow { .. }) => u64::MAX,
                (slack, TripRule::Cusum { .. }) => slack.div_ceil(FAILURE),
                (slack, _) => slack,
            }
        });
        slack.min().unwrap_or(u64::MAX)
    }

    /// Whether some rule has hits enough to trip once calls are known.
    pub(crate) fn in_reach(&self, now: Tick) -> bool {
        self.rules.iter().any(|rule| rule.total(now) >= rule.enough)
    }

    /// Whether anything bad is remembered.
    pub(crate) fn has_failures(&self, shards: &Shards, generation: Generation, now: Tick) -> bool {
        let is_left = |rule: &RuleCounts| match &rule.sum {
            Some(sum) => self.left_of(*sum, rule, shards, generation, now) > 0,
            None => rule.total(now) > 0,
        };
        // No kind has been counted more often than the run.
        self.run > 0 || self.rules.iter().any(is_left)
    }

    /// Judges every rule. Calls are summed only where hits make them matter.
    pub(crate) fn evaluate(
        &self,
        shards: &Shards,
        generation: Generation,
        now: Tick,
    ) -> Evaluation {
        let mut found = Evaluation {
            tripped: None,
            pressure: 0.0,
            watch: Watch::Nothing,
        };
        for rule in &self.rules {
            let hits = rule.total(now);
            if rule.place.is_some() && hits < rule.pressing.min(rule.enough) {
                continue;
            }
            let seen = self.see(rule, hits, shards, generation, now);
            let pressure = seen.pressure();
            found.pressure = found.pressure.max(pressure);
            if pressure >= NEARLY {
                found.tripped = found
                    .tripped
                    .or_else(|| Some((seen.cause(), seen.observed, seen.threshold)));
            }
            if hits >= rule.enough {
                found.watch = match (seen.armed, found.watch) {
                    (false, _) | (_, Watch::Every) => Watch::Every,
                    (true, _) => Watch::NewBucket,
                };
            }
        }
        found
    }

    /// Every rule as seen now.
    pub(crate) fn view(&self, shards: &Shards, generation: Generation, now: Tick) -> Vec<Seen> {
        self.rules
            .iter()
            .map(|rule| self.see(rule, rule.total(now), shards, generation, now))
            .collect()
    }

    #[inline]
    fn see(
        &self,
        counts: &RuleCounts,
        hits: u64,
        shards: &Shards,
        generation: Generation,
        now: Tick,
    ) -> Seen {
        let rule = counts.rule;
        let count = |hits: u64, failures: u32| Seen {
            rule,
            hits,
            calls: None,
            observed: hits as f64,
            threshold: f64::from(failures),
            armed: true,
        };
        match rule {
            TripRule::Consecutive { failures } => count(u64::from(self.run), failures),
            TripRule::Window { failures, .. } => count(hits, failures),
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
                let calls = counts
                    .place
                    .map_or(0, |place| self.calls_in(place, shards, generation, now));
                let share = if calls == 0 {
                    0.0
                } else {
                    hits as f64 / calls as f64
                };
                Seen {
                    rule,
                    hits,
                    calls: Some(calls),
                    observed: share,
                    threshold,
                    armed: calls >= u64::from(min_calls),
                }
            }
            TripRule::Cusum { .. } => {
                let (left, limit) = counts.sum.map_or((0, FAILURE), |sum| {
                    let left = self.left_of(sum, counts, shards, generation, now);
                    (left, sum.limit)
                });
                Seen {
                    hits: left.div_ceil(FAILURE),
                    observed: left as f64 / FAILURE as f64,
                    threshold: limit as f64 / FAILURE as f64,
                    ..count(0, 0)
                }
            }
        }
    }

    /// A rule's sum, less what successes since the last failure take off.
    fn left_of(
        &self,
        sum: Sum,
        counts: &RuleCounts,
        shards: &Shards,
        generation: Generation,
        now: Tick,
    ) -> u64 {
        let calls = counts
            .place
            .map_or(0, |place| self.calls_in(place, shards, generation, now));
        sum.after(calls.saturating_sub(self.calls_then))
    }
}
