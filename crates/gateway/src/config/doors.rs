//! Whom the listeners let in, where the fleet is, and where the queue: judged on what holds once flags are laid over the file.

use std::net::SocketAddr;

use fuseline_store::FleetConfig;
use secrecy::ExposeSecret;

use super::check::Survey;
use super::document::Document;
use super::{Config, Credential, OnExhausted, Overrides, Provider, QueuePlace, Route};

/// A listener that others can reach asks who they are, or says that it does not.
pub(super) fn check(
    config: &Config,
    survey: &Survey,
    over: &Overrides,
    document: &mut Document<'_>,
) {
    const REACHABLE: &str = "can be reached by others without a token";
    let (listen, admin_listen) = (config.listen, config.admin_listen);
    let key = over.listen.map_or("listen", |_| "--listen");
    let admin_key = over
        .admin_listen
        .map_or("admin_listen", |_| "--admin-listen");
    let (shown, admin_shown) = (format!("\"{listen}\""), format!("\"{admin_listen}\""));
    if !is_loopback(listen) && !survey.allow_anonymous && !document.is_written("client_tokens") {
        let remedy = "set client_tokens, or allow_anonymous = true, or listen on 127.0.0.1";
        document.mistake_of(key, &shown, REACHABLE, remedy);
    }
    if document.is_written("client_tokens") && survey.allow_anonymous {
        document.mistake(
            "allow_anonymous",
            "contradicts client_tokens",
            "keep one of the two",
        );
    }
    if !is_loopback(admin_listen) && !document.is_written("admin_token") {
        document.mistake_of(
            admin_key,
            &admin_shown,
            REACHABLE,
            "set admin_token, or listen on 127.0.0.1",
        );
    }
    if listen == admin_listen && listen.port() != 0 {
        document.mistake_of(
            admin_key,
            &admin_shown,
            "is taken by listen",
            "choose another port",
        );
    }
}

/// The fleet's address is a Redis URL.
pub(super) fn fleet(config: &Config, document: &mut Document<'_>) {
    if config
        .fleet_of(0)
        .is_some_and(|fleet| fleet.check().is_err())
    {
        document.secret_mistake(
            "fleet",
            "is no Redis URL",
            "write redis://user:password@host:port/database, or rediss:// for TLS; several host:port with commas between them",
        );
    }
}

/// Calls that wait have a place, and can be sent without their callers.
pub(super) fn queue(config: &Config, over: &Overrides, document: &mut Document<'_>) {
    let (store, has_state) = (config.queue.store, config.state.is_some());
    match store {
        Some(QueuePlace::Fleet) if config.fleet.is_none() => document.mistake(
            "queue.store",
            "has no fleet",
            "set fleet, or write store = \"state\"",
        ),
        Some(QueuePlace::State) if !has_state => document.mistake(
            "queue.store",
            "has no state file",
            "set state to a file, or write store = \"fleet\"",
        ),
        _ => {}
    }
    let is_homeless = store.is_none() && !has_state && config.fleet.is_none();
    for (at, route) in config.routes.iter().enumerate() {
        let steps = &route.on_exhausted;
        let Some(step) = steps.iter().position(|step| *step == OnExhausted::Queue) else {
            continue;
        };
        let key = format!("routes[{at}].on_exhausted[{step}]");
        if is_homeless {
            let state = over.state.as_ref().map_or("state", |_| "--state");
            let remedy = format!("set {state} to a file, or fleet");
            document.mistake(&key, "has no place where calls could wait", remedy);
        }
        if !has_own_key(config, route) {
            let remedy =
                "give one of the route's providers an api_key; a caller's own key is never stored";
            document.mistake(
                &key,
                "has no key by which calls could be sent later",
                remedy,
            );
        }
    }
}

/// Whether one of the route's targets is called with a key of the gateway's own, as far as they could be read.
fn has_own_key(config: &Config, route: &Route) -> bool {
    let is_callers = |provider: &Provider| matches!(provider.credential, Credential::Caller);
    let mut providers = route
        .targets
        .iter()
        .map(|target| config.providers.get(&target.provider));
    route.targets.is_empty() || providers.any(|found| !found.is_some_and(is_callers))
}

impl Config {
    /// Where this replica meets the others; none where it stands alone.
    pub(crate) fn fleet_of(&self, replica: u64) -> Option<FleetConfig> {
        let url = self.fleet.as_ref()?;
        let authorities = &self.authorities.pem;
        Some(FleetConfig {
            url: url.expose_secret().to_owned(),
            authorities: (!authorities.is_empty()).then(|| authorities.as_bytes().to_vec()),
            prefix: self.fleet_prefix.clone(),
            replica,
        })
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
