//! The quickest of many passes: what work takes where nothing comes between.

use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(500);

/// The time of the quickest pass. A pass should be shorter than a time slice of the system, and longer than a reading of
/// the clock.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
pub(crate) fn quickest(mut pass: impl FnMut()) -> Duration {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < PATIENCE {
        let begin = Instant::now();
        pass();
        best = best.min(begin.elapsed());
    }
    best
}
