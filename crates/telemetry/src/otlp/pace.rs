//! `Pace`: how many traces may begin here in a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What a word holds below its second.
const COUNT_BITS: u32 = 32;

/// Counts traces by the second of the day's time.
#[derive(Debug)]
pub(super) struct Pace {
    most: u32,
    /// The second, and how many began in it.
    word: AtomicU64,
}

impl Pace {
    pub(super) const fn new(most: u32) -> Self {
        Self {
            most,
            word: AtomicU64::new(0),
        }
    }

    /// Whether one more may begin. Several that ask at once may all hear so.
    pub(super) fn has_room(&self, now: SystemTime) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word >> COUNT_BITS != second(now) || count(word) < self.most
    }

    /// One has begun.
    pub(super) fn begun(&self, now: SystemTime) {
        let second = second(now);
        let next = |word: u64| {
            let before = if word >> COUNT_BITS == second {
                count(word)
            } else {
                0
            };
            Some(second << COUNT_BITS | u64::from(before.saturating_add(1)))
        };
        // It always gives a word, so it cannot fail.
        let _word = self
            .word
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

fn second(now: SystemTime) -> u64 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs() & u64::from(u32::MAX)
}

fn count(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_no_more() {
        let pace = Pace::new(3);
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let begun = |times: &[u64]| {
            let times = times.iter().filter(|time| {
                let has_room = pace.has_room(at(**time));
                if has_room {
                    pace.begun(at(**time));
                }
                has_room
            });
            times.count()
        };
        assert_eq!(begun(&[5_000, 5_001, 5_002, 5_003, 5_999]), 3);
        assert_eq!(begun(&[6_000, 6_500, 6_998, 6_999]), 3);
        assert_eq!(begun(&[9_000]), 1);
    }
}
