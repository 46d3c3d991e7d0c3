//! What is written of a call and of its answer: one line of JSON, and then the body as it is, so that an operator can read it.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::headers::{CREDENTIALS, OURS};
use super::super::ingress::Call;
use super::super::upstream::without_key;

/// By which a provider knows a request that it has carried out already.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Parts of the names of headers that may carry a secret of somebody's, whatever it is for.
const SECRETIVE: [&str; 9] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passw",
    "secret",
    "session",
    "signature",
    "token",
];

/// What an SDK says of its own patience and repetitions, which end with the connection.
const OF_AN_SDK: &str = "x-stainless-";

/// What of an upstream's headers is kept: how the body is to be read, and by which name the provider knows the request.
static KEPT: [HeaderName; 3] = [
    CONTENT_TYPE,
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-request-id"),
];

/// A request, without its body.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Request {
    pub(super) route: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) headers: Vec<(String, String)>,
}

/// An answer, without its body.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

impl Request {
    /// What may be written of a call, under the name by which all its attempts go.
    pub(super) fn of(call: &Call, route: &str, id: &str) -> Self {
        let mut headers = call.headers.clone();
        let dropped: Vec<HeaderName> = headers
            .keys()
            .filter(|name| !is_written(name))
            .cloned()
            .collect();
        for name in dropped {
            headers.remove(name);
        }
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.entry(IDEMPOTENCY_KEY).or_insert(id);
        }
        Self {
            route: route.to_owned(),
            method: call.method.to_string(),
            path: call.path.clone(),
            query: call
                .query
                .as_deref()
                .map(|query| without_key(query).into_owned()),
            headers: texts(&headers),
        }
    }
}

impl Answer {
    pub(super) fn of(status: u16, headers: &HeaderMap) -> Self {
        let mut kept = headers.clone();
        let dropped: Vec<HeaderName> = kept
            .keys()
            .filter(|name| !KEPT.contains(name) && !name.as_str().starts_with(OURS))
            .cloned()
            .collect();
        for name in dropped {
            kept.remove(name);
        }
        Self {
            status,
            headers: texts(&kept),
        }
    }
}

/// Whether a header of a request may be written. The answer is not coded: nobody knows who will fetch it.
fn is_written(name: &HeaderName) -> bool {
    let text = name.as_str();
    let is_secretive = SECRETIVE.iter().any(|part| text.contains(part));
    let is_plain = !CREDENTIALS.contains(name) && !is_secretive && *name != ACCEPT_ENCODING;
    *name == IDEMPOTENCY_KEY || is_plain && !text.starts_with(OF_AN_SDK)
}

/// Headers as texts. One that is none is left out.
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).ok();
    headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), text(value)?)))
        .collect()
}

/// Texts as headers.
pub(super) fn headers(texts: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        Some((name.parse::<HeaderName>().ok()?, value))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in texts.iter().filter_map(header) {
        headers.append(name, value);
    }
    headers
}

/// Head and body as they are written.
pub(super) fn fold(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let mut folded = serde_json::to_vec(head).unwrap_or_default();
    folded.push(b'\n');
    folded.extend_from_slice(body);
    folded
}

/// Head and body of what was written; none where it cannot be read.
pub(super) fn unfold<T: DeserializeOwned>(folded: &[u8]) -> Option<(T, Bytes)> {
    let at = folded.iter().position(|byte| *byte == b'\n')?;
    let (head, body) = folded.split_at_checked(at)?;
    let head = serde_json::from_slice(head).ok()?;
    Some((head, Bytes::copy_from_slice(body.get(1..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_written() {
        let is = |name: &str| is_written(&name.parse().unwrap());
        for written in [
            "content-type",
            "anthropic-version",
            "anthropic-beta",
            "openai-organization",
            "idempotency-key",
            "x-title",
        ] {
            assert!(is(written), "{written}");
        }
        for secret in [
            "authorization",
            "x-api-key",
            "helicone-auth",
            "cookie",
            "x-amz-security-token",
            "x-my-password",
            "accept-encoding",
            "x-stainless-read-timeout",
        ] {
            assert!(!is(secret), "{secret}");
        }
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let answer = Answer {
            status: 200,
            headers: vec![
                ("content-type".to_owned(), "text/plain".to_owned()),
                ("x-request-id".to_owned(), "gr\u{fc}n".to_owned()),
            ],
        };
        let body = b"{\n\xff\0}\n";
        let (head, found) = unfold::<Answer>(&fold(&answer, body)).unwrap();
        assert_eq!((&head, &found[..]), (&answer, &body[..]));
        assert_eq!(texts(&headers(&answer.headers)), answer.headers);
        for odd in [&b""[..], b"{}", b"{}\n", b"\n", b"garbage\nbody"] {
            assert!(unfold::<Answer>(odd).is_none());
        }
    }
}
