//! `Slot`: the digests under which a request's answers are kept.
//!
//! A digest takes in everything on which an answer may depend: the route, the caller's credentials, the path, the query,
//! the headers that providers give a meaning to, and the body in canonical form, with its keys sorted. Every part is
//! preceded by its length, so that no two lists of parts are the same bytes.

use fuseline_llm::{Dialect, Framing, Operation, Protocol, Shape};
use http::header::{ACCEPT_ENCODING, HeaderMap};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::super::headers::CREDENTIALS;
use super::super::ingress::Call;
use super::super::upstream::key_in;

pub(super) type Digest = [u8; 32];

/// Headers whose names begin so change what is answered: versions, betas, organisations, projects.
const MEANINGFUL: [&str; 3] = ["anthropic-", "openai-", "x-goog-"];

/// Who calls: a digest of every credential that he shows, to the gateway or through it.
#[derive(Clone, Copy)]
pub(crate) struct Tenant(Digest);

impl Tenant {
    /// `salt` is this process's: a tenant is nobody elsewhere.
    pub(crate) fn of(salt: &[u8], headers: &HeaderMap, query: Option<&str>) -> Self {
        let mut parts = Parts::new(salt);
        for name in &CREDENTIALS {
            for value in headers.get_all(name) {
                parts.add(name.as_str().as_bytes());
                parts.add(value.as_bytes());
            }
        }
        parts.add(b"query");
        for key in query.into_iter().flat_map(|query| query.split('&')) {
            if key_in(key).is_some() {
                parts.add(key.as_bytes());
            }
        }
        Self(parts.digest())
    }
}

/// Where the answers to one request are kept.
pub(crate) struct Slot {
    plain: Digest,
    streamed: Option<Streamed>,
    dialect: Option<Dialect>,
}

/// Where its streams are kept, and how one is to look.
pub(crate) struct Streamed {
    pub(super) digest: Digest,
    pub(super) framing: Framing,
    /// Whether OpenAI's callers asked for a last chunk with the count of tokens.
    pub(super) with_usage: bool,
}

impl Slot {
    /// On the route for these models. None for what cannot be answered from a cache: no create call, or a body that is no
    /// JSON object.
    pub(crate) fn of(call: &Call, route: &str, tenant: Tenant) -> Option<Self> {
        if call.facts.operation() != Operation::Create {
            return None;
        }
        let mut body: Map<String, Value> = serde_json::from_slice(&call.body).ok()?;
        body.remove("stream");
        let options = body.remove("stream_options").unwrap_or_default();
        let mut parts = Parts::new(&tenant.0);
        parts.add(route.as_bytes());
        parts.add(path(call).as_bytes());
        for pair in call.query.iter().flat_map(|query| query.split('&')) {
            if key_in(pair).is_none() && pair != "alt=sse" {
                parts.add(pair.as_bytes());
            }
        }
        parts.add(b"headers");
        parts.headers(&call.headers);
        parts.value(&Value::Object(body));
        let plain = parts.digest();
        let streamed = (call.facts.shape() == Shape::Stream).then(|| {
            let framing = framing(call);
            let mut parts = Parts::new(&plain);
            parts.add(&[u8::from(framing == Framing::Sse)]);
            parts.value(&options);
            Streamed {
                digest: parts.digest(),
                framing,
                with_usage: options.get("include_usage") == Some(&Value::Bool(true)),
            }
        });
        Some(Self {
            plain,
            streamed,
            dialect: call.facts.dialect(),
        })
    }

    pub(super) const fn plain(&self) -> &Digest {
        &self.plain
    }

    /// None where a plain answer was asked for.
    pub(super) const fn streamed(&self) -> Option<&Streamed> {
        self.streamed.as_ref()
    }

    pub(super) const fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }
}

/// The path, the same for a stream as for a plain answer.
fn path(call: &Call) -> String {
    if call.facts.protocol() == Protocol::Gemini {
        call.path
            .replace(":streamGenerateContent", ":generateContent")
    } else {
        call.path.clone()
    }
}

/// How a stream is framed: Gemini's are lists unless the query says otherwise.
fn framing(call: &Call) -> Framing {
    let mut query = call.query.iter().flat_map(|query| query.split('&'));
    if call.facts.protocol() == Protocol::Gemini && !query.any(|pair| pair == "alt=sse") {
        Framing::JsonArray
    } else {
        Framing::Sse
    }
}

/// What goes into a digest, part by part.
struct Parts(Sha256);

impl Parts {
    fn new(first: &[u8]) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(first);
        parts
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Those that change the answer, and what its coding may be.
    fn headers(&mut self, headers: &HeaderMap) {
        let matters = |name: &str| {
            name == ACCEPT_ENCODING || MEANINGFUL.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut meant: Vec<(&str, &[u8])> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .filter(|(name, _)| matters(name))
            .collect();
        meant.sort_unstable();
        for (name, value) in meant {
            self.add(name.as_bytes());
            self.add(value);
        }
    }

    /// A value, with the keys of its objects sorted.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                self.add(b"{");
                self.add(&(object.len() as u64).to_be_bytes());
                let mut entries: Vec<_> = object.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    self.add(key.as_bytes());
                    self.value(value);
                }
            }
            Value::Array(items) => {
                self.add(b"[");
                self.add(&(items.len() as u64).to_be_bytes());
                for item in items {
                    self.value(item);
                }
            }
            // A text comes in its quotes, so that "1" is not 1.
            simple => self.add(simple.to_string().as_bytes()),
        }
    }

    fn digest(self) -> Digest {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests;
