//! How a proxy under one configuration takes over from the one under the last: what is known of breakers, targets and
//! callers goes on; what is written in the configuration is made anew. Calls in flight stay with the old one.

use std::sync::Arc;

use fuseline_core::{Scope, ScopeName};
use secrecy::ExposeSecret as _;

use super::cache::Cache;
use super::client::Clients;
use super::guard::Guards;
use super::roster::Roster;
use super::upstream::Upstream;
use super::{BuildError, Proxy, crypto, places, wants_cache};
use crate::config::{Config, Credential};

impl Proxy {
    /// The one that comes after this one. Nothing changes yet: see [`take_over`](Self::take_over).
    pub(crate) fn successor(&self, config: Config) -> Result<Self, BuildError> {
        let is_same_wire = config.authorities.certificates == self.config.authorities.certificates
            && config.pool == self.config.pool;
        let clients = if is_same_wire {
            self.clients.clone()
        } else {
            Clients::new(crypto(), &config.authorities.certificates, config.pool)?
        };
        let upstreams = Upstream::all(&config)?;
        // From here on nothing can fail: a bound of a target holds for its calls in flight as well.
        let mut rosters = Roster::all(&config);
        for (roster, model) in rosters.iter_mut().zip(lanes(&config)) {
            let same = lanes(&self.config).position(|other| other == model);
            if let Some(old) = same.and_then(|at| self.rosters.get(at)) {
                roster.inherit(old);
            }
        }
        let kept = self.cache.as_ref();
        let kept = kept.filter(|_| config.cache == self.config.cache);
        let cache = || kept.map_or_else(|| Arc::new(Cache::new(&config.cache)), Arc::clone);
        Ok(Self {
            upstreams,
            guards: Guards::over(self.registry().clone(), &config),
            clients,
            rosters,
            cache: wants_cache(&config).then(cache),
            has_queue: crate::queue::is_wanted(&config),
            replay: self.replay.with(&config.limits),
            uploads: self.uploads.with(&config),
            places: if config.listener.max_calls == self.config.listener.max_calls {
                Arc::clone(&self.places)
            } else {
                places(&config)
            },
            classifier: config.classifier(),
            lasting: self.lasting.clone(),
            config: Arc::new(config),
        })
    }

    /// Breakers and metrics follow this configuration, which comes after `old`.
    pub(crate) fn take_over(&self, old: &Config) {
        for breaker in self.registry().breakers() {
            if self.is_other_key(breaker.name(), old) {
                self.registry().remove(breaker.name());
            }
        }
        self.adjust(old);
        self.metrics().set_catalogue(self.config.catalogue());
    }

    /// Changes the settings of breakers where these are others than under `old`, and forgets those to which calls led then
    /// and do not lead any more. All others stay as they are. Calls that began under `old` may make one as it was then, so
    /// this is done until the last of them is over.
    pub(crate) fn adjust(&self, old: &Config) {
        let now = self.registry().now();
        for breaker in self.registry().breakers() {
            let name = breaker.name();
            match self.config.policy_of(name) {
                Some(policy) if policy != breaker.policy() => breaker.reconfigure(policy, now),
                Some(_) => {}
                None if old.leads_to(name) => self.registry().remove(name),
                None => {}
            }
        }
    }

    /// Whether another key than before stands where this breaker's key stood, or whose keys they are has changed.
    fn is_other_key(&self, name: &ScopeName, old: &Config) -> bool {
        if name.scope() != Scope::Key {
            return false;
        }
        let credential = |config: &Config| {
            let provider = config.providers.get(name.provider_name())?;
            let keys = match &provider.credential {
                Credential::Caller => return Some(None),
                Credential::Keys(keys) => keys,
            };
            let place: usize = name.part()?.parse().ok()?;
            Some(Some(keys.get(place)?.expose_secret().to_owned()))
        };
        credential(old) != credential(&self.config)
    }
}

/// What each roster is of: a route's model, or a provider's name.
fn lanes(config: &Config) -> impl Iterator<Item = &str> {
    let providers = config.providers.keys().map(String::as_str);
    let routes = config.routes.iter().map(|route| route.model.as_str());
    let (providers, routes) = match config.pass_through {
        true => (Some(providers), None),
        false => (None, Some(routes)),
    };
    let providers = providers.into_iter().flatten();
    providers.chain(routes.into_iter().flatten())
}
