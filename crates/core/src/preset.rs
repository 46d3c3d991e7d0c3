//! Presets: the settings under which a breaker behaves like one of five known systems.
//!
//! Each was checked against the real code of the system it is named after; the conformance vectors whose name begins
//! with the preset's are replayed under it.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;

use crate::kind::{Kind, UnknownName};
use crate::policy::{Count, KindSpec, OnSuccess, Per, PolicySpec};
use crate::trip::TripRule;

/// A known system's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// 5 in a row, 30 s, one good probe; every answer but a 2xx counts.
    Vernllm,
    /// 5 in a row, 60 s, two good probes; 5xx, 429, 408 and the network count.
    Llmtest,
    /// The same by rate: half of at least 10 within 60 s.
    LlmtestRate,
    /// 5 in a leaking count, 30 s, doubling after three failed probes.
    Omniroute,
    /// 5 within 60 s, 30 s, two good probes; every error counts.
    Agents,
    /// 5 within 60 s, 30 s, one good probe; by model.
    N4n,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 6] = [
        Self::Vernllm,
        Self::Llmtest,
        Self::LlmtestRate,
        Self::Omniroute,
        Self::Agents,
        Self::N4n,
    ];

    /// The name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vernllm => "vernllm",
            Self::Llmtest => "llmtest",
            Self::LlmtestRate => "llmtest-rate",
            Self::Omniroute => "omniroute",
            Self::Agents => "agents",
            Self::N4n => "n4n",
        }
    }

    /// The settings it stands for.
    pub fn spec(self) -> PolicySpec {
        let minute = Duration::from_secs(60);
        let in_a_row = vec![TripRule::Consecutive { failures: 5 }];
        let within_a_minute = vec![TripRule::Window {
            failures: 5,
            window: minute,
        }];
        let half = vec![TripRule::Rate {
            threshold: 0.5,
            window: minute,
            min_calls: 10,
        }];
        match self {
            Self::Vernllm => base(in_a_row, 30, 1, Count::Call, |kind| {
                kind <= Kind::ContentPolicy
            }),
            Self::Llmtest => base(in_a_row, 60, 2, Count::Attempt, |kind| {
                kind <= Kind::Network
            }),
            Self::LlmtestRate => base(half, 60, 2, Count::Attempt, |kind| kind <= Kind::Network),
            Self::Omniroute => PolicySpec {
                on_success: Some(OnSuccess::Decrement),
                backoff: Some(2.0),
                backoff_after: Some(3),
                max_cooldown: Some(Duration::from_secs(16 * 30)),
                ..base(in_a_row, 30, 1, Count::Attempt, |kind| {
                    kind <= Kind::StreamTruncated
                })
            },
            Self::Agents => base(within_a_minute, 30, 2, Count::Attempt, |kind| {
                kind <= Kind::ContentPolicy
            }),
            Self::N4n => PolicySpec {
                per: Some(Per::Model),
                ..base(within_a_minute, 30, 1, Count::Attempt, |kind| {
                    kind <= Kind::Network || kind == Kind::StreamStall
                })
            },
        }
    }
}

/// What the presets share: one probe, no growth, charged to the provider; these kinds count and no others. Kinds are
/// in the order of their enum: answers and the network first, then what is wrong with a good status, then what the
/// caller did wrong, then what says nothing of the call.
fn base(
    trip: Vec<TripRule>,
    cooldown_secs: u64,
    successes_to_close: u32,
    count: Count,
    counts: impl Fn(Kind) -> bool,
) -> PolicySpec {
    let row = |kind| {
        (
            kind,
            KindSpec {
                count: Some(counts(kind)),
                ..KindSpec::default()
            },
        )
    };
    PolicySpec {
        trip: Some(trip),
        on_success: Some(OnSuccess::Reset),
        degraded_at: Some(0.6),
        cooldown: Some(Duration::from_secs(cooldown_secs)),
        backoff: Some(1.0),
        backoff_after: Some(0),
        probes: Some(1),
        successes_to_close: Some(successes_to_close),
        count: Some(count),
        per: Some(Per::Provider),
        kinds: Kind::ALL.into_iter().map(row).collect::<BTreeMap<_, _>>(),
        ..PolicySpec::default()
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.as_str() == name)
            .ok_or_else(|| UnknownName::new("preset", name, Self::ALL.map(Self::as_str)))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Preset {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    #[test]
    fn every_preset_is_a_valid_policy() {
        for preset in Preset::ALL {
            assert_eq!(preset.as_str().parse(), Ok(preset));
            assert!(
                Policy::new(&PolicySpec {
                    preset: Some(preset),
                    ..PolicySpec::default()
                })
                .is_ok(),
                "{preset}"
            );
        }
    }

    #[test]
    fn keys_beside_a_preset_win() {
        let written = PolicySpec {
            preset: Some(Preset::Llmtest),
            cooldown: Some(Duration::from_secs(7)),
            ..PolicySpec::default()
        };
        let policy = Policy::new(&written).unwrap();
        assert_eq!(policy.cooldown(), Duration::from_secs(7));
        assert_eq!(policy.count(), Count::Attempt);
    }

    #[test]
    fn a_preset_in_a_later_layer_beats_keys_of_an_earlier_one() {
        let lower = PolicySpec {
            cooldown: Some(Duration::from_secs(7)),
            jitter: Some(0.3),
            ..PolicySpec::default()
        };
        let upper = PolicySpec {
            preset: Some(Preset::Vernllm),
            ..PolicySpec::default()
        };
        let merged = lower.overlaid(&upper);
        assert_eq!(merged.cooldown, Some(Duration::from_secs(30)));
        assert_eq!(
            merged.jitter,
            Some(0.3),
            "the preset says nothing of jitter"
        );
    }
}
