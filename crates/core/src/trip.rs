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
    /// So much evidence, call by call, that failures have become more: a sequential change detector (CUSUM).
    ///
    /// It compares two shares of failures, `well` and `ill`. Each failure adds one to a sum, each success takes
    /// `ln((1 - well) / (1 - ill)) / ln(ill / well)` off, never below zero; it opens at
    /// `ln(calls_per_false_alarm) / ln(ill / well)`. With the defaults a success takes off 0.0706, and it opens above 9.14:
    /// at ten failures in a row, and soon where one call in seven fails or more. It has no window: a sum stands however
    /// long no call comes. It begins at zero with each closed state, also after a restart.
    ///
    /// ```
    /// use fuseline_core::{Policy, PolicySpec, TripRule};
    ///
    /// let spec = PolicySpec {
    ///     trip: Some(vec![TripRule::Consecutive { failures: 5 }, TripRule::cusum()]),
    ///     ..PolicySpec::default()
    /// };
    /// assert_eq!(Policy::new(&spec)?.trip()[1].as_str(), "cusum");
    /// # Ok::<(), fuseline_core::PolicyError>(())
    /// ```
    Cusum {
        /// The share of calls that fail on a good day; 0.0001 to 0.9999. Default 0.02.
        #[cfg_attr(feature = "serde", serde(default = "well"))]
        well: f64,
        /// The share that is trouble; above `well`, at most 0.9999. Default 0.15.
        #[cfg_attr(feature = "serde", serde(default = "ill"))]
        ill: f64,
        /// While no more than `well` fail it opens for nothing, on average, no more often than once in so many calls;
        /// 100 to 1e15. Default 1e8.
        #[cfg_attr(feature = "serde", serde(default = "calls_per_false_alarm"))]
        calls_per_false_alarm: f64,
    },
}

#[cfg(feature = "serde")]
const fn well() -> f64 {
    TripRule::WELL
}

#[cfg(feature = "serde")]
const fn ill() -> f64 {
    TripRule::ILL
}

#[cfg(feature = "serde")]
const fn calls_per_false_alarm() -> f64 {
    TripRule::CALLS_PER_FALSE_ALARM
}

impl TripRule {
    /// The share that `cusum` takes for health, unless another is said.
    pub const WELL: f64 = 0.02;
    /// The share that `cusum` takes for trouble, unless another is said.
    pub const ILL: f64 = 0.15;
    /// The calls in which `cusum` is wrong once, on average, unless others are said.
    pub const CALLS_PER_FALSE_ALARM: f64 = 1e8;

    /// The `cusum` rule with its defaults.
    pub const fn cusum() -> Self {
        Self::Cusum {
            well: Self::WELL,
            ill: Self::ILL,
            calls_per_false_alarm: Self::CALLS_PER_FALSE_ALARM,
        }
    }

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
            Self::Cusum { .. } => "cusum",
        }
    }

    /// The window it looks back over, if it has one.
    pub const fn window(&self) -> Option<Duration> {
        match self {
            Self::Consecutive { .. } | Self::Cusum { .. } => None,
            Self::Window { window, .. } | Self::Rate { window, .. } | Self::Slow { window, .. } => {
                Some(*window)
            }
        }
    }
}
