//! The counts behind the trip rules. What they mean is said in `seen.rs`.
//!
//! All of it stands behind the breaker's lock. Hits of each windowed rule are a ring of their own; calls are counted by
//! window, partly here (what was recorded under the lock) and mostly in the shards. `cusum` rules count them in a window
//! without end.

mod cusum;
mod saved;
mod seen;

use crate::kind::Kind;
use crate::policy::Checked;
use crate::state::Generation;
use crate::tick::{Tick, millis};
use crate::trip::TripRule;
use crate::window::{MAX_SERIES, Ring, Shards};
use cusum::Sum;
pub(crate) use seen::Seen;

/// A ratio this near to its threshold has reached it: 0.3 of 10 is 3, whatever binary fractions make of it.
const NEARLY: f64 = 1.0 - 1e-9;

/// Over which calls are counted where no rule has a window for them, in ms.
const ANY_WINDOW: u64 = 60_000;

/// The window of `cusum` rules, in ms: all calls since the state was entered.
const ENDLESS: u64 = u64::MAX;

/// So many calls are begun anew to count, long before a count of 32 bits is full.
const MANY: u64 = 1 << 31;

/// Counts of one generation.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) run: u32,
    pub(crate) kinds: [u32; Kind::ALL.len()],
    rules: Vec<RuleCounts>,
    /// Whether calls are counted where no rule asks for it.
    always: bool,
    /// Calls recorded under the lock, by place of their window.
    calls: [Option<Ring>; MAX_SERIES],
    /// Calls without end as of the last failure.
    calls_then: u64,
}

#[derive(Clone, Debug)]
struct RuleCounts {
    rule: TripRule,
    /// Failures or slow successes within the rule's window, where it has one.
    hits: Option<Ring>,
    /// `cusum` only.
    sum: Option<Sum>,
    /// Where its calls are counted; `rate`, `slow` and `cusum` only.
    place: Option<usize>,
    /// From this many hits on the rule can trip; below it no share can reach the threshold.
    enough: u64,
    /// From this many on it can trip or its pressure reach `degraded_at`.
    pressing: u64,
}

impl Counts {
    pub(crate) fn new(policy: &Checked, shards: &Shards) -> Self {
        let mut counts = Self {
            run: 0,
            kinds: [0; Kind::ALL.len()],
            rules: Vec::new(),
            always: false,
            calls: [const { None }; MAX_SERIES],
            calls_then: 0,
        };
        counts.follow(policy, shards);
        counts
    }

    /// Counts calls from now on even where no rule asks for it.
    pub(crate) fn always(&mut self, policy: &Checked, shards: &Shards) {
        self.always = true;
        self.follow(policy, shards);
    }

    /// Takes over changed rules: what a rule with the same window and limit, or the same weights, counted stays, any other
    /// starts empty. Run and counts by kind stay.
    pub(crate) fn follow(&mut self, policy: &Checked, shards: &Shards) {
        let mut wanted = call_windows(&policy.trip);
        if self.always && wanted.iter().all(|window| *window == ENDLESS) {
            wanted.push(ANY_WINDOW);
        }
        for (place, ring) in self.calls.iter_mut().enumerate() {
            if ring
                .as_ref()
                .is_some_and(|ring| !wanted.contains(&ring.window_ms()))
            {
                *ring = None;
                shards.assign(place, 0);
            }
        }
        for window_ms in wanted {
            if self.place(window_ms).is_none()
                && let Some((place, free)) = self
                    .calls
                    .iter_mut()
                    .enumerate()
                    .find(|(_, ring)| ring.is_none())
            {
                *free = Some(Ring::with_millis(window_ms));
                shards.assign(place, window_ms);
            }
        }
        let before = core::mem::take(&mut self.rules);
        self.rules = policy
            .trip
            .iter()
            .map(|rule| self.rule_counts(rule, policy.degraded_at, &before))
            .collect();
    }

    fn rule_counts(&self, rule: &TripRule, degraded_at: f64, before: &[RuleCounts]) -> RuleCounts {
        let old = before.iter().find(|old| same_hits(&old.rule, rule));
        let kept = old.and_then(|old| old.hits.clone());
        let mut sum = None;
        let (enough, pressing) = match *rule {
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
                let least = threshold * f64::from(min_calls) * NEARLY;
                (
                    least.ceil() as u64,
                    (least * degraded_at.min(1.0)).ceil() as u64,
                )
            }
            TripRule::Consecutive { failures } | TripRule::Window { failures, .. } => {
                let least = f64::from(failures) * NEARLY * degraded_at.min(1.0);
                (u64::MAX, least.ceil() as u64)
            }
            TripRule::Cusum {
                well,
                ill,
                calls_per_false_alarm,
            } => {
                let new = Sum::new(well, ill, calls_per_false_alarm);
                let least = new.limit as f64 * NEARLY * degraded_at.min(1.0);
                let before = old.and_then(|old| old.sum);
                sum = Some(before.map_or(new, |before| new.going_on(before)));
                (u64::MAX, least.ceil() as u64)
            }
        };
        RuleCounts {
            rule: *rule,
            hits: kept.or_else(|| window_of(rule).map(Ring::with_millis)),
            sum,
            place: call_window(rule).and_then(|window_ms| self.place(window_ms)),
            enough,
            pressing,
        }
    }

    fn place(&self, window_ms: u64) -> Option<usize> {
        self.calls.iter().position(|ring| {
            ring.as_ref()
                .is_some_and(|ring| ring.window_ms() == window_ms)
        })
    }

    /// Forgets everything, as entering a new state does.
    pub(crate) fn clear(&mut self) {
        self.run = 0;
        self.kinds = [0; Kind::ALL.len()];
        self.calls_then = 0;
        let sums = self.rules.iter_mut().filter_map(|rule| rule.sum.as_mut());
        sums.for_each(Sum::clear);
        let hits = self.rules.iter_mut().filter_map(|rule| rule.hits.as_mut());
        hits.chain(self.calls.iter_mut().flatten())
            .for_each(Ring::clear);
    }

    /// So many counted failures.
    pub(crate) fn failure(
        &mut self,
        kind: Kind,
        times: u32,
        shards: &Shards,
        generation: Generation,
        now: Tick,
    ) {
        self.sum_up(times, shards, generation, now);
        self.run = self.run.saturating_add(times);
        if let Some(count) = self.kinds.get_mut(kind.index()) {
            *count = count.saturating_add(times);
        }
        self.calls(times, now);
        for rule in &mut self.rules {
            if !matches!(rule.rule, TripRule::Slow { .. })
                && let Some(hits) = &mut rule.hits
            {
                hits.add(times, now);
            }
        }
    }

    /// Brings the sums of `cusum` rules up to so many failures, which are no calls yet.
    fn sum_up(&mut self, times: u32, shards: &Shards, generation: Generation, now: Tick) {
        let Some(place) = self.place(ENDLESS) else {
            return;
        };
        let calls = self.calls_in(place, shards, generation, now);
        let successes = calls.saturating_sub(self.calls_then);
        let sums = self.rules.iter_mut().filter_map(|rule| rule.sum.as_mut());
        sums.for_each(|sum| sum.fail(successes, times));
        self.calls_then = calls + u64::from(times);
        if self.calls_then >= MANY
            && let Some(ring) = self.calls.get_mut(place)
        {
            *ring = Some(Ring::with_millis(ENDLESS));
            shards.assign(place, ENDLESS);
            self.calls_then = u64::from(times);
        }
    }

    /// So many calls that the shards have not counted.
    pub(crate) fn calls(&mut self, times: u32, now: Tick) {
        self.calls
            .iter_mut()
            .flatten()
            .for_each(|ring| ring.add(times, now));
    }

    /// A success that took this long: a hit for each `slow` rule whose limit it passed.
    pub(crate) fn slow(&mut self, took_ms: u64, now: Tick) {
        for rule in &mut self.rules {
            if let TripRule::Slow { slower_than, .. } = rule.rule
                && took_ms > millis(slower_than)
                && let Some(hits) = &mut rule.hits
            {
                hits.add(1, now);
            }
        }
    }

    fn calls_in(&self, place: usize, shards: &Shards, generation: Generation, now: Tick) -> u64 {
        let locked = self
            .calls
            .get(place)
            .and_then(Option::as_ref)
            .map_or(0, |ring| ring.total(now));
        locked + shards.sum(place, generation, now)
    }
}

impl RuleCounts {
    /// Hits; of a sum what the last failure left.
    fn total(&self, now: Tick) -> u64 {
        match (&self.hits, self.sum) {
            (Some(ring), _) => ring.total(now),
            (None, sum) => sum.map_or(0, Sum::at_most),
        }
    }
}

/// The different windows over which a policy counts calls, in ms.
pub(crate) fn call_windows(rules: &[TripRule]) -> Vec<u64> {
    let mut windows: Vec<u64> = rules.iter().filter_map(call_window).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// The smallest limit above which a success is slow for some rule; the largest number where none is.
pub(crate) fn slow_limit(rules: &[TripRule]) -> u64 {
    let limits = rules.iter().filter_map(|rule| match rule {
        TripRule::Slow { slower_than, .. } => Some(millis(*slower_than)),
        _ => None,
    });
    limits.min().unwrap_or(u64::MAX)
}

/// Over which window a rule counts calls, in ms, if it does.
fn call_window(rule: &TripRule) -> Option<u64> {
    match rule {
        TripRule::Rate { .. } | TripRule::Slow { .. } => window_of(rule),
        TripRule::Cusum { .. } => Some(ENDLESS),
        TripRule::Consecutive { .. } | TripRule::Window { .. } => None,
    }
}

fn window_of(rule: &TripRule) -> Option<u64> {
    rule.window().map(millis)
}

/// Whether two rules count the same hits in the same window.
fn same_hits(a: &TripRule, b: &TripRule) -> bool {
    match (a, b) {
        (
            TripRule::Slow {
                slower_than: a_limit,
                ..
            },
            TripRule::Slow {
                slower_than: b_limit,
                ..
            },
        ) => a_limit == b_limit && window_of(a) == window_of(b),
        (
            TripRule::Cusum {
                well: a_well,
                ill: a_ill,
                ..
            },
            TripRule::Cusum { well, ill, .. },
        ) => a_well == well && a_ill == ill,
        (TripRule::Slow { .. } | TripRule::Cusum { .. }, _)
        | (_, TripRule::Slow { .. } | TripRule::Cusum { .. }) => false,
        _ => window_of(a) == window_of(b),
    }
}
