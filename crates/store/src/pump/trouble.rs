//! `Trouble`: a store that fails is told of once, then every ten seconds at most, and left alone for a second each time.

use std::time::Duration;

use fuseline_core::Tick;

use crate::error::StoreError;

/// How long a store that failed is left alone.
const REST: Duration = Duration::from_secs(1);
/// How often trouble is told while it lasts.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The store fails.
pub(super) struct Trouble {
    /// Failures since it was last told.
    untold: u64,
    pub(super) told_at: Tick,
    retry_at: Tick,
}

impl Trouble {
    /// One more failure, told where it is the first or the last word was long ago.
    pub(super) fn tell(before: Option<Self>, error: &StoreError, now: Tick) -> Self {
        let untold = before.as_ref().map_or(0, |trouble| trouble.untold) + 1;
        let retry_at = now + REST;
        match before.filter(|trouble| now < trouble.told_at + TELL_EVERY) {
            Some(Self { told_at, .. }) => Self {
                untold,
                told_at,
                retry_at,
            },
            None => {
                tracing::warn!(
                    %error,
                    failures = untold,
                    "state cannot be kept at present; calls are served as before"
                );
                Self {
                    untold: 0,
                    told_at: now,
                    retry_at,
                }
            }
        }
    }

    /// Whether the store is to be left alone.
    pub(super) fn rests(&self, now: Tick) -> bool {
        now < self.retry_at
    }

    /// The store is back.
    pub(super) fn end(self) {
        tracing::info!(failures = self.untold, "state is kept again");
    }
}
