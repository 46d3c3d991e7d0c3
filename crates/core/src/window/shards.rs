//! `Shards`: what is recorded without the lock, by each thread for itself: calls that are counted, failures that wait.
//!
//! Hot path. No lock, no allocation after the first use, no clock read, no log.

use core::array;

use super::backlog::{Backlog, Deferred};
use super::{LIVE, begins, bucket};
use crate::state::Generation;
use crate::sync::{AtomicU64, MAX_SLOTS, OnceLock, Ordering, announce, fence, slot};
use crate::tick::Tick;

/// Cells of a ring: a power of two above [`LIVE`].
#[cfg(not(fuseline_loom))]
const CELLS: u64 = 64;
#[cfg(fuseline_loom)]
const CELLS: u64 = 2;

/// Windows over which one breaker counts calls: those of its `rate` and `slow` rules.
pub(crate) const MAX_SERIES: usize = 4;

/// Reasons for a rejection, each with a counter in the shard.
pub(crate) const REASONS: usize = 5;

/// A window over which calls are counted, and its epoch: both change when a reconfiguration gives the place to another
/// window. Written under the lock, window first.
#[derive(Debug, Default)]
struct Series {
    window_ms: AtomicU64,
    epoch: AtomicU64,
}

/// What is recorded without the lock: one shard a thread slot.
pub(crate) struct Shards {
    /// The places in use, one bit each.
    places: AtomicU64,
    series: [Series; MAX_SERIES],
    /// The shards whose backlog is open, one bit each. Written under the lock.
    open: AtomicU64,
    shards: [OnceLock<Box<Shard>>; MAX_SLOTS],
}

/// What an add to a shard found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Counted.
    Counted,
    /// Counted, as the first of this shard in a new bucket of some window.
    FirstOfBucket,
    /// This thread has no shard: count under the lock.
    NoShard,
}

impl Shards {
    pub(crate) fn new() -> Self {
        Self {
            places: AtomicU64::new(0),
            series: array::from_fn(|_| Series::default()),
            open: AtomicU64::new(0),
            shards: array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Counts one call in each window; nothing of what the thread reads afterwards by [`look`](crate::sync::look) is
    /// older than this.
    #[inline]
    pub(crate) fn add(&self, generation: Generation, now: Tick) -> Added {
        let mut places = self.places.load(Ordering::Relaxed);
        if places == 0 {
            return Added::Counted;
        }
        let Some(shard) = self.own() else {
            return Added::NoShard;
        };
        let mut added = Added::Counted;
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            let (Some(series), Some(ring)) = (self.series.get(place), shard.rings.get(place))
            else {
                continue;
            };
            // Epoch before window: a stale pair then carries the old epoch and dies.
            let epoch = series.epoch.load(Ordering::Acquire);
            let window_ms = series.window_ms.load(Ordering::Relaxed);
            if ring.add(tag(generation, epoch), now, window_ms) {
                added = Added::FirstOfBucket;
            }
        }
        added
    }

    /// Counts a rejection for this reason; false where this thread has no shard.
    #[inline]
    pub(crate) fn reject(&self, reason: usize) -> bool {
        let counter = self.own().and_then(|shard| shard.rejected.get(reason));
        if let Some(counter) = counter {
            counter.store(
                counter.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
        counter.is_some()
    }

    /// Rejections for this reason, over all shards.
    pub(crate) fn rejected(&self, reason: usize) -> u64 {
        let all = self.live().filter_map(|shard| shard.rejected.get(reason));
        all.fold(0, |sum, counter| {
            sum.wrapping_add(counter.load(Ordering::Relaxed))
        })
    }

    /// Keeps a failure of this thread for the locked side; false where no more than `allowance` may wait, or there is
    /// no shard.
    #[inline]
    pub(crate) fn defer(&self, deferred: &Deferred, allowance: u64) -> bool {
        allowance != 0
            && self
                .own()
                .is_some_and(|shard| shard.backlog.push(deferred, allowance))
    }

    /// How many failures each open backlog may keep, so that all of them are fewer than `slack`. Opens this thread's.
    /// Under the lock.
    pub(crate) fn allowance(&self, slack: u64) -> u64 {
        let mut open = self.open.load(Ordering::Relaxed);
        if let (Some(slot), Some(shard)) = (slot(), self.own())
            && open & 1 << slot == 0
        {
            shard.backlog.open();
            open |= 1 << slot;
            self.open.store(open, Ordering::Relaxed);
        }
        let open = u64::from(open.count_ones());
        slack.saturating_sub(1).checked_div(open).unwrap_or(0)
    }

    /// Failures that wait: a lower bound while others defer. Under the lock.
    pub(crate) fn waiting(&self) -> u64 {
        self.backlogs().map(Backlog::waiting).sum()
    }

    /// Takes the oldest of the failures that wait, and how many like it follow. Under the lock.
    pub(crate) fn next_deferred(&self) -> Option<(Deferred, u32)> {
        let oldest = self
            .backlogs()
            .filter_map(|backlog| Some((backlog.oldest()?, backlog)));
        oldest.min_by_key(|(at, _)| *at)?.1.take()
    }

    /// The open backlogs.
    fn backlogs(&self) -> impl Iterator<Item = &Backlog> {
        let mut open = self.open.load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            let slot = open.trailing_zeros() as usize;
            open &= open.wrapping_sub(1);
            Some(&self.shards.get(slot)?.get()?.backlog)
        })
    }

    /// Calls of this generation that are live in this window at `now`: a lower bound while others add. Under the lock.
    pub(crate) fn sum(&self, place: usize, generation: Generation, now: Tick) -> u64 {
        let Some(series) = self.series.get(place) else {
            return 0;
        };
        let tag = tag(generation, series.epoch.load(Ordering::Relaxed));
        let head = bucket(now, series.window_ms.load(Ordering::Relaxed));
        self.live()
            .filter_map(|shard| shard.rings.get(place))
            .map(|ring| ring.sum(tag, head))
            .sum()
    }

    /// As [`sum`](Self::sum), by bucket: each shard's live cells, as bucket and count. Under the lock.
    pub(crate) fn buckets(
        &self,
        place: usize,
        generation: Generation,
        now: Tick,
    ) -> impl Iterator<Item = (u64, u32)> {
        let series = self.series.get(place);
        let load =
            |value: Option<&AtomicU64>| value.map_or(0, |value| value.load(Ordering::Relaxed));
        let tag = tag(generation, load(series.map(|series| &series.epoch)));
        let head = bucket(now, load(series.map(|series| &series.window_ms)));
        self.live()
            .filter_map(move |shard| shard.rings.get(place))
            .flat_map(move |ring| ring.counts(tag, head))
    }

    /// Gives a place to another window, empty; 0 = nobody counts here. Under the lock.
    pub(crate) fn assign(&self, place: usize, window_ms: u64) {
        if let Some(series) = self.series.get(place) {
            series.window_ms.store(window_ms, Ordering::Relaxed);
            let next = series.epoch.load(Ordering::Relaxed).wrapping_add(1);
            series.epoch.store(next, Ordering::Release);
            let (places, own) = (self.places.load(Ordering::Relaxed), 1 << place);
            let places = if window_ms == 0 {
                places & !own
            } else {
                places | own
            };
            self.places.store(places, Ordering::Relaxed);
        }
    }

    #[inline]
    fn own(&self) -> Option<&Shard> {
        let shard = self.shards.get(slot()?)?;
        Some(match shard.get() {
            Some(shard) => shard,
            None => {
                let shard = shard.get_or_init(Box::default);
                // As in `restart`: who sums must see that there is a shard.
                fence(Ordering::SeqCst);
                shard
            }
        })
    }

    fn live(&self) -> impl Iterator<Item = &Shard> {
        self.shards
            .iter()
            .filter_map(|shard| shard.get().map(|shard| &**shard))
    }
}

/// Generation (24 bits, never all ones together with the epoch) and epoch (40 bits) in one word.
fn tag(generation: Generation, epoch: u64) -> u64 {
    u64::from(generation.get()) << 40 | (epoch & ((1 << 40) - 1))
}

/// One thread's counts, and the failures that wait. Only that thread writes.
#[derive(Debug, Default)]
struct Shard {
    rings: [ShardRing; MAX_SERIES],
    rejected: [AtomicU64; REASONS],
    backlog: Backlog,
}

/// One thread's calls within one window.
#[derive(Debug)]
struct ShardRing {
    /// For which generation and epoch the cells count.
    tag: AtomicU64,
    /// The bucket that is filling, and when it does, in ms: from, and until not any more. Spares a division a call.
    bucket: AtomicU64,
    from: AtomicU64,
    until: AtomicU64,
    /// Bucket number (32 bits, wrapping) and count (32 bits, saturating).
    cells: [AtomicU64; CELLS as usize],
}

impl Default for ShardRing {
    fn default() -> Self {
        Self {
            // No tag is all ones: epochs are far below 40 bits.
            tag: AtomicU64::new(u64::MAX),
            bucket: AtomicU64::new(0),
            from: AtomicU64::new(0),
            until: AtomicU64::new(0),
            cells: array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl ShardRing {
    /// Adds one; true if it is the first in its bucket.
    #[inline]
    fn add(&self, tag: u64, now: Tick, window_ms: u64) -> bool {
        if self.tag.load(Ordering::Relaxed) != tag {
            self.restart(tag);
        }
        let ms = now.as_millis();
        if ms < self.from.load(Ordering::Relaxed) || ms >= self.until.load(Ordering::Relaxed) {
            self.turn(now, window_ms);
        }
        let bucket = self.bucket.load(Ordering::Relaxed);
        let Some(cell) = self.cells.get((bucket % CELLS) as usize) else {
            return false;
        };
        let entry = cell.load(Ordering::Relaxed);
        let (number, count) = (entry >> 32, entry as u32);
        let first = count == 0 || number != u64::from(bucket as u32);
        let count = if first { 1 } else { count.saturating_add(1) };
        announce(cell, u64::from(bucket as u32) << 32 | u64::from(count));
        first
    }

    /// Goes to the bucket of `now`.
    #[cold]
    fn turn(&self, now: Tick, window_ms: u64) {
        let number = bucket(now, window_ms);
        self.bucket.store(number, Ordering::Relaxed);
        self.from
            .store(begins(number, window_ms), Ordering::Relaxed);
        self.until.store(
            begins(number.saturating_add(1), window_ms),
            Ordering::Relaxed,
        );
    }

    #[cold]
    fn restart(&self, tag: u64) {
        self.tag.store(u64::MAX, Ordering::Release);
        for cell in &self.cells {
            cell.store(0, Ordering::Release);
        }
        self.until.store(0, Ordering::Relaxed);
        self.tag.store(tag, Ordering::Release);
        // The swap that follows orders itself alone; who sums must see the tag with it.
        fence(Ordering::SeqCst);
    }

    /// Sums the live cells, if they count for `tag`.
    fn sum(&self, tag: u64, head: u64) -> u64 {
        self.counts(tag, head)
            .map(|(_, count)| u64::from(count))
            .sum()
    }

    /// The live cells, if they count for `tag`: bucket and count.
    fn counts(&self, tag: u64, head: u64) -> impl Iterator<Item = (u64, u32)> {
        let ours = self.tag.load(Ordering::Acquire) == tag;
        let cells = if ours { &self.cells[..] } else { &[] };
        cells.iter().filter_map(move |cell| {
            let entry = cell.load(Ordering::Relaxed);
            let (number, count) = ((entry >> 32) as u32, entry as u32);
            let age = (head as u32).wrapping_sub(number);
            // A thread whose reading of the clock is a little ahead has made its entry in the future.
            let ahead = number.wrapping_sub(head as u32);
            if u64::from(age) < LIVE {
                Some((head.saturating_sub(u64::from(age)), count))
            } else if u64::from(ahead) < LIVE {
                Some((head.saturating_add(u64::from(ahead)), count))
            } else {
                None
            }
        })
    }
}

impl core::fmt::Debug for Shards {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shards")
            .field("series", &self.series)
            .finish_non_exhaustive()
    }
}
