//! What the mock reads from a request: the bounded body, and the few facts that choose a reply.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use serde::Deserialize;
use tokio::time::Instant;

use crate::dialect::Endpoint;
use crate::script::Key;

/// Body bytes kept with a recorded request.
pub(crate) const BODY_KEPT: usize = 1 << 20;
/// Body bytes read into memory to find the model; what comes after is counted only.
const BODY_READ: usize = 32 << 20;

/// A request as it arrived.
#[derive(Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place in the order of arrival, from 1.
    pub number: u64,
    /// The method.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Headers in order, values as sent, names in lower case.
    pub headers: Vec<(String, Bytes)>,
    /// The body's first mebibyte; empty until the whole body has arrived, and again once later bodies come to 64 MiB.
    pub body: Bytes,
    /// The body's whole length; `None` until it has arrived.
    pub body_len: Option<u64>,
    /// When the head arrived.
    pub at: Instant,
    /// The model that the body names; `None` until the body has arrived.
    pub model: Option<String>,
    /// What it gets, in words such as `503` or `200, cut after 5 events`; `None` until the body has arrived.
    pub reply: Option<String>,
}

impl Recorded {
    pub(crate) fn new(number: u64, head: &Parts) -> Self {
        let headers = head.headers.iter();
        Self {
            number,
            method: head.method.to_string(),
            target: head.uri.to_string(),
            headers: headers
                .map(|(name, value)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes())))
                .collect(),
            body: Bytes::new(),
            body_len: None,
            at: Instant::now(),
            model: None,
            reply: None,
        }
    }

    /// The first value of a header, where it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// Header values and bodies may hold secrets: they are not shown.
impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Recorded")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("target", &self.target)
            .field("headers", &names)
            .field("body_len", &self.body_len)
            .field("model", &self.model)
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

/// What chooses the reply and fills in a canned one.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) number: u64,
    pub(crate) head_only: bool,
    pub(crate) path: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) key: Option<Key>,
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) usage_wanted: bool,
    pub(crate) inputs: usize,
}

#[derive(Default, Deserialize)]
struct Asked {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    input: Option<Input>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// An embedding's input: several only where it is a list of texts or of token lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Texts(Vec<String>),
    TokenLists(Vec<Vec<u64>>),
    One(serde::de::IgnoredAny),
}

impl Facts {
    pub(crate) fn new(number: u64, head: &Parts, body: &[u8]) -> Self {
        let asked: Asked = serde_json::from_slice(body).unwrap_or_default();
        let path = head.uri.path().to_owned();
        Self {
            number,
            head_only: head.method == hyper::Method::HEAD,
            endpoint: Endpoint::of(&path, &head.headers),
            path,
            key: api_key(&head.headers),
            model: asked.model,
            stream: asked.stream.unwrap_or(false),
            usage_wanted: asked
                .stream_options
                .and_then(|options| options.include_usage)
                .unwrap_or(false),
            inputs: match asked.input {
                Some(Input::Texts(texts)) => texts.len(),
                Some(Input::TokenLists(lists)) => lists.len(),
                Some(Input::One(_)) | None => 1,
            },
        }
    }
}

fn api_key(headers: &HeaderMap) -> Option<Key> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer
        .or_else(|| text("x-api-key"))
        .or_else(|| text("api-key"))
        .map(|key| Key(key.to_owned()))
}

/// Reads a body to its end: the bytes up to a bound, and the whole length.
pub(crate) async fn read(mut body: Incoming) -> Result<(Bytes, u64), hyper::Error> {
    let mut kept = BytesMut::new();
    let mut length = 0_u64;
    while let Some(frame) = body.frame().await {
        if let Ok(mut data) = frame?.into_data() {
            length = length.saturating_add(data.len() as u64);
            data.truncate(BODY_READ.saturating_sub(kept.len()));
            kept.extend_from_slice(&data);
        }
    }
    Ok((kept.freeze(), length))
}
