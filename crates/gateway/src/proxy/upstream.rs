//! One attempt on the wire: the request as its target wants it, under its time limits, and what came back.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use fuseline_core::{Clock, Tick};
use fuseline_llm::{
    Attempt, Evidence, Fault, Head, Operation, Protocol, RequestFacts, Shape, Verdict,
};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri, Version, response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use tokio::time::{Instant, timeout_at};

use super::address;
use super::client::{Pool, Proven, fault};
use super::headers;
use super::ingress::Call;

/// A plain answer up to this size is read whole before it is passed on, so that one that breaks can still fall over.
const READ_WHOLE: usize = 8 << 20;

/// How one provider is reached.
pub(crate) struct Upstream {
    pub(crate) protocol: Protocol,
    pub(crate) base: Uri,
    pub(crate) keys: Keys,
}

/// Whose key goes there.
pub(crate) enum Keys {
    Caller,
    /// With the id by which each is known outside.
    Own(Vec<(String, HeaderValue)>),
}

impl Upstream {
    /// The header in which a dialect carries its key.
    pub(crate) const fn key_header(protocol: Protocol) -> HeaderName {
        match protocol {
            Protocol::Anthropic => HeaderName::from_static("x-api-key"),
            Protocol::Gemini => HeaderName::from_static("x-goog-api-key"),
            _ => AUTHORIZATION,
        }
    }

    /// What that header says.
    pub(crate) fn key_value(
        protocol: Protocol,
        key: &str,
    ) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
        let mut value = match protocol {
            Protocol::Anthropic | Protocol::Gemini => HeaderValue::from_str(key)?,
            _ => HeaderValue::from_str(&format!("Bearer {key}"))?,
        };
        value.set_sensitive(true);
        Ok(value)
    }

    /// The caller's request with this target's address, credential and, where it has its own, model.
    pub(crate) fn request(
        &self,
        call: &Call,
        model: Option<&str>,
        key: Option<&HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let path = model.map_or_else(
            || call.path.as_str().into(),
            |model| call.facts.path_for(model, &call.path),
        );
        let query = call.query.as_deref();
        let query = if key.is_some() {
            query.map(without_key)
        } else {
            query.map(Into::into)
        };
        let uri = address::join(self.protocol, &self.base, &path, query.as_deref())?;
        let body = model.map_or_else(
            || call.body.clone(),
            |model| call.facts.body_for(model, &call.body),
        );
        let says_nothing = body.is_empty() && is_upload(&call.method);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = call.headers.clone();
        if says_nothing {
            // The client writes no length where there is no body, and some front ends answer that with 411.
            request.headers_mut().insert(CONTENT_LENGTH, 0.into());
        }
        if let Some(key) = key {
            headers::sign(request.headers_mut(), &Self::key_header(self.protocol), key);
        }
        Ok(request)
    }
}

/// Whether a request of this method is meant to carry a body, an empty one included.
fn is_upload(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// The names under which clients show a key in the query: Google's the first, gateways in front of models the others.
const KEY_PARAMETERS: [&str; 5] = [
    "key",
    "api_key",
    "api-key",
    "access_token",
    "subscription-key",
];

/// The key that a part of a query shows, if it does.
pub(super) fn key_in(pair: &str) -> Option<&str> {
    let (name, key) = pair.split_once('=')?;
    KEY_PARAMETERS.contains(&name).then_some(key)
}

/// A key in the query is the caller's and stays here.
fn without_key(query: &str) -> std::borrow::Cow<'_, str> {
    if !query.split('&').any(|pair| key_in(pair).is_some()) {
        return query.into();
    }
    query
        .split('&')
        .filter(|pair| key_in(pair).is_none())
        .collect::<Vec<_>>()
        .join("&")
        .into()
}

/// An attempt with a clock: one that is dropped is cancelled as of that moment.
pub(crate) struct Driven {
    attempt: Attempt,
    clock: Clock,
}

impl Driven {
    pub(crate) fn new(attempt: Attempt, clock: Clock) -> Self {
        Self { attempt, clock }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    fn fault(&mut self, fault: Fault) -> Verdict {
        let now = self.now();
        self.failed(fault, now)
    }
}

impl Deref for Driven {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.attempt
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Attempt {
        &mut self.attempt
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.attempt.cancelled(now);
    }
}

/// What an attempt brought.
pub(crate) enum Came {
    /// An answer that is passed on as it comes; there is no verdict yet.
    Opened(Answer<Incoming>),
    /// An answer that is at hand, and the verdict on it.
    Answered(Answer<Option<Incoming>>, Verdict),
    /// No whole answer.
    Nothing(Verdict),
}

/// An upstream's answer: its head without the hop's headers, what was read of its body, and what was not.
pub(crate) struct Answer<R> {
    pub(crate) head: response::Parts,
    pub(crate) begun: Bytes,
    pub(crate) rest: R,
}

/// Sends the request and waits for the answer, at most for `limit`: for the head where the answer is passed on as it
/// comes, for all of it otherwise.
pub(crate) async fn exchange(
    attempt: &mut Driven,
    pool: &Pool,
    request: Request<Full<Bytes>>,
    facts: &RequestFacts,
    limit: Duration,
) -> Came {
    let deadline = Instant::now() + limit;
    let response = match timeout_at(deadline, pool.request(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Came::Nothing(attempt.fault(fault(&error))),
        Err(_) => return Came::Nothing(attempt.fault(Fault::Deadline)),
    };
    Proven::note(&response);
    let now = attempt.now();
    let verdict = attempt.head(
        &Head::new(response.status().as_u16(), response.headers()),
        wall(),
        now,
    );
    let verdict = match verdict {
        Some(verdict) if is_no_answer(response.status(), &verdict) => {
            return Came::Nothing(verdict);
        }
        verdict => verdict,
    };
    let (mut head, body) = response.into_parts();
    head.version = Version::HTTP_11;
    let reason = head.extensions.remove::<ReasonPhrase>();
    head.extensions.clear();
    reason.map(|reason| head.extensions.insert(reason));
    headers::strip_answer(&mut head.headers);
    if verdict.is_none() && passes_as_it_comes(&head, facts) {
        return Came::Opened(Answer {
            head,
            begun: Bytes::new(),
            rest: body,
        });
    }
    match (
        timeout_at(deadline, read_whole(attempt, body)).await,
        verdict,
    ) {
        (Ok(Ok((begun, None))), _) => {
            let now = attempt.now();
            Came::Answered(
                Answer {
                    head,
                    begun,
                    rest: None,
                },
                attempt.end(now),
            )
        }
        (Ok(Ok((begun, rest))), Some(verdict)) => {
            Came::Answered(Answer { head, begun, rest }, verdict)
        }
        // Too long to be kept: the caller gets it as it comes, and its end gives the verdict.
        (Ok(Ok((begun, Some(rest)))), None) => Came::Opened(Answer { head, begun, rest }),
        (Ok(Err(_)), _) => Came::Nothing(attempt.fault(Fault::Reset)),
        (Err(_), _) => Came::Nothing(attempt.fault(Fault::Deadline)),
    }
}

/// Whether this is nothing that a caller may get: another address to call, which would take his key along, or another
/// protocol to speak.
fn is_no_answer(status: StatusCode, verdict: &Verdict) -> bool {
    matches!(verdict.evidence, Evidence::Redirect(_)) || status.is_informational()
}

/// Streams, and what is not an answer of a model: files are not read into memory.
fn passes_as_it_comes(head: &response::Parts, facts: &RequestFacts) -> bool {
    let kind = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let is_stream = facts.shape() == Shape::Stream || kind.starts_with("text/event-stream");
    is_stream || facts.operation() == Operation::Other
}

/// Reads a body to its end, or until it is too long to be kept.
async fn read_whole(
    attempt: &mut Driven,
    mut body: Incoming,
) -> Result<(Bytes, Option<Incoming>), hyper::Error> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let now = attempt.now();
        attempt.body(data.len(), now);
        read.extend_from_slice(&data);
        if read.len() > READ_WHOLE {
            return Ok((read.freeze(), Some(body)));
        }
    }
    Ok((read.freeze(), None))
}

/// What time it is for the world, since providers name dates.
#[expect(
    clippy::disallowed_methods,
    reason = "wait hints may be dates, and are compared with today's"
)]
fn wall() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_key_leaves_the_query_and_the_rest_stays() {
        assert_eq!(without_key("alt=sse&key=secret&x=%20"), "alt=sse&x=%20");
        assert_eq!(without_key("key=secret"), "");
        assert_eq!(without_key("api_key=a&access_token=b&a=1"), "a=1");
        assert_eq!(without_key("monkey=1&alt=sse"), "monkey=1&alt=sse");
    }
}
