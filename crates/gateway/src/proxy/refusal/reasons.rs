//! Every reason of the gateway's own for which a request gets no answer of a provider.

use std::time::Duration;

use fuseline_llm::Protocol;
use http::StatusCode;

use super::{Cause, Line, PATIENCE, Refusal, Retry};

impl Refusal {
    pub(crate) fn unauthorized() -> Self {
        let hint =
            "this gateway asks for a client token, as `authorization: Bearer` or `x-api-key`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", hint)
    }

    pub(crate) fn upgrade() -> Self {
        let hint = "this gateway does not switch protocols; use plain HTTP requests";
        Self::new(StatusCode::NOT_IMPLEMENTED, "upgrade_unsupported", hint)
    }

    /// A provider that answers it sends back what it got, the gateway's key included.
    pub(crate) fn trace() -> Self {
        let hint = "this gateway does not pass TRACE on";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", hint)
    }

    pub(crate) fn too_large(limit: u64) -> Self {
        let hint = format!(
            "the request is longer than {limit} bytes; `max_body` in the gateway's configuration sets the limit"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", hint)
    }

    pub(crate) fn cut_upload() -> Self {
        let hint = "the request's body did not arrive whole";
        Self::new(StatusCode::BAD_REQUEST, "bad_request", hint)
    }

    /// With this target's address or headers it is no request any more.
    pub(crate) fn unsendable() -> Self {
        let hint = "the request cannot be sent to its target: its path or its headers are too long";
        Self::new(StatusCode::BAD_REQUEST, "bad_request", hint)
    }

    pub(crate) fn late_upload() -> Self {
        let hint = "the request's body came too slowly; `listener.upload_idle` and `listener.upload_timeout` in the gateway's configuration set the limits";
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", hint)
    }

    pub(crate) fn misframed(what: &str) -> Self {
        let hint = format!("the request {what}");
        Self {
            line: Line::Closed,
            ..Self::new(StatusCode::BAD_REQUEST, "bad_request", hint)
        }
    }

    /// Its model cannot be read.
    pub(crate) fn coded() -> Self {
        let hint = "the request's body is compressed, and a route reads its model there; send it without content-encoding";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "unsupported_encoding", hint)
    }

    pub(crate) fn too_many_calls() -> Self {
        Self::busy("all of `listener.max_calls` are under way")
    }

    pub(crate) fn no_memory() -> Self {
        Self::busy("`listener.body_memory` is used up")
    }

    fn busy(why: &str) -> Self {
        let message = format!("the gateway is busy: {why}; retry in 1 s");
        Self {
            retry: Retry::After(Duration::from_secs(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "gateway_busy", message)
        }
    }

    pub(crate) fn shutting_down() -> Self {
        let message = "the gateway was stopped before there was an answer; retry in 1 s";
        Self {
            retry: Retry::After(Duration::from_secs(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message)
        }
    }

    /// A steering header says what cannot be. Its value is the caller's own and is not repeated.
    pub(crate) fn bad_header(name: &str, form: &str) -> Self {
        let hint = format!("the header {name} cannot be read; write {form}");
        Self::new(StatusCode::BAD_REQUEST, "bad_request", hint)
    }

    pub(crate) fn other_dialect(theirs: Protocol, route: &str, routes: Protocol) -> Self {
        let hint = format!(
            "route `{route}` speaks {routes}, and this is a call in {theirs}; use the {routes} SDK for it"
        );
        Self::new(StatusCode::BAD_REQUEST, "wrong_dialect", hint)
    }

    pub(crate) fn no_route(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("no route serves {what}; GET /v1/models lists the routes"),
        )
    }

    pub(crate) fn no_path(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("nothing is served at {path}"),
        )
    }

    /// No attempt was made, since every target is out.
    pub(crate) fn circuit_open(cause: Cause, what: &str, why: &str, wait: Duration) -> Self {
        let status = match cause {
            Cause::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Cause::Open => StatusCode::SERVICE_UNAVAILABLE,
        };
        let seconds = wait.as_millis().div_ceil(1_000).max(1);
        let message = format!("no target of {what} takes calls now ({why}); retry in {seconds} s");
        Self {
            retry: Retry::After(wait),
            ..Self::new(status, "circuit_open", message)
        }
    }

    /// Attempts were made, and none brought a whole answer.
    pub(crate) fn exhausted(reason: &str, why: &str) -> Self {
        let message = format!("no target gave a whole answer ({reason}: {why})");
        Self {
            retry: Retry::Never,
            ..Self::new(StatusCode::GATEWAY_TIMEOUT, "exhausted", message)
        }
    }

    /// Whatever the id is, it is none of this caller's.
    pub(crate) fn no_queued_call() -> Self {
        let hint = "no queued call of yours has this id; it may be another's, or forgotten, or the credentials are not those it was sent with";
        Self::new(StatusCode::NOT_FOUND, "not_found", hint)
    }

    pub(crate) fn queue_expired() -> Self {
        let hint = "the call has waited for as long as `queue.expires` in the gateway's configuration allows, and is not sent any more";
        Self::new(StatusCode::GONE, "queue_expired", hint)
    }

    pub(crate) fn queue_away() -> Self {
        let hint = "the queue cannot be read at present; what is in it waits";
        Self {
            retry: Retry::After(PATIENCE),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "queue_unavailable", hint)
        }
    }

    /// The answer to a queued call cannot be kept.
    pub(crate) fn result_too_long(limit: u64) -> Self {
        let hint = format!(
            "the answer is longer than {limit} bytes; `queue.max_entry` in the gateway's configuration sets the limit"
        );
        Self {
            retry: Retry::Never,
            ..Self::new(StatusCode::BAD_GATEWAY, "result_too_long", hint)
        }
    }

    /// The last target pointed elsewhere. Only configured hosts are called, and callers do not learn of others.
    pub(crate) fn redirected(why: &str) -> Self {
        let message = format!("a target answered with a redirect, which is not followed ({why})");
        Self {
            retry: Retry::Never,
            ..Self::new(StatusCode::BAD_GATEWAY, "redirect", message)
        }
    }
}

/// What is said of a request whose head could not be read, by the status that it is answered with. Whose dialect it would
/// have been is not known; most callers read this one.
pub(crate) fn unreadable(status: u16) -> Option<String> {
    let status = StatusCode::from_u16(status).ok()?;
    let (code, hint) = match status {
        StatusCode::BAD_REQUEST => ("bad_request", "the request cannot be read as HTTP"),
        StatusCode::URI_TOO_LONG => ("uri_too_long", "the request's path is too long"),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            "head_too_large",
            "the request's head has more than 100 headers or 32 KiB",
        ),
        _ => return None,
    };
    let refusal = Refusal::new(status, code, hint);
    Some(refusal.body(Protocol::OpenAi).to_string())
}
