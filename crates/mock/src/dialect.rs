//! The two dialects: which endpoint a path is, and the canned bodies each answers with.

mod anthropic;
mod openai;

use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

use crate::reply::ErrorText;
use crate::request::Facts;

/// The time that answers claim to be made at: fixed, so that a repeated run gives the same bytes.
const CREATED: u64 = 1_790_000_000;
/// The tokens that every prompt claims to have.
const PROMPT_TOKENS: usize = 9;

/// What a path asks for, whatever its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
    Embeddings,
    Responses,
    Messages,
    /// Any other path of an OpenAI client.
    OtherOpenAi,
    /// Any other path of an Anthropic client.
    OtherAnthropic,
}

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    pub(crate) role: Role,
}

/// Whether an event counts as content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opens or closes the stream.
    Frame,
    /// Carries content.
    Content,
}

impl Endpoint {
    pub(crate) fn of(path: &str, headers: &HeaderMap) -> Self {
        let known = [
            ("/chat/completions", Self::Chat),
            ("/completions", Self::Completions),
            ("/embeddings", Self::Embeddings),
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
        ];
        match known.iter().find(|(suffix, _)| path.ends_with(suffix)) {
            Some((_, endpoint)) => *endpoint,
            None if headers.contains_key("anthropic-version") => Self::OtherAnthropic,
            None => Self::OtherOpenAi,
        }
    }

    fn is_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::OtherAnthropic)
    }

    /// Whether `"stream": true` means anything here.
    pub(crate) fn streams(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Completions | Self::Responses | Self::Messages
        )
    }
}

/// The request id and the header it goes out in.
pub(crate) fn request_id(facts: &Facts) -> (&'static str, String) {
    let name = if facts.endpoint.is_anthropic() {
        "request-id"
    } else {
        "x-request-id"
    };
    (name, format!("req_{:012}", facts.number))
}

/// A whole good answer.
pub(crate) fn plain(facts: &Facts, words: &[String]) -> Value {
    match facts.endpoint {
        Endpoint::Chat => openai::chat(facts, words),
        Endpoint::Completions => openai::completion(facts, words),
        Endpoint::Embeddings => openai::embeddings(facts),
        Endpoint::Responses => openai::response(facts, words),
        Endpoint::Messages => anthropic::message(facts, words),
        Endpoint::OtherOpenAi | Endpoint::OtherAnthropic => {
            json!({"object": "list", "data": [], "has_more": false})
        }
    }
}

/// A good answer as events; an endpoint that does not stream has none.
pub(crate) fn stream(facts: &Facts, words: &[String]) -> Vec<Piece> {
    match facts.endpoint {
        Endpoint::Chat => openai::chat_stream(facts, words),
        Endpoint::Completions => openai::completion_stream(facts, words),
        Endpoint::Responses => openai::response_stream(facts, words),
        Endpoint::Messages => anthropic::message_stream(facts, words),
        Endpoint::Embeddings | Endpoint::OtherOpenAi | Endpoint::OtherAnthropic => Vec::new(),
    }
}

/// The error body for a status.
pub(crate) fn error(facts: &Facts, status: u16, text: &ErrorText) -> Value {
    if facts.endpoint.is_anthropic() {
        anthropic::error(&request_id(facts).1, status, text)
    } else {
        openai::error(status, text)
    }
}

/// What the request called its model.
fn model(facts: &Facts) -> &str {
    facts.model.as_deref().unwrap_or("mock")
}

/// One `data:` event; an `event:` line names it where the dialect does.
fn event(name: Option<&str>, data: &Value) -> Bytes {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n").into(),
        None => format!("data: {data}\n\n").into(),
    }
}

fn frame(name: Option<&str>, data: &Value) -> Piece {
    Piece {
        bytes: event(name, data),
        role: Role::Frame,
    }
}

fn content(name: Option<&str>, data: &Value) -> Piece {
    Piece {
        bytes: event(name, data),
        role: Role::Content,
    }
}
