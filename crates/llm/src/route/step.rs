//! What goes into a plan besides verdicts, and what comes out: admissions, standings, steps.

use std::time::Duration;

use fuseline_core::{Reason as Refusal, Scopes, Tick};

/// What a target's breakers say at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: pass, pass as a probe, wait, do not pass"
)]
pub enum Admission {
    /// A call passes.
    Ready,
    /// A call passes as a probe: it goes there first, so that the target can come back.
    Probe,
    /// The provider asked for a wait, which ends after this time: nothing is ill, so a call may sit it out.
    Held(Duration),
    /// A call is refused; worth asking again after this time.
    Refused(Duration),
}

impl Admission {
    /// What the breakers behind a target say now; changes nothing.
    pub fn of(scopes: &Scopes, now: Tick) -> Self {
        match scopes.check_due(now) {
            Err(refused) if refused.rejection.reason == Refusal::Held => {
                Self::Held(refused.rejection.retry_after)
            }
            Err(refused) => Self::Refused(refused.rejection.retry_after),
            Ok(true) => Self::Probe,
            Ok(false) => Self::Ready,
        }
    }
}

/// How the attempt that got a verdict stands with its breakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: each says whether the attempt may be repeated"
)]
pub enum Standing {
    /// Admitted, and still would be.
    Current,
    /// Admitted, and still would be; but others have failed and are being repeated, and were these failures known, the
    /// circuit would open.
    Doubtful,
    /// Admitted as a probe.
    Probe,
    /// The circuit has changed since.
    Outdated,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: a driver must know them all"
)]
#[must_use]
pub enum Step {
    /// Ask this target for a permit and make an attempt.
    Try(usize),
    /// Make another attempt on the same target after this time, if the permit is still current by then.
    RetryAfter {
        /// The target.
        target: usize,
        /// The wait.
        delay: Duration,
    },
    /// No target admits, and one of them only waits out a provider's hint: ask [`Plan::next`](crate::Plan::next) again
    /// after this time.
    Wait(Duration),
    /// There is no further attempt.
    GiveUp(Reason),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The last answer is the caller's: a success, or a failure that no other target would mend.
    Final,
    /// Every target has been tried, or does not admit.
    Exhausted,
    /// No target admitted the call at all.
    Refused,
    /// The call's time is spent.
    Budget,
    /// The call's attempts are spent.
    Attempts,
    /// It may be running at two targets without our knowing its end, and nobody else is asked.
    UnknownEnd,
}

impl Reason {
    /// The name in headers and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Exhausted => "exhausted",
            Self::Refused => "refused",
            Self::Budget => "budget",
            Self::Attempts => "attempts",
            Self::UnknownEnd => "unknown_end",
        }
    }
}
