//! Trip rules: what opens a closed breaker.

use core::time::Duration;

/// One rule; it opens the breaker when what it observes reaches its threshold.
///
/// Rules are judged whenever an outcome is recorded. A success can trip too: it may be the one that completes
/// `min_calls`, or the first after good calls have left the window.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(tag = "rule", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum TripRule {
    /// So many failures with no success between them.
    Consecutive {
        /// At least 1.
        failures: u32,
    },
    /// So many failures within a sliding window.
    Window {
        /// At least 1.
        failures: u32,
        /// At least 1 s.
        #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
        window: Duration,
    },
    /// So large a share of failures within a sliding window.
    Rate {
        /// 0.0001 to 1.
        threshold: f64,
        /// At least 1 s.
        #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
        window: Duration,
        /// Calls in the window before the share means anything; at least 1.
        min_calls: u32,
    },
    /// So large a share of slow successes within a sliding window; failures stand in the denominator.
    Slow {
        /// A success that took longer is slow.
        #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
        slower_than: Duration,
        /// 0.0001 to 1; 0.05 says "the 95th percentile is above the limit".
        threshold: f64,
        /// At least 1 s.
        #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
        window: Duration,
        /// Calls in the window before the share means anything; at least 1.
        min_calls: u32,
    },
}

impl TripRule {
    /// Five failures in a row, or half of at least ten calls within a minute.
    pub(crate) fn defaults() -> Vec<Self> {
        vec![
            Self::Consecutive { failures: 5 },
            Self::Rate {
                threshold: 0.5,
                window: Duration::from_secs(60),
                min_calls: 10,
            },
        ]
    }

    /// The rule's name in configuration and explanations.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Consecutive { .. } => "consecutive",
            Self::Window { .. } => "window",
            Self::Rate { .. } => "rate",
            Self::Slow { .. } => "slow",
        }
    }

    /// The window it looks back over, if it has one.
    pub const fn window(&self) -> Option<Duration> {
        match self {
            Self::Consecutive { .. } => None,
            Self::Window { window, .. } | Self::Rate { window, .. } | Self::Slow { window, .. } => {
                Some(*window)
            }
        }
    }
}
