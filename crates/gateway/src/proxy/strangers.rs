//! `Strangers`: callers without the right token, of whom the log tells now and then and not each time, since anybody can
//! be one as often as he likes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::Tick;

/// How often the log tells of them.
const EVERY: Duration = Duration::from_secs(10);

/// How many there were.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    untold: u64,
    told_at: Option<Tick>,
}

impl Strangers {
    /// One more was sent away.
    pub(crate) fn note(&self, now: Tick) {
        if let Some(calls) = self.seen(now) {
            tracing::warn!(calls, "callers showed no client token, or a wrong one");
        }
    }

    /// How many the log is to tell of, where it is time to.
    fn seen(&self, now: Tick) -> Option<u64> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.untold += 1;
        if seen.told_at.is_some_and(|told| now.since(told) < EVERY) {
            return None;
        }
        seen.told_at = Some(now);
        Some(std::mem::take(&mut seen.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_of_once_in_ten_seconds_with_how_many_there_were() {
        let strangers = Strangers::default();
        let told: Vec<_> = (0..25_000)
            .filter_map(|millis| strangers.seen(Tick::from_millis(millis)))
            .collect();
        assert_eq!(told, [1, 10_000, 10_000]);
    }
}
