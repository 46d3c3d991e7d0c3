//! What an answer's head says: whether it is one, what its body is, and how it is to be read.

use fuseline_llm::{Dialect, Framing, Shape};
use http::header::{HeaderMap, HeaderName};
use http::{StatusCode, Version, response};
use hyper::ext::ReasonPhrase;

use super::headers;

/// The head as the caller may see it.
pub(crate) fn for_the_caller(mut head: response::Parts) -> response::Parts {
    head.version = Version::HTTP_11;
    let reason = head.extensions.remove::<ReasonPhrase>();
    head.extensions.clear();
    reason.map(|reason| head.extensions.insert(reason));
    headers::strip_answer(&mut head.headers);
    headers::unbuffer_stream(&mut head.headers);
    head
}

/// Whether a caller gets such an answer whatever its body holds.
pub(crate) fn is_good(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::NOT_MODIFIED
}

/// Whether this is nothing that a caller may get: another address to call, which would take his key along, or another
/// protocol to speak.
pub(crate) fn is_no_answer(status: StatusCode) -> bool {
    status.is_informational() || is_redirect(status)
}

/// Whether a status points elsewhere.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    status.is_redirection() && status != StatusCode::NOT_MODIFIED
}

/// How the events of an answer are told apart; none where it is no stream, whatever was asked for. What says nothing of
/// itself is what was asked for.
pub(crate) fn framing(content_type: &str, dialect: Dialect, asked: Shape) -> Option<Framing> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    match (Framing::of_content_type(content_type), dialect) {
        (Some(Framing::JsonArray), Dialect::Gemini) if asked == Shape::Stream => {
            Some(Framing::JsonArray)
        }
        (Some(Framing::JsonArray), _) => None,
        (Some(framing), _) => Some(framing),
        (None, _) if is_vague(essence) && asked == Shape::Stream => Some(dialect.usual_framing()),
        (None, _) => None,
    }
}

fn is_vague(content_type: &str) -> bool {
    ["", "text/plain", "application/octet-stream"]
        .iter()
        .any(|vague| content_type.eq_ignore_ascii_case(vague))
}

pub(crate) fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
