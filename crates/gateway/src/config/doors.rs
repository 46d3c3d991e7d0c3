//! Whom the listeners let in, and where the fleet is: judged on what holds once flags are laid over the file.

use std::net::SocketAddr;

use secrecy::ExposeSecret;

use super::check::Survey;
use super::document::Document;
use super::{Config, Overrides};

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
    let url = config.fleet.as_ref().map(ExposeSecret::expose_secret);
    if url.is_some_and(|url| !url.starts_with("redis://") && !url.starts_with("rediss://")) {
        document.secret_mistake(
            "fleet",
            "is no Redis URL",
            "write redis://host:port, or rediss:// for TLS",
        );
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
