//! What a breaker tells: a [`Transition`] when its state changed, a [`Rejection`] when it refused a call. Plain data.

use core::fmt;
use core::time::Duration;

use crate::kind::Kind;
use crate::state::State;
use crate::tick::Tick;

/// A change of state, as kept in the breaker's history.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Transition {
    /// 1 for a breaker's first transition, then counting on.
    pub number: u64,
    /// When it took effect. A lease or a forced state that ended is applied later, as of its own end.
    pub at: Tick,
    /// The state left.
    pub from: State,
    /// The state entered.
    pub to: State,
    /// The generation that began with it (24 bits, wrapping). `closed` and `degraded` are one.
    pub generation: u32,
    /// When an `open` or a forced state ends, where that is known.
    pub until: Option<Tick>,
    /// Why.
    pub why: Why,
}

/// What a transition rests on.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Why {
    /// The rule or event that decided.
    pub cause: Cause,
    /// What was observed: failures, a share, good probes, a pressure.
    pub observed: f64,
    /// What it was held against; 0 where there is no such number.
    pub threshold: f64,
    /// The kind of the failure that decided, if one did.
    pub kind: Option<Kind>,
    /// The latest counted failures, oldest first, at most five.
    pub last_failures: Vec<FailureNote>,
}

/// One counted failure, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FailureNote {
    /// When it was recorded.
    pub at: Tick,
    /// Its kind.
    pub kind: Kind,
    /// The number that the driver gave, such as an HTTP status.
    pub code: Option<u16>,
}

/// What decided a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Cause {
    /// The `consecutive` rule.
    Consecutive,
    /// The `window` rule.
    Window,
    /// The `rate` rule.
    Rate,
    /// The `slow` rule.
    Slow,
    /// The `cusum` rule.
    Cusum,
    /// A kind's own threshold or `immediate_open`.
    Kind,
    /// The driver asked for it with the failure: the provider said when to come back.
    OpenNow,
    /// A probe failed, or, on closing, enough of them succeeded.
    Probe,
    /// A probe's lease ended without a sign of life.
    Lease,
    /// The cooldown ended and a call came.
    Cooldown,
    /// Pressure crossed `degraded_at`.
    Pressure,
    /// More than half of a provider's models are open.
    Models,
    /// An operator's command.
    Operator,
    /// The end of a forced state.
    Expiry,
    /// The state was put back from a store.
    Restored,
    /// The replicas of a fleet together.
    Fleet,
}

impl Cause {
    /// The name in logs and snapshots.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Window => "window",
            Self::Rate => "rate",
            Self::Slow => "slow",
            Self::Cusum => "cusum",
            Self::Kind => "kind",
            Self::OpenNow => "open_now",
            Self::Probe => "probe",
            Self::Lease => "lease",
            Self::Cooldown => "cooldown",
            Self::Pressure => "pressure",
            Self::Models => "models",
            Self::Operator => "operator",
            Self::Expiry => "expiry",
            Self::Restored => "restored",
            Self::Fleet => "fleet",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if self.threshold > 0.0 {
            write!(f, " {}/{}", Short(self.observed), Short(self.threshold))?;
        }
        if let Some(kind) = self.kind {
            write!(f, ", {kind}")?;
        }
        for (at, failure) in self.last_failures.iter().enumerate() {
            f.write_str(if at == 0 { "; last failures: " } else { ", " })?;
            write!(f, "{}", failure.kind)?;
            if let Some(code) = failure.code {
                write!(f, " {code}")?;
            }
        }
        Ok(())
    }
}

/// A number with at most three decimals, none where it has none.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Reason {
    /// An operator forced the breaker open.
    Forced,
    /// The cooldown is running.
    Open,
    /// Half-open, and all probe slots are taken.
    Probing,
    /// `max_in_flight` permits are unsettled.
    Saturated,
    /// Just closed, and admission is still growing.
    Ramping,
    /// The provider asked this key to wait.
    Held,
}

impl Reason {
    /// Every reason that a breaker itself counts, in the order of its counters.
    pub const COUNTED: [Self; 5] = [
        Self::Forced,
        Self::Open,
        Self::Probing,
        Self::Saturated,
        Self::Ramping,
    ];

    /// Its place in [`COUNTED`](Self::COUNTED).
    pub(crate) const fn counter(self) -> Option<usize> {
        match self {
            Self::Forced => Some(0),
            Self::Open => Some(1),
            Self::Probing => Some(2),
            Self::Saturated => Some(3),
            Self::Ramping => Some(4),
            Self::Held => None,
        }
    }

    /// A small number for a packed word.
    pub(crate) const fn number(self) -> u64 {
        self as u64
    }

    /// The reason of a [`number`](Self::number).
    pub(crate) fn from_number(number: u64) -> Self {
        let counted = Self::COUNTED.into_iter();
        let mut all = counted.chain([Self::Held]);
        all.find(|reason| reason.number() == number)
            .unwrap_or(Self::Held)
    }

    /// The name in logs, metrics and replays.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Saturated => "saturated",
            Self::Ramping => "ramping",
            Self::Held => "held",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call was refused: do not make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why.
    pub reason: Reason,
    /// When it is worth asking again.
    pub retry_after: Duration,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.retry_after.as_millis().div_ceil(1_000);
        write!(f, "circuit {}, retry in {seconds} s", self.reason)
    }
}

impl core::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_the_order_of_the_list() {
        for (at, reason) in Reason::COUNTED.into_iter().enumerate() {
            assert_eq!(reason.counter(), Some(at));
        }
    }
}
