//! `Errand`: a caller comes for the answer to a call of his that waits, or takes the call back.

use std::sync::Arc;

use fuseline_llm::Protocol;
use fuseline_store::{Found, Stage};
use http::header::HeaderName;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use super::super::Proxy;
use super::super::context::Context;
use super::super::refusal::Refusal;
use super::super::respond::{Body, dressed, json_answer, refused, whole};
use super::paper::{self, Answer};
use super::{PATH, Tenant, point, url};
use crate::queue::DeskError;

/// How far a call is, for whoever looks at headers alone.
const STATUS: HeaderName = HeaderName::from_static("x-fuseline-queue");

/// What is asked about a call that waits.
pub(crate) struct Errand {
    id: String,
    wish: Wish,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Fetch,
    Remove,
}

impl Errand {
    /// The errand that this request is, if it is one.
    pub(crate) fn of(request: &Request<Incoming>) -> Option<Self> {
        let path = request.uri().path();
        // SDKs whose base URL ends in /v1 write that before every path.
        let id = path
            .strip_prefix("/v1")
            .unwrap_or(path)
            .strip_prefix(PATH)?;
        let wish = match *request.method() {
            Method::GET | Method::HEAD => Wish::Fetch,
            Method::DELETE => Wish::Remove,
            _ => return None,
        };
        let id = id.to_owned();
        Some(Self { id, wish })
    }

    /// Runs it for this tenant.
    pub(crate) async fn run(
        self,
        proxy: &Arc<Proxy>,
        tenant: Option<&Tenant>,
        protocol: Protocol,
        mut context: Context,
    ) -> Response<Body> {
        context.is_errand();
        let (Some(desk), Some(tenant)) = (proxy.desk(), tenant) else {
            return refused(Refusal::queue_away(), protocol, context);
        };
        let (id, owner) = (self.id.clone(), tenant.of_call(&self.id));
        let told: Result<Result<Response<Body>, Refusal>, DeskError> = match self.wish {
            Wish::Fetch => {
                let found = desk.ask(move |queue, now| Ok((queue.find(&id, &owner, now)?, now)));
                found.await.map(|(found, now)| match found {
                    Some(found) => self.shown(found, now),
                    None => Err(Refusal::no_queued_call()),
                })
            }
            Wish::Remove => {
                let removed = desk.ask(move |queue, now| queue.remove(&id, &owner, now));
                removed.await.map(|is_removed| match is_removed {
                    true => Ok(self.status("removed", StatusCode::OK)),
                    false => Err(Refusal::no_queued_call()),
                })
            }
        };
        // The desk has said what is wrong.
        match told.unwrap_or_else(|_| Err(Refusal::queue_away())) {
            Ok(response) => {
                // What is told of the call's own sending is told last.
                let own = response.headers().clone();
                let mut response = dressed(response, context);
                response.headers_mut().extend(own);
                response
            }
            Err(refusal) => refused(refusal, protocol, context),
        }
    }

    fn status(&self, status: &'static str, code: StatusCode) -> Response<Body> {
        let body =
            json!({"id": self.id, "object": "queued_call", "status": status, "url": url(&self.id)});
        let mut response = json_answer(&body);
        *response.status_mut() = code;
        mark(status, response)
    }

    fn shown(&self, found: Found, now: u64) -> Result<Response<Body>, Refusal> {
        let left = found.ends_ms.saturating_sub(now);
        Ok(match found.stage {
            Stage::Done { result } => match paper::unfold::<Answer>(&result) {
                Some((answer, body)) => {
                    let mut response = Response::new(whole(body));
                    let status = StatusCode::from_u16(answer.status);
                    *response.status_mut() = status.unwrap_or(StatusCode::BAD_GATEWAY);
                    *response.headers_mut() = paper::headers(&answer.headers);
                    mark("done", response)
                }
                None => return Err(Refusal::queue_away()),
            },
            Stage::Expired => return Err(Refusal::queue_expired()),
            Stage::Waiting { ahead } => self.under_way("queued", Some(ahead), found.sends, left),
            Stage::Sending => self.under_way("sending", None, found.sends, left),
        })
    }

    fn under_way(
        &self,
        status: &'static str,
        ahead: Option<u64>,
        sends: u32,
        left: u64,
    ) -> Response<Body> {
        let body = json!({
            "id": self.id, "object": "queued_call", "status": status, "url": url(&self.id),
            "ahead": ahead, "sends": sends, "expires_in_ms": left,
        });
        let mut response = json_answer(&body);
        *response.status_mut() = StatusCode::ACCEPTED;
        point(&self.id, response.headers_mut());
        mark(status, response)
    }
}

fn mark(status: &'static str, mut response: Response<Body>) -> Response<Body> {
    let status = http::HeaderValue::from_static(status);
    response.headers_mut().insert(STATUS, status);
    response
}
