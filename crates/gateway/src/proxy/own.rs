//! What the gateway answers from its own knowledge: that it is there, and which models it serves.

use fuseline_llm::Protocol;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::respond::{Body, json_answer};
use crate::config::{Config, Route, Target};

const MODEL_LISTS: [&str; 2] = ["/v1/models", "/v1beta/models"];

/// `GET /`, for whoever wants to know whether somebody is there; it asks for no token.
pub(super) fn greeting(request: &Request<Incoming>) -> Option<Response<Body>> {
    let asked = is_read(request) && request.uri().path() == "/";
    asked.then(|| json_answer(&json!({"name": "fuseline", "version": env!("CARGO_PKG_VERSION")})))
}

/// `GET /v1/models`, which is about the routes and not about any provider.
pub(super) fn model_list(
    config: &Config,
    protocol: Protocol,
    request: &Request<Incoming>,
) -> Option<Response<Body>> {
    if config.pass_through || !is_read(request) || !MODEL_LISTS.contains(&request.uri().path()) {
        return None;
    }
    Some(json_answer(&models(config, protocol)))
}

fn is_read(request: &Request<Incoming>) -> bool {
    request.method() == Method::GET || request.method() == Method::HEAD
}

/// The routes of a dialect, as its SDK expects a list of models.
fn models(config: &Config, dialect: Protocol) -> Value {
    let routes = config
        .routes
        .iter()
        .filter(|route| protocol_of(config, route) == Some(dialect));
    let names: Vec<&str> = routes.map(|route| route.model.as_str()).collect();
    match dialect {
        Protocol::Anthropic => {
            let epoch = "1970-01-01T00:00:00Z";
            let entry = |name: &&str| json!({"type": "model", "id": name, "display_name": name, "created_at": epoch});
            let list: Vec<_> = names.iter().map(entry).collect();
            json!({"data": list, "has_more": false, "first_id": names.first(), "last_id": names.last()})
        }
        Protocol::Gemini => {
            let entry =
                |name: &&str| json!({"name": format!("models/{name}"), "displayName": name});
            json!({"models": names.iter().map(entry).collect::<Vec<_>>()})
        }
        _ => {
            let entry = |name: &&str| json!({"id": name, "object": "model", "created": 0, "owned_by": "fuseline"});
            json!({"object": "list", "data": names.iter().map(entry).collect::<Vec<_>>()})
        }
    }
}

/// All targets of a route speak one dialect.
pub(super) fn protocol_of(config: &Config, route: &Route) -> Option<Protocol> {
    let Target { provider, .. } = route.targets.first()?;
    config
        .providers
        .get(provider)
        .map(|provider| provider.protocol)
}
