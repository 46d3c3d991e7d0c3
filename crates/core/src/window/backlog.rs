//! `Backlog`: failures that a thread keeps to itself until the locked side takes them up.
//!
//! A queue with one writer, the shard's thread, and one reader, who holds the lock. It takes no more than the run word
//! allows, so that all backlogs together cannot bring a rule near; until the reader has opened it, it takes none. A failure
//! that is the same as the one before it, to the millisecond, adds to that one's entry: a storm takes no room.
//!
//! Hot path. No lock, no allocation, no clock read, no log.

use core::array;

use crate::kind::Kind;
use crate::outcome::Failure;
use crate::state::Generation;
use crate::sync::{AtomicU64, Ordering, announce};
use crate::tick::Tick;

/// Entries that fit.
#[cfg(not(fuseline_loom))]
const ROOM: u64 = 16;
#[cfg(fuseline_loom)]
const ROOM: u64 = 2;

/// Instants below this, in ms, fit beside a generation: 34 years.
const LATEST: u64 = 1 << 40;
/// Says that there is a code.
const CODED: u64 = 1 << 16;

/// A failure of a plain call that nobody has judged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deferred {
    pub(crate) generation: Generation,
    pub(crate) at: Tick,
    pub(crate) failure: Failure,
}

#[derive(Debug)]
pub(super) struct Backlog {
    /// How far the thread has come.
    written: AtomicU64,
    /// How far the reader has come; his entry is the one he last took from.
    read: AtomicU64,
    entries: [Entry; ROOM as usize],
}

/// One failure, and as many like it as there are up to the next entry's first.
#[derive(Debug, Default)]
struct Entry {
    /// Generation (24 bits) and time (40).
    when: AtomicU64,
    /// Kind (32), whether there is a code (1), and the code (16).
    what: AtomicU64,
    /// The number of the first.
    first: AtomicU64,
}

/// A place in a backlog: the number of an entry (16 bits) and of a failure (48), both wrapping.
#[derive(Clone, Copy)]
struct Place(u64);

impl Place {
    const FAILURES: u64 = (1 << 48) - 1;
    /// So far from a reader at 0 that no allowance reaches.
    const CLOSED: Self = Self(1 << 47);

    const fn new(entry: u64, failure: u64) -> Self {
        Self(entry << 48 | failure & Self::FAILURES)
    }

    const fn entry(self) -> u64 {
        self.0 >> 48
    }

    const fn failure(self) -> u64 {
        self.0 & Self::FAILURES
    }

    /// Entries from `before` to here.
    const fn entries_since(self, before: Self) -> u64 {
        self.entry().wrapping_sub(before.entry()) & 0xffff
    }

    /// Failures from number `before` to here.
    const fn failures_since(self, before: u64) -> u64 {
        self.failure().wrapping_sub(before) & Self::FAILURES
    }
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            written: AtomicU64::new(Place::CLOSED.0),
            read: AtomicU64::new(0),
            entries: array::from_fn(|_| Entry::default()),
        }
    }
}

impl Backlog {
    /// Keeps a failure, unless `allowance` of them are kept already; nothing of what the thread reads afterwards by
    /// [`look`](crate::sync::look) is older than this.
    #[inline]
    pub(super) fn push(&self, deferred: &Deferred, allowance: u64) -> bool {
        let written = Place(self.written.load(Ordering::Relaxed));
        let read = Place(self.read.load(Ordering::Acquire));
        let at = deferred.at.as_millis();
        if written.failures_since(read.failure()) >= allowance || at >= LATEST {
            return false;
        }
        let code = deferred
            .failure
            .code
            .map_or(0, |code| CODED | u64::from(code));
        let what = (deferred.failure.kind as u64) << 32 | code;
        let when = u64::from(deferred.generation.get()) << 40 | at;
        let (taken, mut next) = (written.entries_since(read), written.entry());
        let like_the_last = taken > 0 && self.bits(next.wrapping_sub(1)) == Some((when, what));
        if !like_the_last {
            let Some(entry) = self.entry(next).filter(|_| taken < ROOM) else {
                return false;
            };
            entry.when.store(when, Ordering::Relaxed);
            entry.what.store(what, Ordering::Relaxed);
            entry.first.store(written.failure(), Ordering::Relaxed);
            next = next.wrapping_add(1);
        }
        announce(&self.written, Place::new(next, written.failure() + 1).0);
        true
    }

    /// Opens it for its thread. Under the lock.
    pub(super) fn open(&self) {
        let written = self.written.load(Ordering::Relaxed);
        self.read.store(written, Ordering::Release);
    }

    /// Failures that wait here. Under the lock.
    pub(super) fn waiting(&self) -> u64 {
        let written = Place(self.written.load(Ordering::Acquire));
        written.failures_since(Place(self.read.load(Ordering::Relaxed)).failure())
    }

    /// When its oldest failure happened, in ms. Under the lock.
    pub(super) fn oldest(&self) -> Option<u64> {
        let (entry, _) = self.front()?;
        Some(self.bits(entry)?.0 & (LATEST - 1))
    }

    /// Takes its oldest failure, and those that are the same. Under the lock.
    pub(super) fn take(&self) -> Option<(Deferred, u32)> {
        let (entry, times) = self.front()?;
        let read = Place(self.read.load(Ordering::Relaxed)).failure();
        let (when, what) = self.bits(entry)?;
        self.read
            .store(Place::new(entry, read + times).0, Ordering::Release);
        let mut failure = Failure::new(*Kind::ALL.get((what >> 32) as usize)?);
        failure.code = (what & CODED != 0).then_some(what as u16);
        let deferred = Deferred {
            generation: Generation::from_bits((when >> 40) as u32),
            at: Tick::from_millis(when & (LATEST - 1)),
            failure,
        };
        Some((deferred, u32::try_from(times).unwrap_or(u32::MAX)))
    }

    /// The entry of the oldest failure, and how many of its failures wait.
    fn front(&self) -> Option<(u64, u64)> {
        let written = Place(self.written.load(Ordering::Acquire));
        let read = Place(self.read.load(Ordering::Relaxed));
        if written.failures_since(read.failure()) == 0 {
            return None;
        }
        // The entry last taken from may have grown since, or have an end by now.
        (0..written.entries_since(read)).find_map(|ahead| {
            let entry = read.entry().wrapping_add(ahead);
            let end = if ahead + 1 == written.entries_since(read) {
                written
            } else {
                let next = self.entry(entry.wrapping_add(1))?;
                Place(next.first.load(Ordering::Relaxed))
            };
            let left = end.failures_since(read.failure());
            (left > 0).then_some((entry, left))
        })
    }

    fn bits(&self, number: u64) -> Option<(u64, u64)> {
        let entry = self.entry(number)?;
        let (when, what) = (&entry.when, &entry.what);
        Some((when.load(Ordering::Relaxed), what.load(Ordering::Relaxed)))
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get((number % ROOM) as usize)
    }
}

#[cfg(all(test, not(fuseline_loom)))]
mod tests {
    use super::*;

    fn failure(ms: u64, code: Option<u16>) -> Deferred {
        let mut failure = Failure::new(Kind::Overloaded);
        failure.code = code;
        Deferred {
            generation: Generation::FIRST.next(),
            at: Tick::from_millis(ms),
            failure,
        }
    }

    #[test]
    fn it_takes_nothing_before_the_reader_opens_it() {
        let backlog = Backlog::default();
        assert!(!backlog.push(&failure(0, None), u64::from(u32::MAX)));
        backlog.open();
        assert_eq!((backlog.waiting(), backlog.oldest()), (0, None));
        assert!(backlog.push(&failure(0, None), 1));
    }

    #[test]
    fn as_many_as_allowed_wait_and_come_out_as_they_were() {
        let backlog = Backlog::default();
        backlog.open();
        let failures = [
            failure(3, Some(529)),
            failure(3, None),
            failure(LATEST - 1, Some(0)),
        ];
        for failure in &failures {
            assert!(backlog.push(failure, 3));
        }
        let one_more = failure(9, None);
        assert!(!backlog.push(&one_more, 3));
        assert_eq!((backlog.waiting(), backlog.oldest()), (3, Some(3)));
        for failure in failures {
            assert_eq!(backlog.take(), Some((failure, 1)));
            assert!(backlog.push(&failure, 3), "there is room again");
        }
        assert_eq!(backlog.waiting(), 3);
    }

    #[test]
    fn an_instant_too_far_off_does_not_wait() {
        let backlog = Backlog::default();
        backlog.open();
        assert!(!backlog.push(&failure(LATEST, None), 1));
    }

    #[test]
    fn like_ones_share_an_entry_and_others_fill_it_up() {
        let backlog = Backlog::default();
        backlog.open();
        let room = || 0..ROOM;
        for at in room() {
            for _ in 0..100 {
                assert!(backlog.push(&failure(at, None), 10_000));
            }
        }
        assert!(!backlog.push(&failure(ROOM, None), 10_000), "no entry left");
        assert!(
            backlog.push(&failure(ROOM - 1, None), 10_000),
            "as the last"
        );
        for at in room() {
            let times = if at == ROOM - 1 { 101 } else { 100 };
            assert_eq!(backlog.take(), Some((failure(at, None), times)));
        }
        assert_eq!(backlog.take(), None);
    }

    #[test]
    fn an_entry_grows_after_some_of_it_were_taken() {
        let backlog = Backlog::default();
        backlog.open();
        backlog.push(&failure(7, None), 9);
        assert_eq!(backlog.take(), Some((failure(7, None), 1)));
        backlog.push(&failure(7, None), 9);
        backlog.push(&failure(7, None), 9);
        assert_eq!(backlog.take(), Some((failure(7, None), 2)));
    }

    #[test]
    fn numbers_wrap() {
        let backlog = Backlog::default();
        backlog.open();
        for at in 0..70_000 {
            assert!(backlog.push(&failure(at, None), 2));
            assert!(backlog.push(&failure(at + 1, None), 2));
            assert_eq!(backlog.take(), Some((failure(at, None), 1)));
            assert_eq!(backlog.take(), Some((failure(at + 1, None), 1)));
        }
    }
}
