//! The gateway's configuration: what an operator may write, checked and typed.
//!
//! Later wins, key by key: built in < file < environment < flags. Each section's type stands in one file with the
//! function that reads it; that function is the only list of the section's keys, types and defaults.

mod authorities;
mod breaker;
mod cache;
mod check;
mod classify;
mod document;
mod doors;
mod entry;
mod finding;
mod heartbeats;
mod identity;
mod limits;
mod listener;
mod load;
mod model;
mod otlp;
mod overrides;
mod pattern;
mod pem;
mod pool;
mod provider;
mod queue;
mod reader;
mod reference;
mod route;
mod rules;
mod secret;
mod succession;
mod timeouts;
mod value;
mod webhook;
mod words;
mod zero;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fuseline_core::{Policy, PolicySpec, Scope, ScopeName};
use fuseline_llm::{Classifier, reasoning_first_token};
use fuseline_telemetry::Catalogue;
use secrecy::SecretString;
use tracing::level_filters::LevelFilter;

pub use authorities::Authorities;
pub use cache::CacheSpec;
pub use entry::{Entry, Origin};
pub use finding::{Finding, Report, Severity};
pub use heartbeats::Heartbeats;
pub use identity::Identity;
pub use limits::Limits;
pub use listener::Listener;
pub use load::{LogFormat, Sources};
pub use model::ModelRule;
pub use otlp::OtlpSpec;
pub use overrides::Overrides;
pub use pattern::Pattern;
pub use pool::PoolSpec;
pub use provider::{BaseUrl, Credential, Protocol, Provider};
pub use queue::{QueuePlace, QueueSpec};
pub use reference::{Key, keys, reference_page, template};
pub use route::{Elsewhere, OnExhausted, OnKind, Price, Route, Strategy, Target};
pub use timeouts::{TimeoutSpec, Timeouts};
pub use webhook::{Webhook, WebhookFormat, WebhookUrl};

/// Everything that `fuseline serve` runs by. Made by [`Sources::load`]; every part of it has been checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where callers connect.
    pub listen: SocketAddr,
    /// Where operators and scrapers connect.
    pub admin_listen: SocketAddr,
    /// What the admin listener asks for as `authorization: Bearer`; always there beyond loopback.
    pub admin_token: Option<SecretString>,
    /// The file that keeps breaker states; none = `"off"`.
    pub state: Option<PathBuf>,
    /// The Redis by which replicas act as one; its URL may hold a password.
    pub fleet: Option<SecretString>,
    /// What every key of the fleet in Redis begins with.
    pub fleet_prefix: String,
    /// How much is logged.
    pub log: LevelFilter,
    /// How lines of the log are written.
    pub log_format: LogFormat,
    /// Callers must show one of these, as `authorization: Bearer` or `x-api-key`; empty = nobody is asked.
    pub client_tokens: Vec<SecretString>,
    /// Certificate authorities that are trusted beside the public ones.
    pub authorities: Authorities,
    /// Sizes, counts and times that bound the process.
    pub limits: Limits,
    /// `[listener]`.
    pub listener: Listener,
    /// `[pool]`.
    pub pool: PoolSpec,
    /// Providers by name.
    pub providers: BTreeMap<String, Provider>,
    /// Each provider is served under `/<name>`, with the caller's own key: how the gateway runs without a file.
    pub pass_through: bool,
    /// Routes in the order written; [`Config::route`] picks one.
    pub routes: Vec<Route>,
    /// Settings by model, in the order written.
    pub models: Vec<ModelRule>,
    /// `[timeouts]`.
    pub timeouts: TimeoutSpec,
    /// `[heartbeats]`.
    pub heartbeats: Heartbeats,
    /// `[cache]`.
    pub cache: CacheSpec,
    /// `[queue]`.
    pub queue: QueueSpec,
    /// `[otlp]`.
    pub otlp: OtlpSpec,
    /// `[[webhooks]]`.
    pub webhooks: Vec<Webhook>,
    /// `[breaker]`.
    pub breaker: PolicySpec,
    rules: classify::Rules,
    entries: Vec<Entry>,
}

impl Config {
    /// What judges answers: the rules of `[[classify.rules]]` in the order written, then those that ship.
    pub fn classifier(&self) -> Arc<Classifier> {
        self.rules.classifier()
    }

    /// The route for a requested model: an exact name beats a glob, a longer literal beats a shorter one.
    pub fn route(&self, model: &str) -> Option<&Route> {
        let matching = self
            .routes
            .iter()
            .filter(|route| route.model.matches(model));
        matching.max_by_key(|route| route.model.rank())
    }

    /// The breaker settings of one model at one provider: built in < `[breaker]` < the provider's < each matching
    /// `[[models]]` in the order written. `model` is the name that the provider sees; none for the provider's own
    /// breaker and its keys'.
    pub fn policy(&self, provider: &str, model: Option<&str>) -> Policy {
        // Every layer was checked by itself and the core judges each key alone, so their sum is sound.
        Policy::new(&self.policy_spec(provider, model)).unwrap_or_default()
    }

    /// The same as written, for who lays something on top.
    pub(crate) fn policy_spec(&self, provider: &str, model: Option<&str>) -> PolicySpec {
        let mut spec = self.breaker.clone();
        if let Some(provider) = self.providers.get(provider) {
            spec = spec.overlaid(&provider.breaker);
        }
        for rule in self.rules_for(model) {
            spec = spec.overlaid(&rule.breaker);
        }
        spec
    }

    /// Every key with the value that holds, in the order of the alphabet; secrets are masked. Keys without a value, or
    /// that take one from another section, are left out.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The settings of the breaker of this name; none where no call can lead to it.
    pub(crate) fn policy_of(&self, name: &ScopeName) -> Option<Policy> {
        let model = name.part().filter(|_| name.scope() == Scope::Model);
        let policy = || self.policy(name.provider_name(), model);
        self.leads_to(name).then(policy)
    }

    /// Whether calls can lead to the breaker of this name.
    pub(crate) fn leads_to(&self, name: &ScopeName) -> bool {
        let (provider, part) = (name.provider_name(), name.part());
        let has_place = |keys: &Vec<_>| {
            let place = part.and_then(|part| part.parse::<usize>().ok());
            place.is_some_and(|place| place < keys.len())
        };
        let credential = self.providers.get(provider).map(|known| &known.credential);
        let is_known = match (name.scope(), credential) {
            (_, None) => false,
            (Scope::Key, Some(Credential::Keys(keys))) => has_place(keys),
            _ => true,
        };
        let mut targets = self.targets().map(|(_, target)| target);
        let is_led_to = |target: &Target| {
            // Where a target names no model, the caller may name any.
            let is_its_model = target
                .model
                .as_deref()
                .is_none_or(|model| part == Some(model));
            target.provider == provider && (name.scope() != Scope::Model || is_its_model)
        };
        is_known && (self.pass_through || targets.any(is_led_to))
    }

    /// Every target that is written anywhere, with its route.
    fn targets(&self) -> impl Iterator<Item = (&Route, &Target)> {
        self.routes.iter().flat_map(|route| {
            let detours = route.on.values().filter_map(OnKind::target);
            let last_resorts = route.on_exhausted.iter().filter_map(OnExhausted::target);
            let targets = route.targets.iter().chain(detours).chain(last_resorts);
            targets.map(move |target| (route, target))
        })
    }

    /// The names that may be labels of metrics: the providers, and the models that routes name at them or `[[models]]`
    /// at all.
    pub(crate) fn catalogue<'c>(&'c self) -> Catalogue {
        let named = |pattern: &'c Pattern| pattern.is_exact().then(|| pattern.as_str());
        let targets = self.targets().map(move |(route, target)| {
            let model = target.model.as_deref().or_else(|| named(&route.model));
            (target.provider.as_str(), model)
        });
        let providers = self.providers.keys().flat_map(move |provider| {
            let models = self.models.iter().map(move |rule| named(&rule.pattern));
            std::iter::once(None)
                .chain(models)
                .map(move |model| (provider.as_str(), model))
        });
        providers.chain(targets).collect()
    }

    /// The time limits where no provider, model or route says otherwise.
    pub(crate) fn usual_timeouts(&self) -> Timeouts {
        Timeouts::default().overlaid(&self.timeouts)
    }

    /// The time limits of one attempt, layered like [`Config::policy`], with the route's on top. A known reasoning
    /// model has a longer `first_token` than its provider unless something is written for it.
    pub fn timeouts(&self, provider: &str, model: Option<&str>, route: Option<&Route>) -> Timeouts {
        let of_provider = self
            .providers
            .get(provider)
            .map(|provider| &provider.timeouts);
        let mut timeouts = self.usual_timeouts();
        if let Some(of_provider) = of_provider {
            timeouts = timeouts.overlaid(of_provider);
        }
        if let Some(thinks) = model.and_then(reasoning_first_token) {
            timeouts.first_token = timeouts.first_token.max(thinks);
        }
        let of_models = self.rules_for(model).map(|rule| &rule.timeouts);
        let layers = of_models.chain(route.map(|route| &route.timeouts));
        layers.fold(timeouts, |under, over| under.overlaid(over))
    }

    /// The tokens that a target's model takes at once, as far as that is written: at the target, or in the last
    /// `[[models]]` that matches and says so. `model` is the name that the provider sees.
    pub fn context(&self, target: &Target, model: &str) -> Option<u32> {
        let of_models = self.rules_for(Some(model)).filter_map(|rule| rule.context);
        target.context.or_else(|| of_models.last())
    }

    fn rules_for<'a>(&'a self, model: Option<&'a str>) -> impl Iterator<Item = &'a ModelRule> {
        self.models
            .iter()
            .filter(move |rule| model.is_some_and(|model| rule.pattern.matches(model)))
    }
}
