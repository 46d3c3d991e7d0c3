//! `Outcome`: what a driver tells a permit about how its call went.

use core::time::Duration;

use crate::kind::Kind;

/// How a call went. Complete by design: there is no fourth way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: a call succeeded, failed, or says nothing"
)]
pub enum Outcome {
    /// The provider came through. `took` is the time to the first content event of a stream, or to the whole plain
    /// answer; `slow` rules judge it.
    Success {
        /// How long the caller waited.
        took: Duration,
    },
    /// The call failed; whether that counts is the breaker's [`kinds`](crate::PolicySpec::kinds) to say.
    Failure(Failure),
    /// Says nothing about the provider's health.
    Neutral,
}

impl Outcome {
    /// A success that took this long.
    #[inline]
    pub const fn success(took: Duration) -> Self {
        Self::Success { took }
    }

    /// A failure of this kind, with no hint.
    pub const fn failure(kind: Kind) -> Self {
        Self::Failure(Failure::new(kind))
    }
}

/// A failed call.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Failure, Kind, Outcome};
///
/// let throttled = Failure::new(Kind::RateLimit).retry_after(Duration::from_secs(90)).open_now();
/// let outcome = Outcome::Failure(throttled.code(429));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub(crate) kind: Kind,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) open_now: bool,
    pub(crate) code: Option<u16>,
}

impl Failure {
    /// A failure of this kind.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            retry_after: None,
            open_now: false,
            code: None,
        }
    }

    /// The provider said when to come back. Lengthens the cooldown that this failure begins, up to
    /// `max_retry_after`; never shortens it.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Opens whatever the counts say, unless the kind is not counted.
    #[must_use]
    pub const fn open_now(mut self) -> Self {
        self.open_now = true;
        self
    }

    /// A number for the explanation in [`Why`](crate::Why), such as the HTTP status. Decides nothing.
    #[must_use]
    pub const fn code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    /// The kind.
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}
