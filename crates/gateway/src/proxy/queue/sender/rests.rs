//! `Rests`: lanes in which calls fail are left alone for a while, longer each time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::Tick;
use fuseline_store::Sent;

/// A lane in which a call has failed rests for so long, and twice as long each further time while its circuit is closed.
const REST: Duration = Duration::from_secs(1);
const MAX_REST: Duration = Duration::from_secs(30);
/// The breakers say themselves when it is worth another look.
const REFUSED: Duration = Duration::from_millis(250);

/// Lanes in which calls fail, and until when each rests.
#[derive(Default)]
pub(super) struct Rests(Mutex<HashMap<String, Rest>>);

struct Rest {
    until: Tick,
    failures: u32,
}

impl Rests {
    pub(super) fn rests(&self, lane: &str, now: Tick) -> bool {
        let rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.get(lane).is_some_and(|rest| now < rest.until)
    }

    /// A call went back.
    pub(super) fn fail(&self, lane: &str, how: Sent, now: Tick) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = rests.entry(lane.to_owned()).or_insert(Rest {
            until: now,
            failures: 0,
        });
        let time = match how {
            Sent::NotAtAll => REFUSED,
            // The breaker's own cooldown comes before the next one.
            Sent::AsProbe => REST,
            Sent::InVain => {
                let longer = 1_u32.checked_shl(rest.failures).unwrap_or(u32::MAX);
                rest.failures = (rest.failures + 1).min(16);
                REST.saturating_mul(longer).min(MAX_REST)
            }
        };
        rest.until = now + time;
    }

    pub(super) fn succeed(&self, lane: &str) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.remove(lane);
    }

    /// Lets those go that have not failed for long.
    pub(super) fn forget(&self, now: Tick) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.retain(|_, rest| now < rest.until + MAX_REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_rests_longer_each_time_until_a_call_succeeds() {
        let rests = Rests::default();
        let mut now = Tick::from_millis(1_000);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            rests.fail("x", Sent::InVain, now);
            let end = now + Duration::from_secs(seconds);
            assert!(
                rests.rests("x", now + Duration::from_millis(seconds * 1_000 - 1)),
                "{seconds}"
            );
            assert!(!rests.rests("x", end) && !rests.rests("y", now));
            now = end;
        }
        rests.succeed("x");
        for _ in 0..9 {
            rests.fail("x", Sent::AsProbe, now);
            assert!(!rests.rests("x", now + REST), "its breaker waits by itself");
        }
        rests.forget(now + REST);
        rests.fail("x", Sent::NotAtAll, now + REST);
        assert!(
            !rests.rests("x", now + REST + REFUSED),
            "nothing has failed"
        );
        rests.forget(now + MAX_REST + MAX_REST);
        assert!(rests.0.lock().unwrap().is_empty());
    }
}
