//! `Guards`: the breakers behind each target, and the settings they are made with.

use std::collections::BTreeMap;

use fuseline_core::{
    Breaker, Policies, Policy, Registry, RegistryConfig, RegistryError, ScopeName, Scopes, State,
    Tick,
};
use fuseline_llm::Target;

use crate::config::Config;

/// The gateway's breakers.
pub(crate) struct Guards {
    registry: Registry,
    providers: BTreeMap<String, Policy>,
}

impl Guards {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        let limits = RegistryConfig {
            max_breakers: config.limits.max_breakers,
            seed,
            ..RegistryConfig::default()
        };
        Self::over(Registry::new(limits), config)
    }

    /// Over the breakers that there are.
    pub(crate) fn over(registry: Registry, config: &Config) -> Self {
        let policies = config
            .providers
            .keys()
            .map(|name| (name.clone(), config.policy(name, None)));
        Self {
            registry,
            providers: policies.collect(),
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The breakers that a call to this target touches.
    pub(crate) fn scopes(
        &self,
        config: &Config,
        target: &Target,
        now: Tick,
    ) -> Result<Scopes, RegistryError> {
        let provider = self.policy(config, target.provider(), None);
        let model = self.policy(config, target.provider(), Some(target.model()));
        let policies = Policies {
            key: provider.clone(),
            provider,
            model,
        };
        let [of_provider, of_model, of_key] = target.scopes();
        Scopes::new(
            &self.registry,
            of_provider,
            Some(of_model),
            Some(of_key),
            policies,
            now,
        )
    }

    /// The breaker that is written like this; one of a provider or of a model is made if need be.
    pub(crate) fn breaker(&self, config: &Config, name: &str, now: Tick) -> Option<Breaker> {
        let breakers = self.registry.breakers();
        let found = breakers
            .into_iter()
            .find(|breaker| breaker.name().to_string() == name);
        found.or_else(|| {
            let (scope, policy) = self.providers.keys().find_map(|provider| {
                let model = name.strip_prefix(provider.as_str())?;
                if model.is_empty() {
                    let policy = self.policy(config, provider, None);
                    return Some((ScopeName::provider(provider), policy));
                }
                let model = model.strip_prefix('/').filter(|model| !model.is_empty())?;
                let policy = self.policy(config, provider, Some(model));
                Some((ScopeName::model(provider, model), policy))
            })?;
            self.registry.get_breaker(&scope, &policy, now).ok()
        })
    }

    /// The settings of a provider's own breaker and its keys', or of one of its models.
    fn policy(&self, config: &Config, provider: &str, model: Option<&str>) -> Policy {
        let has_rule = |model: &&str| config.models.iter().any(|rule| rule.pattern.matches(model));
        match model.filter(has_rule) {
            Some(model) => config.policy(provider, Some(model)),
            None => self.providers.get(provider).cloned().unwrap_or_default(),
        }
    }
}

impl Guards {
    /// The worst state among the breakers of a provider's model, whatever its keys.
    pub(crate) fn state_of_model(&self, provider: &str, model: &str, now: Tick) -> State {
        let names = [
            ScopeName::provider(provider),
            ScopeName::model(provider, model),
        ];
        let found = names
            .iter()
            .filter_map(|name| self.registry.find_breaker(name));
        worst(found.map(|breaker| breaker.state(now)))
    }
}

/// The worst state among the breakers of a target, as a caller should know it.
pub(crate) fn state_of(scopes: &Scopes, now: Tick) -> State {
    worst(scopes.states(now))
}

fn worst(states: impl Iterator<Item = State>) -> State {
    states
        .max_by_key(|state| severity(*state))
        .unwrap_or(State::Closed)
}

const fn severity(state: State) -> u8 {
    match state {
        State::Closed => 0,
        State::ForcedClosed => 1,
        State::Degraded => 2,
        State::HalfOpen => 3,
        State::Open => 4,
        State::ForcedOpen => 5,
    }
}
