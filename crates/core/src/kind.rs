//! `Kind`: what went wrong, in the words that configuration, logs and metrics share, and how each kind counts.
//!
//! The core knows names and rules only; which answer of which provider is which kind is the classifier's business.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// What kind of failure a call met.
///
/// In the order of the design's table; [`Kind::ALL`] lists them.
///
/// ```
/// use fuseline_core::Kind;
///
/// assert_eq!("rate_limit".parse(), Ok(Kind::RateLimit));
/// assert_eq!(Kind::StreamStall.as_str(), "stream_stall");
/// assert!(Kind::ServerError.rule().count);
/// assert!(!Kind::BadRequest.rule().count);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The provider failed: 500, 502, 503, 504, 520 to 526, any unknown 5xx.
    ServerError,
    /// The provider has no capacity: 529, "overloaded" bodies, a model that is loading.
    Overloaded,
    /// A rate limit of this key (or key and model).
    RateLimit,
    /// Quota or credit is spent: waiting seconds will not help.
    QuotaExhausted,
    /// A deadline passed: connecting, first token, whole answer; 408, 425.
    Timeout,
    /// No connection, or a broken one: refused, reset, DNS, TLS.
    Network,
    /// A success status with no usable content.
    EmptyResponse,
    /// A stream fell silent, or sent nothing but keep-alives.
    StreamStall,
    /// A stream ended without its end marker.
    StreamTruncated,
    /// The credential was refused: 401.
    Auth,
    /// The credential may not do this: 403.
    Permission,
    /// The request is wrong: 400, 413, 415, 422.
    BadRequest,
    /// No such model or path: 404.
    NotFound,
    /// The request does not fit into the model's context window.
    ContextLength,
    /// Refused by a content policy.
    ContentPolicy,
    /// The caller's own check refused a good answer.
    Validation,
    /// The caller could not parse a good answer.
    Parse,
    /// The caller left before the answer came.
    Cancelled,
    /// Our own limits: an open circuit, a budget spent before sending.
    Local,
}

/// How failures of one kind count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindRule {
    /// Whether such a failure counts at all; `false` makes it neutral.
    pub count: bool,
    /// Open at this many failures of this kind since the last closing, less what successes took back.
    pub threshold: Option<u32>,
    /// Open at the first such failure.
    pub immediate_open: bool,
    /// Base cooldown when such a failure opened; none means the breaker's own.
    pub cooldown: Option<Duration>,
}

impl KindRule {
    /// Counts in every trip rule and has no rule of its own.
    pub const COUNTED: Self = Self {
        count: true,
        threshold: None,
        immediate_open: false,
        cooldown: None,
    };
    /// Neither success nor failure.
    pub const NEUTRAL: Self = Self {
        count: false,
        ..Self::COUNTED
    };
}

impl Kind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 19] = [
        Self::ServerError,
        Self::Overloaded,
        Self::RateLimit,
        Self::QuotaExhausted,
        Self::Timeout,
        Self::Network,
        Self::EmptyResponse,
        Self::StreamStall,
        Self::StreamTruncated,
        Self::Auth,
        Self::Permission,
        Self::BadRequest,
        Self::NotFound,
        Self::ContextLength,
        Self::ContentPolicy,
        Self::Validation,
        Self::Parse,
        Self::Cancelled,
        Self::Local,
    ];

    /// The name in configuration, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServerError => "server_error",
            Self::Overloaded => "overloaded",
            Self::RateLimit => "rate_limit",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::EmptyResponse => "empty_response",
            Self::StreamStall => "stream_stall",
            Self::StreamTruncated => "stream_truncated",
            Self::Auth => "auth",
            Self::Permission => "permission",
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::ContextLength => "context_length",
            Self::ContentPolicy => "content_policy",
            Self::Validation => "validation",
            Self::Parse => "parse",
            Self::Cancelled => "cancelled",
            Self::Local => "local",
        }
    }

    /// How this kind counts where configuration says nothing.
    pub const fn rule(self) -> KindRule {
        match self {
            Self::ServerError
            | Self::Overloaded
            | Self::RateLimit
            | Self::Timeout
            | Self::Network
            | Self::EmptyResponse
            | Self::StreamStall
            | Self::StreamTruncated => KindRule::COUNTED,
            Self::QuotaExhausted => KindRule {
                immediate_open: true,
                cooldown: Some(Duration::from_secs(600)),
                ..KindRule::COUNTED
            },
            Self::Auth
            | Self::Permission
            | Self::BadRequest
            | Self::NotFound
            | Self::ContextLength
            | Self::ContentPolicy
            | Self::Validation
            | Self::Parse
            | Self::Cancelled
            | Self::Local => KindRule::NEUTRAL,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text names nothing known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// No `what`, such as a "preset", is called `name`; these are `known`.
    pub fn new(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let known = known.into_iter().collect();
        Self {
            what,
            name: name.to_owned(),
            known,
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no {}; there are {}",
            self.name,
            self.what,
            self.known.join(", ")
        )
    }
}

impl core::error::Error for UnknownName {}

impl FromStr for Kind {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| UnknownName::new("kind of failure", name, Self::ALL.map(Self::as_str)))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_indexes_follow_the_list() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(kind.index(), at);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "server-error".parse::<Kind>().unwrap_err().to_string();
        assert!(
            error.starts_with(
                "`server-error` is no kind of failure; there are server_error, overloaded"
            ),
            "{error}"
        );
    }
}
