//! An error inside a success answer, with the status that it deserves: no SDK would see the error otherwise.

use fuseline_core::Kind;
use fuseline_llm::{Protocol, Verdict};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{StatusCode, response};
use hyper::ext::ReasonPhrase;

/// A plain answer whose error names its status gets it. The body stays as it came.
pub(crate) fn with_its_own_status(mut head: response::Parts, verdict: &Verdict) -> response::Parts {
    if let (true, Some(status)) = (head.status.is_success(), named(verdict)) {
        set(&mut head, status);
    }
    head
}

/// The head over an error that came as a stream's event, before the caller saw any of it: its data is the answer.
pub(crate) fn told_as_answer(head: &mut response::Parts, verdict: &Verdict, protocol: Protocol) {
    let usual = || usual(verdict.kind.unwrap_or(Kind::ServerError), protocol);
    set(head, named(verdict).unwrap_or_else(usual));
    head.headers.remove(CONTENT_LENGTH);
    head.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

fn named(verdict: &Verdict) -> Option<StatusCode> {
    let status = verdict.evidence.status().filter(|status| *status >= 400);
    StatusCode::from_u16(status?).ok()
}

/// The status under which providers send a failure of this kind.
fn usual(kind: Kind, protocol: Protocol) -> StatusCode {
    let status = match kind {
        Kind::Auth => 401,
        Kind::Permission => 403,
        Kind::NotFound => 404,
        Kind::RateLimit | Kind::QuotaExhausted => 429,
        Kind::BadRequest | Kind::ContextLength | Kind::ContentPolicy => 400,
        Kind::Overloaded if protocol == Protocol::Anthropic => 529,
        Kind::Overloaded => 503,
        Kind::Timeout | Kind::StreamStall => 504,
        _ => 500,
    };
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn set(head: &mut response::Parts, status: StatusCode) {
    head.status = status;
    head.extensions.remove::<ReasonPhrase>();
}
