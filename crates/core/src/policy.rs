//! `PolicySpec`, what an operator writes, and `Policy`, the checked form that a breaker runs by.
//!
//! A spec says only what differs: every key is optional, and later specs win key by key
//! ([`PolicySpec::overlaid`]). [`Policy::new`] fills in the defaults and refuses what cannot work, naming every
//! bad key, its value and what is allowed.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kind::{Kind, KindRule};
use crate::preset::Preset;
use crate::trip::TripRule;

/// What the breaker does with its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Mode {
    /// Rejects calls while open.
    #[default]
    Enforce,
    /// Decides, counts and reports as if it enforced, and rejects nobody.
    Shadow,
    /// No breaker at all.
    Off,
}

/// What a success does to the run of failures and to the counts by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum OnSuccess {
    /// Sets them to zero.
    #[default]
    Reset,
    /// Takes one from each.
    Decrement,
}

/// What one permit stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Count {
    /// A call to a target, settled after its own retries.
    #[default]
    Call,
    /// One attempt.
    Attempt,
}

/// Whose breaker a provider-side failure is charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Per {
    /// The model's, so that one bad model takes nobody else down.
    #[default]
    Model,
    /// The provider's.
    Provider,
}

/// A row of `kinds` as written; see [`PolicySpec::kinds`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default))]
pub struct KindSpec {
    /// Whether the kind counts; none means as the row it replaces.
    pub count: Option<bool>,
    /// Open at this many failures of the kind; none means no such rule.
    pub threshold: Option<u32>,
    /// Open at the first one.
    pub immediate_open: bool,
    /// Base cooldown when such a failure opened; none means the breaker's own.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub cooldown: Option<Duration>,
}

/// A breaker's settings as written; a key that is `None` keeps what lower layers, or the defaults, say.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Policy, PolicySpec, TripRule};
///
/// let spec = PolicySpec {
///     trip: Some(vec![TripRule::Consecutive { failures: 3 }]),
///     cooldown: Some(Duration::from_secs(30)),
///     ..PolicySpec::default()
/// };
/// assert_eq!(Policy::new(&spec)?.probes(), 1);
/// # Ok::<(), fuseline_core::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default))]
pub struct PolicySpec {
    /// A known system's behaviour to start from; other keys written beside it win.
    pub preset: Option<Preset>,
    /// `enforce` (default), `shadow` or `off`.
    pub mode: Option<Mode>,
    /// Any of these rules opens. Default: 5 failures in a row, or half of at least 10 calls within 60 s.
    pub trip: Option<Vec<TripRule>>,
    /// `reset` (default) or `decrement`.
    pub on_success: Option<OnSuccess>,
    /// Share of a threshold from which the state reads `degraded`. Default 0.6; 1 = never.
    pub degraded_at: Option<f64>,
    /// Time in `open`. Default 15 s.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub cooldown: Option<Duration>,
    /// Factor on the cooldown per failed probe episode. Default 2.
    pub backoff: Option<f64>,
    /// Failed episodes before the factor applies. Default 0.
    pub backoff_after: Option<u32>,
    /// Cap of that growth, never below the base. Default 2 minutes.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub max_cooldown: Option<Duration>,
    /// Lengthens a cooldown by up to this share. Default 0.1.
    pub jitter: Option<f64>,
    /// Cap of a provider's own wait hint. Default 1 hour.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub max_retry_after: Option<Duration>,
    /// Live probes at once while half-open, 1 to 64. Default 1.
    pub probes: Option<u32>,
    /// Good probes needed to close. Default 2.
    pub successes_to_close: Option<u32>,
    /// A probe that shows no sign of life for this long has failed. Default 60 s.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub probe_timeout: Option<Duration>,
    /// A streaming probe that has delivered content for this long is a success. Default 5 s. Drivers obey it.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub probe_proof: Option<Duration>,
    /// After closing, admission grows from 10 % to all over this time. Default 0: at once.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub ramp: Option<Duration>,
    /// Unsettled permits at once; more are rejected. Default 0: no limit.
    pub max_in_flight: Option<u32>,
    /// One permit per `call` (default) or per `attempt`. Drivers obey it.
    pub count: Option<Count>,
    /// Charge provider-side failures to the `model` (default) or the `provider`.
    pub per: Option<Per>,
    /// Rows that replace the kinds' own; see [`Kind::rule`].
    pub kinds: BTreeMap<Kind, KindSpec>,
}

impl PolicySpec {
    /// This spec with `over` laid on top: each key that `over` says wins. A preset stands for all its keys at the
    /// layer where it is written.
    #[must_use]
    pub fn overlaid(&self, over: &Self) -> Self {
        let over = over.expanded();
        let mut kinds = self.expanded().kinds;
        for (kind, row) in over.kinds {
            let replaced = kinds.get(&kind).and_then(|row| row.count);
            kinds.insert(
                kind,
                KindSpec {
                    count: row.count.or(replaced),
                    ..row
                },
            );
        }
        let under = self.expanded();
        Self {
            preset: None,
            mode: over.mode.or(under.mode),
            trip: over.trip.or(under.trip),
            on_success: over.on_success.or(under.on_success),
            degraded_at: over.degraded_at.or(under.degraded_at),
            cooldown: over.cooldown.or(under.cooldown),
            backoff: over.backoff.or(under.backoff),
            backoff_after: over.backoff_after.or(under.backoff_after),
            max_cooldown: over.max_cooldown.or(under.max_cooldown),
            jitter: over.jitter.or(under.jitter),
            max_retry_after: over.max_retry_after.or(under.max_retry_after),
            probes: over.probes.or(under.probes),
            successes_to_close: over.successes_to_close.or(under.successes_to_close),
            probe_timeout: over.probe_timeout.or(under.probe_timeout),
            probe_proof: over.probe_proof.or(under.probe_proof),
            ramp: over.ramp.or(under.ramp),
            max_in_flight: over.max_in_flight.or(under.max_in_flight),
            count: over.count.or(under.count),
            per: over.per.or(under.per),
            kinds,
        }
    }

    /// The preset, if any, written out as keys below this spec's own.
    fn expanded(&self) -> Self {
        match self.preset {
            None => self.clone(),
            Some(preset) => preset.spec().overlaid(&Self {
                preset: None,
                ..self.clone()
            }),
        }
    }
}

/// Checked settings. Clones share one allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy(Arc<Checked>);

#[derive(Debug, PartialEq)]
pub(crate) struct Checked {
    pub(crate) mode: Mode,
    pub(crate) trip: Vec<TripRule>,
    pub(crate) on_success: OnSuccess,
    pub(crate) degraded_at: f64,
    pub(crate) cooldown: Duration,
    pub(crate) backoff: f64,
    pub(crate) backoff_after: u32,
    pub(crate) max_cooldown: Duration,
    pub(crate) jitter: f64,
    pub(crate) max_retry_after: Duration,
    pub(crate) probes: u32,
    pub(crate) successes_to_close: u32,
    pub(crate) probe_timeout: Duration,
    pub(crate) probe_proof: Duration,
    pub(crate) ramp: Duration,
    pub(crate) max_in_flight: u32,
    pub(crate) count: Count,
    pub(crate) per: Per,
    pub(crate) kinds: [KindRule; Kind::ALL.len()],
}

impl Default for Policy {
    fn default() -> Self {
        Self(Arc::new(Checked::from_spec(&PolicySpec::default())))
    }
}

impl Policy {
    /// Checks a spec and fills in the defaults.
    ///
    /// # Errors
    /// Every key that cannot work, at once.
    pub fn new(spec: &PolicySpec) -> Result<Self, PolicyError> {
        let checked = Checked::from_spec(&spec.expanded());
        let problems = crate::policy_check::problems(&checked);
        if problems.is_empty() {
            Ok(Self(Arc::new(checked)))
        } else {
            Err(PolicyError { problems })
        }
    }

    pub(crate) fn checked(&self) -> &Checked {
        &self.0
    }

    /// What the breaker does with its decisions.
    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// The trip rules.
    pub fn trip(&self) -> &[TripRule] {
        &self.0.trip
    }

    /// Live probes at once.
    pub fn probes(&self) -> u32 {
        self.0.probes
    }

    /// Whether one permit stands for a call or for an attempt.
    pub fn count(&self) -> Count {
        self.0.count
    }

    /// Whose breaker a provider-side failure is charged to.
    pub fn per(&self) -> Per {
        self.0.per
    }

    /// Base time in `open`.
    pub fn cooldown(&self) -> Duration {
        self.0.cooldown
    }

    /// How long a probe may show no sign of life.
    pub fn probe_timeout(&self) -> Duration {
        self.0.probe_timeout
    }

    /// Content time after which a streaming probe is a success.
    pub fn probe_proof(&self) -> Duration {
        self.0.probe_proof
    }

    /// How failures of this kind count.
    pub fn kind(&self, kind: Kind) -> KindRule {
        self.0
            .kinds
            .get(kind.index())
            .copied()
            .unwrap_or(KindRule::NEUTRAL)
    }
}

impl Checked {
    fn from_spec(spec: &PolicySpec) -> Self {
        let mut kinds = Kind::ALL.map(Kind::rule);
        for (kind, row) in &spec.kinds {
            if let Some(rule) = kinds.get_mut(kind.index()) {
                *rule = KindRule {
                    count: row.count.unwrap_or(rule.count),
                    threshold: row.threshold,
                    immediate_open: row.immediate_open,
                    cooldown: row.cooldown,
                };
            }
        }
        Self {
            mode: spec.mode.unwrap_or_default(),
            trip: spec.trip.clone().unwrap_or_else(TripRule::defaults),
            on_success: spec.on_success.unwrap_or_default(),
            degraded_at: spec.degraded_at.unwrap_or(0.6),
            cooldown: spec.cooldown.unwrap_or(Duration::from_secs(15)),
            backoff: spec.backoff.unwrap_or(2.0),
            backoff_after: spec.backoff_after.unwrap_or(0),
            max_cooldown: spec.max_cooldown.unwrap_or(Duration::from_secs(120)),
            jitter: spec.jitter.unwrap_or(0.1),
            max_retry_after: spec.max_retry_after.unwrap_or(Duration::from_secs(3_600)),
            probes: spec.probes.unwrap_or(1),
            successes_to_close: spec.successes_to_close.unwrap_or(2),
            probe_timeout: spec.probe_timeout.unwrap_or(Duration::from_secs(60)),
            probe_proof: spec.probe_proof.unwrap_or(Duration::from_secs(5)),
            ramp: spec.ramp.unwrap_or_default(),
            max_in_flight: spec.max_in_flight.unwrap_or(0),
            count: spec.count.unwrap_or_default(),
            per: spec.per.unwrap_or_default(),
            kinds,
        }
    }
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Every problem found, in the order of the keys.
    pub problems: Vec<Problem>,
}

/// One key that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key as written in configuration, such as `trip[1].threshold` or `kinds.timeout.cooldown`.
    pub key: String,
    /// Its value as written.
    pub value: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, must be {}",
            self.key, self.value, self.allowed
        )
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl core::error::Error for PolicyError {}
