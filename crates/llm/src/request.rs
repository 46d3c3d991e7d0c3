//! `RequestFacts`: what a request says about itself that routing needs, read from its path and body.
//!
//! The body is walked once, by a parser that builds nothing: memory does not grow with it, nesting does not matter,
//! and what is no JSON has no facts. The place of the model's name is kept as byte ranges, so that it can be replaced
//! with every other byte left as it was.

mod body;
mod tokens;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use http::Method;

use self::body::Fields;
pub use self::tokens::{Price, Tokens};
use crate::stream::Dialect;

/// A longer name is nobody's model, and would only fill logs and tables.
const MAX_NAME: usize = 256;

/// The dialect that a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// OpenAI's, and everybody's who is compatible.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's generateContent.
    Gemini,
}

impl Protocol {
    /// The dialect to which a path belongs. `/v1/models` and what nobody knows are OpenAI's.
    pub fn of_path(path: &str) -> Self {
        let operation = after_version(path);
        if operation == "messages" || operation.starts_with("messages/") {
            Self::Anthropic
        } else if path.trim_start_matches('/').starts_with("v1beta") || gemini_call(path).is_some()
        {
            Self::Gemini
        } else {
            Self::OpenAi
        }
    }

    /// The name in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: either the call is routed, or it is not"
)]
pub enum Operation {
    /// Asks a model for an answer: routed, with fallback.
    Create,
    /// Anything else: files, batches, lists.
    Other,
}

/// Whether the caller asked for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: an answer comes in pieces or as a whole"
)]
pub enum Shape {
    /// One body.
    Plain,
    /// Events.
    Stream,
}

/// What routing knows of a request.
///
/// ```
/// use bytes::Bytes;
/// use fuseline_llm::{Operation, Protocol, RequestFacts, Shape};
/// use http::Method;
///
/// let body = Bytes::from(r#"{"stream": true, "model": "large", "messages": [{"model": "not this"}]}"#);
/// let facts = RequestFacts::read(Protocol::OpenAi, &Method::POST, "/v1/chat/completions", &body);
/// assert_eq!(facts.operation(), Operation::Create);
/// assert_eq!(facts.model(), Some("large"));
/// assert_eq!(facts.shape(), Shape::Stream);
/// let rewritten = facts.body_for("small", &body);
/// assert_eq!(&rewritten[..], &br#"{"stream": true, "model": "small", "messages": [{"model": "not this"}]}"#[..]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    protocol: Protocol,
    operation: Operation,
    model: Option<Model>,
    shape: Shape,
    dialect: Option<Dialect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    name: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// The segment of the path.
    Path(Range<usize>),
    /// Every top-level value named `model`, quotes included, in the order of the body.
    Body(Vec<Range<usize>>),
}

impl RequestFacts {
    /// Reads a request. `path` is without its query; `body` may be anything.
    pub fn read(protocol: Protocol, method: &Method, path: &str, body: &[u8]) -> Self {
        if protocol == Protocol::Gemini {
            return Self::read_gemini(method, path);
        }
        let operation = match (method, protocol, after_version(path)) {
            (
                &Method::POST,
                Protocol::OpenAi,
                "chat/completions" | "responses" | "completions" | "embeddings",
            )
            | (&Method::POST, Protocol::Anthropic, "messages") => Operation::Create,
            _ => Operation::Other,
        };
        let Fields { model, stream } = Fields::read(body);
        let shape = if stream { Shape::Stream } else { Shape::Plain };
        Self {
            protocol,
            operation,
            model,
            shape,
            dialect: dialect(protocol, path),
        }
    }

    fn read_gemini(method: &Method, path: &str) -> Self {
        let mut facts = Self {
            protocol: Protocol::Gemini,
            operation: Operation::Other,
            model: None,
            shape: Shape::Plain,
            dialect: None,
        };
        let Some(call) = gemini_call(path) else {
            return facts;
        };
        facts.model = path
            .get(call.model.clone())
            .filter(|name| name.len() <= MAX_NAME)
            .map(|name| Model {
                name: name.to_owned(),
                place: Place::Path(call.model),
            });
        if call.verb == "streamGenerateContent" {
            facts.shape = Shape::Stream;
        }
        if method == Method::POST
            && matches!(call.verb, "generateContent" | "streamGenerateContent")
        {
            facts.operation = Operation::Create;
            facts.dialect = Some(Dialect::Gemini);
        }
        facts
    }

    /// The dialect.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What the request is for.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The model that was asked for.
    pub fn model(&self) -> Option<&str> {
        self.model.as_ref().map(|model| model.name.as_str())
    }

    /// Whether a stream was asked for.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The language of the answer's events, should it be a stream; none where that is not known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// The body with `model` in place of the name that was asked for, all other bytes as they were. `body` is the one
    /// that was read. Where the body names no model it is returned as it is, without a copy.
    #[must_use]
    pub fn body_for(&self, model: &str, body: &Bytes) -> Bytes {
        let Some(Model {
            place: Place::Body(places),
            ..
        }) = &self.model
        else {
            return body.clone();
        };
        let name = serde_json::Value::from(model).to_string();
        let mut rewritten = Vec::with_capacity(body.len() + places.len() * name.len());
        let mut kept = 0;
        for place in places {
            rewritten.extend_from_slice(body.get(kept..place.start).unwrap_or_default());
            rewritten.extend_from_slice(name.as_bytes());
            kept = place.end;
        }
        rewritten.extend_from_slice(body.get(kept..).unwrap_or_default());
        rewritten.into()
    }

    /// The path with `model` in place of the name that was asked for. `path` is the one that was read. Where the path
    /// names no model it is returned as it is.
    #[must_use]
    pub fn path_for<'p>(&self, model: &str, path: &'p str) -> Cow<'p, str> {
        let Some(Model {
            place: Place::Path(at),
            ..
        }) = &self.model
        else {
            return path.into();
        };
        let (Some(before), Some(after)) = (path.get(..at.start), path.get(at.end..)) else {
            return path.into();
        };
        format!("{before}{model}{after}").into()
    }
}

/// What follows the version in a path, or the whole path where there is none; no slashes around it, since a base URL
/// that ends in one is easily joined to a second.
fn after_version(path: &str) -> &str {
    let path = path.trim_matches('/');
    let is_version = |segment: &str| {
        segment
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    match path.split_once('/') {
        Some((first, rest)) if is_version(first) => rest.trim_start_matches('/'),
        _ => path,
    }
}

/// The language of the events under a path. Some are not routed, and known all the same.
fn dialect(protocol: Protocol, path: &str) -> Option<Dialect> {
    match protocol {
        Protocol::Anthropic => (after_version(path) == "messages").then_some(Dialect::Anthropic),
        // OpenAI's threads have messages, too.
        _ => Dialect::of_path(path.trim_end_matches('/'))
            .filter(|dialect| *dialect != Dialect::Anthropic),
    }
}

struct GeminiCall<'p> {
    model: Range<usize>,
    verb: &'p str,
}

/// `…/models/NAME:verb` and `…/tunedModels/NAME:verb`. A model's name may hold anything but a slash, colons included.
fn gemini_call(path: &str) -> Option<GeminiCall<'_>> {
    let (before, last) = path.rsplit_once('/')?;
    if !before.ends_with("/models") && !before.ends_with("/tunedModels") {
        return None;
    }
    let (name, verb) = last.rsplit_once(':').filter(|(name, _)| !name.is_empty())?;
    let start = before.len() + 1;
    Some(GeminiCall {
        model: start..start + name.len(),
        verb,
    })
}

#[cfg(test)]
mod tests;
