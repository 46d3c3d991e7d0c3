//! The counts as a store keeps them: what each sliding window holds, by bucket.

use core::time::Duration;
use std::collections::BTreeMap;

use super::{Counts, ENDLESS, RuleCounts};
use crate::saved::{Counted, SavedBreaker, SavedWindow};
use crate::state::Generation;
use crate::tick::{Tick, millis};
use crate::trip::TripRule;
use crate::window::{Ring, Shards, ends};

impl Counts {
    /// What the windows hold at `now`; windows that several rules share once.
    pub(crate) fn export(
        &self,
        shards: &Shards,
        generation: Generation,
        now: Tick,
    ) -> Vec<SavedWindow> {
        let mut all = BTreeMap::<(Counted, u64), BTreeMap<u64, u32>>::new();
        for (place, ring) in self.calls.iter().enumerate() {
            // What a sum rests on is not kept, as the sum is not: it begins anew.
            let Some(ring) = ring.as_ref().filter(|ring| ring.window_ms() != ENDLESS) else {
                continue;
            };
            let calls = all.entry((Counted::Calls, ring.window_ms())).or_default();
            let of_shards = shards.buckets(place, generation, now);
            for (bucket, count) in ring.live(now).chain(of_shards) {
                let sum = calls.entry(bucket).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        for rule in &self.rules {
            if let (Some(counted), Some(ring)) = (rule.counted(), &rule.hits) {
                all.insert((counted, ring.window_ms()), ring.live(now).collect());
            }
        }
        let saved = all.into_iter().map(|((counted, window_ms), buckets)| {
            let buckets = buckets.into_iter().filter(|(_, count)| *count > 0);
            SavedWindow {
                counted,
                window: Duration::from_millis(window_ms),
                buckets: buckets
                    .map(|(bucket, count)| (ends(bucket, window_ms), count))
                    .collect(),
            }
        });
        saved.filter(|window| !window.buckets.is_empty()).collect()
    }

    /// Holds what was saved, and nothing else.
    pub(crate) fn restore(&mut self, saved: &SavedBreaker, now: Tick) {
        self.clear();
        self.run = saved.run;
        for (kind, count) in &saved.kinds {
            if let Some(own) = self.kinds.get_mut(kind.index()) {
                *own = *count;
            }
        }
        for ring in self.calls.iter_mut().flatten() {
            refill(ring, Counted::Calls, &saved.windows, now);
        }
        for rule in &mut self.rules {
            if let (Some(counted), Some(ring)) = (rule.counted(), &mut rule.hits) {
                refill(ring, counted, &saved.windows, now);
            }
        }
    }
}

impl RuleCounts {
    /// What the rule's own window counts.
    fn counted(&self) -> Option<Counted> {
        match self.rule {
            TripRule::Consecutive { .. } | TripRule::Cusum { .. } => None,
            TripRule::Window { .. } | TripRule::Rate { .. } => Some(Counted::Failures),
            TripRule::Slow { slower_than, .. } => {
                Some(Counted::Slow(Duration::from_millis(millis(slower_than))))
            }
        }
    }
}

fn refill(ring: &mut Ring, counted: Counted, saved: &[SavedWindow], now: Tick) {
    *ring = Ring::with_millis(ring.window_ms());
    let same = |window: &&SavedWindow| {
        window.counted == counted && millis(window.window) == ring.window_ms()
    };
    if let Some(window) = saved.iter().find(same) {
        for (at, count) in &window.buckets {
            ring.add(*count, (*at).min(now));
        }
    }
}
