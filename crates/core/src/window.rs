//! Sliding windows: how many calls, and how many hits, in the last `window`.
//!
//! **Why buckets.** A window is cut into sixtieths. An entry made at `t` belongs to bucket `floor(t x 60 / window)`, and
//! the last 61 buckets are live: an entry leaves exactly when a bucket begins, at most a sixtieth late and never early.
//!
//! **Hits** (failures, slow successes) are rare and recorded under the lock: [`Ring`], with a running total.
//!
//! Under rules that are far from firing, failures after the first of a run wait in the [`backlog`] of their thread's
//! shard and reach their rings in the order of time, before anything that depends on them.
//!
//! **Calls** are mostly quick successes and recorded without it: each thread adds to a shard of its own, where
//! nobody else writes; whoever evaluates sums the shards. A shard's ring carries the generation, and the epoch of its
//! window, for which it counts; entries of any other are dead. Within a bucket calls only grow, so a sum is a lower
//! bound.

mod backlog;
mod shards;

pub(crate) use backlog::Deferred;
pub(crate) use shards::{Added, MAX_SERIES, REASONS, Shards};

use crate::tick::Tick;

/// Buckets a window is cut into.
const BUCKETS: u64 = 60;
/// Buckets that count: the one that is filling and the 60 before it.
const LIVE: u64 = BUCKETS + 1;

/// The bucket of an instant.
fn bucket(now: Tick, window_ms: u64) -> u64 {
    match now.as_millis().checked_mul(BUCKETS) {
        Some(scaled) => scaled / window_ms.max(1),
        None => u64::MAX,
    }
}

/// When a bucket begins, in ms.
fn begins(bucket: u64, window_ms: u64) -> u64 {
    bucket.saturating_mul(window_ms).div_ceil(BUCKETS)
}

/// The last instant of a bucket.
pub(crate) fn ends(bucket: u64, window_ms: u64) -> Tick {
    Tick::from_millis(begins(bucket.saturating_add(1), window_ms).saturating_sub(1))
}

/// Counts within one window, written under the lock.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    window_ms: u64,
    /// Bucket of the newest cell.
    head: u64,
    /// When that bucket fills, in ms: from, and until not any more. Spares a division.
    from: u64,
    until: u64,
    /// Sum of the live cells.
    total: u64,
    cells: Box<[u32; 64]>,
}

impl Ring {
    pub(crate) fn with_millis(window_ms: u64) -> Self {
        Self {
            window_ms,
            head: 0,
            from: 0,
            until: begins(1, window_ms),
            total: 0,
            cells: Box::new([0; 64]),
        }
    }

    pub(crate) const fn window_ms(&self) -> u64 {
        self.window_ms
    }

    pub(crate) fn add(&mut self, times: u32, now: Tick) {
        self.advance(self.bucket(now));
        let head = self.head;
        let cell = self.cell(head);
        let before = *cell;
        *cell = before.saturating_add(times);
        let more = *cell - before;
        self.total += u64::from(more);
    }

    /// Entries that are live at `now`.
    pub(crate) fn total(&self, now: Tick) -> u64 {
        let to = self.bucket(now);
        let ahead = to.saturating_sub(self.head);
        if ahead == 0 {
            return self.total;
        }
        if ahead >= LIVE {
            return 0;
        }
        // What leaves on the way from `head` to `to`.
        let gone = (self.head + 1..=to)
            .filter_map(|bucket| self.cells.get(slot_of(bucket.checked_sub(LIVE)?)));
        self.total - gone.map(|count| u64::from(*count)).sum::<u64>()
    }

    /// The cells that are live at `now` and hold anything: bucket and count.
    pub(crate) fn live(&self, now: Tick) -> impl Iterator<Item = (u64, u32)> {
        let first = (self.bucket(now) + 1).saturating_sub(LIVE);
        let live = (self.head + 1).saturating_sub(LIVE).max(first)..=self.head;
        let cell = |bucket| self.cells.get(slot_of(bucket)).copied();
        live.filter_map(move |bucket| Some((bucket, cell(bucket).filter(|count| *count > 0)?)))
    }

    fn bucket(&self, now: Tick) -> u64 {
        if (self.from..self.until).contains(&now.as_millis()) {
            self.head
        } else {
            bucket(now, self.window_ms)
        }
    }

    pub(crate) fn clear(&mut self) {
        self.total = 0;
        self.cells.fill(0);
    }

    /// Drops the buckets that left the window on the way to `to`; going back does nothing.
    fn advance(&mut self, to: u64) {
        if to <= self.head {
            return;
        }
        self.from = begins(to, self.window_ms);
        self.until = begins(to.saturating_add(1), self.window_ms);
        if to - self.head >= LIVE {
            self.clear();
            self.head = to;
        }
        while self.head < to {
            self.head += 1;
            if let Some(gone) = self.head.checked_sub(LIVE) {
                let left = core::mem::take(self.cell(gone));
                self.total -= u64::from(left);
            }
        }
    }

    fn cell(&mut self, bucket: u64) -> &mut u32 {
        #[expect(
            clippy::indexing_slicing,
            reason = "64 cells, and `slot_of` is below 64"
        )]
        &mut self.cells[slot_of(bucket)]
    }
}

/// The cell of a bucket in a [`Ring`].
const fn slot_of(bucket: u64) -> usize {
    (bucket % 64) as usize
}

#[cfg(all(test, not(fuseline_loom)))]
mod tests {
    use super::*;
    use crate::state::Generation;

    fn at(ms: u64) -> Tick {
        Tick::from_millis(ms)
    }

    #[test]
    fn an_entry_leaves_when_a_bucket_begins_at_most_a_sixtieth_late() {
        let mut ring = Ring::with_millis(60_000);
        ring.add(1, at(500));
        assert_eq!(
            ring.total(at(60_500)),
            1,
            "not before the window has passed"
        );
        assert_eq!(ring.total(at(60_999)), 1);
        assert_eq!(ring.total(at(61_000)), 0, "with the bucket's turn");
    }

    #[test]
    fn a_long_gap_empties_the_ring() {
        let mut ring = Ring::with_millis(60_000);
        ring.add(1, at(0));
        ring.add(1, at(10_000_000));
        assert_eq!(ring.total(at(10_000_000)), 1);
    }

    #[test]
    fn shards_of_another_generation_or_epoch_are_dead() {
        let shards = Shards::new();
        shards.assign(0, 60_000);
        let first = Generation::FIRST;
        assert_eq!(shards.add(first, at(0)), Added::FirstOfBucket);
        assert_eq!(shards.add(first, at(1)), Added::Counted);
        assert_eq!(shards.sum(0, first, at(1)), 2);
        assert_eq!(shards.sum(0, first.next(), at(1)), 0);
        shards.assign(0, 60_000);
        assert_eq!(shards.sum(0, first, at(1)), 0);
    }

    #[test]
    fn sums_agree_with_a_ring_at_every_step() {
        let shards = Shards::new();
        shards.assign(0, 10_000);
        let mut ring = Ring::with_millis(10_000);
        let mut now = 0;
        for step in 0..4_000_u64 {
            now += step * step % 97 * if step % 500 == 0 { 100 } else { 1 };
            if step % 3 == 0 {
                shards.add(Generation::FIRST, at(now));
                ring.add(1, at(now));
            }
            assert_eq!(
                shards.sum(0, Generation::FIRST, at(now)),
                ring.total(at(now)),
                "step {step}"
            );
        }
    }

    #[test]
    fn threads_that_end_hand_their_slot_on() {
        let shards = std::sync::Arc::new(Shards::new());
        shards.assign(0, 60_000);
        for _ in 0..200 {
            let own = shards.clone();
            std::thread::spawn(move || {
                assert_ne!(own.add(Generation::FIRST, at(5)), Added::NoShard)
            })
            .join()
            .unwrap();
        }
        assert_eq!(shards.sum(0, Generation::FIRST, at(5)), 200);
    }

    #[test]
    fn cells_without_entries_are_not_told() {
        let mut ring = Ring::with_millis(60_000);
        ring.add(2, at(1_000));
        ring.add(3, at(9_000));
        assert_eq!(ring.live(at(9_000)).collect::<Vec<_>>(), [(1, 2), (9, 3)]);
        assert_eq!(ring.live(at(62_000)).collect::<Vec<_>>(), [(9, 3)]);
    }

    fn counted(shards: &Shards, now: u64) -> Vec<(u64, u32)> {
        let live = shards.buckets(0, Generation::FIRST, at(now));
        let mut live: Vec<_> = live.filter(|(_, count)| *count > 0).collect();
        live.sort_unstable();
        live
    }

    #[test]
    fn a_call_told_of_late_counts_in_its_own_bucket() {
        let shards = Shards::new();
        shards.assign(0, 60_000);
        for ms in [20_000, 5_000, 20_001] {
            shards.add(Generation::FIRST, at(ms));
        }
        assert_eq!(counted(&shards, 20_001), [(5, 1), (20, 2)]);
    }

    #[test]
    fn a_clock_may_be_ahead_by_a_window_and_no_more() {
        for (ms, seen) in [(2_000, 1), (60_000, 1), (61_000, 0)] {
            let shards = Shards::new();
            shards.assign(0, 60_000);
            shards.add(Generation::FIRST, at(ms));
            assert_eq!(shards.sum(0, Generation::FIRST, at(0)), seen, "{ms}");
        }
    }

    #[test]
    fn a_place_that_is_given_up_is_not_counted_in() {
        let shards = Shards::new();
        shards.assign(0, 60_000);
        shards.assign(1, 10_000);
        shards.assign(1, 20_000);
        assert_eq!(shards.add(Generation::FIRST, at(0)), Added::FirstOfBucket);
        assert_eq!(shards.sum(1, Generation::FIRST, at(0)), 1);
        shards.assign(0, 0);
        assert_eq!(shards.add(Generation::FIRST, at(1)), Added::Counted);
        assert_eq!(shards.sum(1, Generation::FIRST, at(1)), 2);
        shards.assign(1, 0);
        assert_eq!(shards.add(Generation::FIRST, at(999_999)), Added::Counted);
    }

    #[test]
    fn a_thread_counts_its_own_rejections() {
        let shards = Shards::new();
        assert!(shards.reject(2) && shards.reject(2) && shards.reject(4));
        assert!(!shards.reject(REASONS));
        assert_eq!([2, 3, 4].map(|reason| shards.rejected(reason)), [2, 0, 1]);
        assert!(format!("{shards:?}").starts_with("Shards { series: ["));
    }

    #[test]
    fn open_backlogs_share_what_may_wait_and_the_oldest_failure_comes_first() {
        let failure = |ms| Deferred {
            generation: Generation::FIRST,
            at: at(ms),
            failure: crate::Failure::new(crate::Kind::Timeout),
        };
        let shards = Shards::new();
        assert!(!shards.defer(&failure(5), 9), "not open yet");
        assert_eq!(shards.allowance(10), 9, "fewer than the slack");
        assert!(!shards.defer(&failure(5), 0));
        assert!(shards.defer(&failure(5), 9));
        // Two threads at once have two slots, of which one at most is the first.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(shards.allowance(10), 4);
                assert!(shards.defer(&failure(3), 4));
                assert_eq!(shards.allowance(10), 4, "opened once");
            });
        });
        assert_eq!(shards.allowance(1), 0);
        assert_eq!(shards.allowance(0), 0);
        assert_eq!(shards.waiting(), 2);
        assert_eq!(shards.next_deferred(), Some((failure(3), 1)));
        assert_eq!(shards.next_deferred(), Some((failure(5), 1)));
        assert_eq!(shards.next_deferred(), None);
    }
}
