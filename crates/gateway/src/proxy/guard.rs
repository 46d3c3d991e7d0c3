//! `Guards`: the breakers behind each target, and the settings they are made with.

use std::collections::BTreeMap;

use fuseline_core::{
    Policies, Policy, Registry, RegistryConfig, RegistryError, ScopeName, Scopes, State, Tick,
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
        let policies = config
            .providers
            .keys()
            .map(|name| (name.clone(), config.policy(name, None)));
        Self {
            registry: Registry::new(limits),
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
        let provider = self
            .providers
            .get(target.provider())
            .cloned()
            .unwrap_or_default();
        let of_model = config
            .models
            .iter()
            .any(|rule| rule.pattern.matches(target.model()));
        let model = if of_model {
            config.policy(target.provider(), Some(target.model()))
        } else {
            provider.clone()
        };
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
}

impl Guards {
    /// The worst state among the breakers of a provider's model, whatever its keys.
    pub(crate) fn state_of_model(&self, provider: &str, model: &str, now: Tick) -> State {
        let names = [
            ScopeName::provider(provider),
            ScopeName::model(provider, model),
        ];
        worst(&self.registry, &names, now)
    }
}

/// The worst state among the breakers of a target, as a caller should know it.
pub(crate) fn state_of(registry: &Registry, target: &Target) -> State {
    worst(registry, &target.scopes(), registry.now())
}

fn worst(registry: &Registry, names: &[ScopeName], now: Tick) -> State {
    let states = names
        .iter()
        .filter_map(|name| registry.find_breaker(name))
        .map(|breaker| breaker.state(now));
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
