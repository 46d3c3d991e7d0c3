//! `Way`: one candidate of a call, with all that is needed to go there.

use std::fmt;
use std::time::Duration;

use fuseline_core::{ScopedRejection, Scopes, Tick};
use fuseline_llm::{Admission, Fallback, Owner, Target, credential_id};
use http::header::HeaderValue;
use secrecy::ExposeSecret as _;

use super::context::{Answerer, Context};
use super::headers::CREDENTIALS;
use super::ingress::{Call, Lane};
use super::upstream::{Keys, Upstream, key_in};
use super::{BuildError, Proxy};
use crate::config::{Credential, Provider};

/// Under this name stand the calls that no model is named in.
const NO_MODEL: &str = "-";

/// Worth asking again, where the registry had no room for a breaker.
pub(super) const NO_ROOM: Duration = Duration::from_secs(1);

/// A target, its breakers, and how it is called.
pub(crate) struct Way<'p> {
    pub(crate) target: Target,
    /// None where there is no room for its breaker.
    pub(crate) scopes: Option<Scopes>,
    pub(crate) upstream: &'p Upstream,
    /// None = the caller's own.
    pub(crate) key: Option<&'p HeaderValue>,
    /// The model to put in the place of the caller's.
    pub(crate) model: Option<String>,
    pub(crate) answerer: Answerer,
    /// What its breakers said when they turned the call away.
    pub(crate) refused: Option<ScopedRejection>,
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target.provider(), self.target.model())
    }
}

impl Proxy {
    /// The candidates of a call in their order: of each target first all its keys.
    pub(super) fn ways(&self, call: &Call, now: Tick) -> Vec<Way<'_>> {
        let targets: Vec<(&str, Option<&str>)> = match call.lane {
            Lane::Provider(index) => self
                .config
                .providers
                .keys()
                .nth(index)
                .map(|name| (name.as_str(), None))
                .into_iter()
                .collect(),
            Lane::Route(_) => {
                let targets = self.route(call).map_or(&[][..], |route| &route.targets);
                let allowed = if call.fallback == Fallback::Off {
                    1
                } else {
                    targets.len()
                };
                targets
                    .iter()
                    .take(allowed)
                    .map(|target| (target.provider.as_str(), target.model.as_deref()))
                    .collect()
            }
        };
        let ways = targets
            .into_iter()
            .enumerate()
            .flat_map(|(at, (provider, model))| {
                let answerer = if at == 0 {
                    Answerer::First
                } else {
                    Answerer::Fallback
                };
                self.ways_to(call, provider, model, answerer, now)
            });
        ways.collect()
    }

    pub(super) fn ways_to(
        &self,
        call: &Call,
        provider: &str,
        model: Option<&str>,
        answerer: Answerer,
        now: Tick,
    ) -> Vec<Way<'_>> {
        let Some(upstream) = self.upstreams.get(provider) else {
            return Vec::new();
        };
        let way = |id: &str, owner, key| {
            let target = Target::new(
                provider,
                model.or_else(|| call.facts.model()).unwrap_or(NO_MODEL),
                id,
                owner,
            );
            let scopes = self.guards.scopes(&self.config, &target, now);
            let scopes = scopes
                .inspect_err(|error| tracing::warn!(%error, "a call is refused"))
                .ok();
            Way {
                target,
                scopes,
                upstream,
                key,
                model: model.map(str::to_owned),
                answerer,
                refused: None,
            }
        };
        match &upstream.keys {
            Keys::Caller => vec![way(&self.caller_id(call), Owner::Caller, None)],
            Keys::Own(keys) => keys
                .iter()
                .map(|(id, key)| way(id, Owner::Gateway, Some(key)))
                .collect(),
        }
    }

    /// The name under which a caller's own key is known.
    fn caller_id(&self, call: &Call) -> String {
        let in_headers = CREDENTIALS
            .iter()
            .find_map(|name| call.headers.get(name))
            .map(HeaderValue::as_bytes);
        let in_query = || call.query.as_deref()?.split('&').find_map(key_in);
        let key = in_headers.or_else(|| in_query().map(str::as_bytes));
        key.map_or_else(|| "none".to_owned(), |key| credential_id(&self.salt, key))
    }
}

/// What the target's breakers say now. A refusal counts as one rejected call, however often a plan asks.
pub(super) fn admit(
    ways: &mut [Way<'_>],
    context: &mut Context,
    target: &Target,
    now: Tick,
) -> Admission {
    let Some(way) = ways.iter_mut().find(|way| way.target == *target) else {
        return Admission::Refused(Duration::ZERO);
    };
    let Some(scopes) = &way.scopes else {
        return Admission::Refused(NO_ROOM);
    };
    let admission = Admission::of(scopes, now);
    let passes = matches!(admission, Admission::Ready | Admission::Probe);
    if way.refused.is_some() || passes {
        return admission;
    }
    match scopes.try_acquire(Duration::ZERO, now) {
        // It came free in this very moment.
        Ok(permit) => {
            permit.cancel(now);
            Admission::of(scopes, now)
        }
        Err(refused) => {
            context.because(&refused);
            way.refused = Some(refused);
            admission
        }
    }
}

impl Upstream {
    /// How this provider is reached; each of its keys is known by its place in the configuration.
    pub(super) fn new(name: &str, provider: &Provider) -> Result<Self, BuildError> {
        let keys = match &provider.credential {
            Credential::Caller => Keys::Caller,
            Credential::Keys(keys) => {
                let keys = keys.iter().enumerate().map(|(at, key)| {
                    let header = Self::key_value(provider.protocol, key.expose_secret());
                    let header = header.map_err(|_| BuildError::Key {
                        provider: name.to_owned(),
                        at,
                    })?;
                    Ok((at.to_string(), header))
                });
                Keys::Own(keys.collect::<Result<_, BuildError>>()?)
            }
        };
        Ok(Self {
            protocol: provider.protocol,
            base: provider.base_url.uri().clone(),
            keys,
            rules: provider.rules.as_str().into(),
        })
    }
}
