//! Calls that wait until a circuit closes: how one is put into the queue, and how its caller comes to his answer.
//!
//! ```text
//! Exhausted ── NewCall ──► Desk ── Taken ──► sender ── Call ──► Course ── answer ──► Desk ──► errand
//!               (202)    (a thread)         when a breaker                                    (GET)
//!                                           lets it pass
//! ```
//!
//! What is stored of a call holds no credential: it is sent with the gateway's own keys alone. Its caller is known by a
//! digest over the call's id and the credentials that he shows, so that nobody else finds it, and two calls of his have
//! nothing in common.

mod errand;
mod paper;
mod sender;
mod tenant;

use std::time::Duration;

use fuseline_llm::{Fallback, Protocol, RequestFacts};
use fuseline_store::{NewCall, Submitted};
use http::header::{HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use super::Proxy;
use super::context::Context;
use super::ingress::{Call, Lane, Origin};
use super::memory::Share;
use super::respond::{Body, dressed, json_answer};
use super::upstream::Keys;
use crate::config::Route;
pub(super) use errand::Errand;
use paper::Request;
pub(crate) use sender::send_on;
pub(super) use tenant::Tenant;

/// Where calls are fetched.
const PATH: &str = "/fuseline/queue/";
/// Longest model name by which calls are put in order.
const MAX_MODEL: usize = 512;
/// When it is worth asking again, in seconds.
const ASK_AGAIN: u64 = 2;

/// What a caller gets in the place of an answer.
pub(crate) struct Receipt {
    id: String,
}

impl Proxy {
    /// Puts a call into the queue; says in `context` why not where it cannot.
    pub(super) async fn enqueue(&self, call: &Call, context: &mut Context) -> Option<Receipt> {
        let (desk, route) = (self.desk(), self.route(call)?);
        let refused = match (desk, &call.tenant) {
            _ if !self.has_own_key(call) => Err("no target has a key of the gateway's own"),
            _ if call.body.len() as u64 > self.config.queue.max_entry => {
                Err("longer than queue.max_entry")
            }
            _ if call
                .facts
                .model()
                .is_some_and(|model| model.len() > MAX_MODEL) =>
            {
                Err("the model's name is too long")
            }
            (Some(desk), Some(tenant)) => Ok((desk, tenant)),
            _ => Err("the queue cannot be used"),
        };
        let (desk, tenant) = match refused {
            Ok(found) => found,
            Err(why) => {
                context.because(format_args!("not queued, {why}"));
                return None;
            }
        };
        let new = new_call(call, route, tenant)?;
        let id = new.id.clone();
        match desk.submit(new).await {
            Ok(Submitted::Kept) => {
                tracing::info!(request_id = context.id(), queued = id, "a call is queued");
                Some(Receipt { id })
            }
            Ok(Submitted::Known(id)) => Some(Receipt { id }),
            Ok(Submitted::Full) => {
                tracing::warn!(request_id = context.id(), "the queue is full");
                context.because("not queued, the queue is full");
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a call is not queued");
                context.because("not queued, the queue cannot be used");
                None
            }
        }
    }

    /// Whether a call could be sent without its caller.
    fn has_own_key(&self, call: &Call) -> bool {
        let stops = self.roster(call).map(|roster| roster.own_stops());
        stops.is_some_and(|mut stops| {
            stops.any(|stop| {
                let upstream = self.upstreams.get(&stop.target.provider);
                upstream.is_some_and(|upstream| matches!(upstream.keys, Keys::Own(_)))
            })
        })
    }

    /// The call that this was; none where it cannot be read, or no route serves it any more.
    fn queued_call(&self, request: &[u8], is_repeated: bool, share: Share) -> Option<Call> {
        let (request, body) = paper::unfold::<Request>(request)?;
        let protocol = Protocol::of_path(&request.path);
        let method = request.method.parse().ok()?;
        let facts = RequestFacts::read(protocol, &method, &request.path, &body);
        let routes = &self.config.routes;
        let route = routes
            .iter()
            .position(|route| route.model.as_str() == request.route)?;
        Some(Call {
            method,
            path: request.path,
            query: request.query,
            headers: paper::headers(&request.headers),
            replay: self.replay.keep(body.len()),
            body,
            facts,
            lane: Lane::Route(route),
            fallback: Fallback::On,
            budget: Duration::MAX,
            is_repeated,
            slot: None,
            tenant: None,
            origin: Origin::Queue,
            place: None,
            _share: share,
        })
    }
}

/// What is stored of a call.
fn new_call(call: &Call, route: &Route, tenant: &Tenant) -> Option<NewCall> {
    let id = tenant::new_id()?;
    let named = call.headers.get(paper::IDEMPOTENCY_KEY);
    let named = named.map(HeaderValue::as_bytes);
    let request = Request::of(call, route.model.as_str(), &id);
    Some(NewCall {
        lane: lane(route.model.as_str(), call.facts.model()),
        tenant: tenant.of_call(&id),
        name: named.map(|name| tenant.named(name)),
        request: paper::fold(&request, &call.body),
        id,
    })
}

/// Calls for one model along one route, which wait for the same breakers.
fn lane(route: &str, model: Option<&str>) -> String {
    json!([route, model]).to_string()
}

/// The answer to a call that waits: where its answer will be.
pub(super) fn queued(receipt: &Receipt, mut context: Context) -> Response<Body> {
    context.queued(&receipt.id);
    let body = json!({"id": receipt.id, "object": "queued_call", "status": "queued", "url": url(&receipt.id)});
    let mut response = json_answer(&body);
    *response.status_mut() = StatusCode::ACCEPTED;
    point(&receipt.id, response.headers_mut());
    dressed(response, context)
}

/// Says where the answer will be, and when to look.
fn point(id: &str, headers: &mut HeaderMap) {
    if let Ok(url) = HeaderValue::from_str(&url(id)) {
        headers.insert(LOCATION, url);
    }
    headers.insert(RETRY_AFTER, ASK_AGAIN.into());
}

fn url(id: &str) -> String {
    format!("{PATH}{id}")
}
