//! Scopes: whose breaker a call needs leave from, and whose a failure is charged to.
//!
//! A call touches up to three breakers: its provider's, its model's and its key's. It needs leave from each; a failure
//! is charged to exactly one, so that a rate-limited key or one overloaded model takes nobody else down.

use core::fmt;
use core::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher};
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, LazyLock};

use crate::kind::Kind;
use crate::policy::Per;

/// What a breaker guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[expect(clippy::exhaustive_enums, reason = "the three scopes of the design")]
pub enum Scope {
    /// A provider: endpoint, region, egress.
    Provider,
    /// One model of a provider.
    Model,
    /// One credential at a provider.
    Key,
}

impl Scope {
    /// The name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Key => "key",
        }
    }

    /// Whom a failure of this kind is charged to. What the evidence says of a key beats this table.
    pub const fn charged(kind: Kind, per: Per) -> Self {
        match kind {
            Kind::RateLimit | Kind::QuotaExhausted | Kind::Auth | Kind::Permission => Self::Key,
            Kind::Network => Self::Provider,
            Kind::ServerError
            | Kind::Overloaded
            | Kind::Timeout
            | Kind::EmptyResponse
            | Kind::StreamStall
            | Kind::StreamTruncated
            | Kind::BadRequest
            | Kind::NotFound
            | Kind::ContextLength
            | Kind::ContentPolicy
            | Kind::Validation
            | Kind::Parse
            | Kind::Cancelled
            | Kind::Local => match per {
                Per::Model => Self::Model,
                Per::Provider => Self::Provider,
            },
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A breaker's name: its scope, the provider, and the model or credential.
///
/// ```
/// use fuseline_core::ScopeName;
///
/// assert_eq!(ScopeName::provider("openai").to_string(), "openai");
/// assert_eq!(ScopeName::model("openai", "gpt-5").to_string(), "openai/gpt-5");
/// assert_eq!(ScopeName::key("openai", "1f3ac0de").to_string(), "openai#1f3ac0de");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeName {
    scope: Scope,
    provider: Arc<str>,
    part: Option<Arc<str>>,
    /// Of the rest, computed once: a call looks its breakers up more than once.
    hash: u64,
}

impl ScopeName {
    /// A provider, or any one thing that a library user guards.
    pub fn provider(provider: &str) -> Self {
        Self::new(Scope::Provider, provider, None)
    }

    /// A model of a provider.
    pub fn model(provider: &str, model: &str) -> Self {
        Self::new(Scope::Model, provider, Some(model))
    }

    /// A credential at a provider: its place in the configuration, or the salted prefix of a caller's own key. Never
    /// the key itself.
    pub fn key(provider: &str, credential: &str) -> Self {
        Self::new(Scope::Key, provider, Some(credential))
    }

    fn new(scope: Scope, provider: &str, part: Option<&str>) -> Self {
        Self {
            scope,
            provider: provider.into(),
            part: part.map(Into::into),
            hash: KEYS.hash_one((scope, provider, part)),
        }
    }

    /// What it guards.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// The provider.
    pub fn provider_name(&self) -> &str {
        &self.provider
    }

    /// The model or credential.
    pub fn part(&self) -> Option<&str> {
        self.part.as_deref()
    }
}

/// Keyed anew in each process: callers choose names of models.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Hash for ScopeName {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.hash);
    }
}

/// By breakers' names.
pub(crate) type ByName<T> = HashMap<ScopeName, T, BuildHasherDefault<Hashed>>;

/// A name brings its hash along.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl fmt::Debug for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeName")
            .field("scope", &self.scope)
            .field("provider", &self.provider)
            .field("part", &self.part)
            .finish()
    }
}

impl fmt::Display for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.part, self.scope) {
            (None, _) => f.write_str(&self.provider),
            (Some(part), Scope::Key) => write!(f, "{}#{part}", self.provider),
            (Some(part), Scope::Provider | Scope::Model) => write!(f, "{}/{part}", self.provider),
        }
    }
}
