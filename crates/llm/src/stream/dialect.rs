//! `Dialect`: what the events of each provider's streams mean.
//!
//! Only the fields that tell are read, borrowed from the event; what the model wrote is never looked into, except for
//! whether there is any. Each dialect is a file: its fields, and what they mean.

mod anthropic;
mod bedrock;
mod chat;
mod cohere;
mod finish;
mod gemini;
mod json;
mod ollama;
mod responses;
mod whole;

pub use self::finish::Finish;
pub(crate) use self::whole::Told;
use super::{Framing, StreamEvent};

/// The language of a stream's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Anthropic's messages.
    Anthropic,
    /// Bedrock's ConverseStream.
    Bedrock,
    /// Cohere's chat, both versions.
    Cohere,
    /// Google's streamGenerateContent.
    Gemini,
    /// Ollama's own chat and generate.
    Ollama,
    /// OpenAI's chat completions and its older completions, and everybody's who is compatible.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
}

/// Tokens, as far as the provider has counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, those read from a cache included.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, those of reasoning included.
    pub output_tokens: Option<u64>,
}

/// What becomes of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    /// It begins, or goes on where its beginning has no event of its own.
    Open,
    /// It is whole.
    Closed,
}

/// What one event says, without what came before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Text, reasoning or tool-call data.
    pub(super) output: bool,
    pub(super) finish: Option<Finish>,
    pub(super) is_error: bool,
    /// An end marker that says nothing of how it went.
    pub(super) is_marker: bool,
    pub(super) tool_call: Option<CallStage>,
    pub(super) usage: Option<Usage>,
}

impl Look {
    /// What both say; the later one wins where they differ.
    fn and(self, later: Self) -> Self {
        Self {
            output: self.output || later.output,
            finish: later.finish.or(self.finish),
            is_error: self.is_error || later.is_error,
            is_marker: self.is_marker || later.is_marker,
            tool_call: later.tool_call.or(self.tool_call),
            usage: later.usage.or(self.usage),
        }
    }
}

/// What the paths end in of calls that ask for an answer.
#[rustfmt::skip]
const PATHS: [(&str, Dialect); 10] = [
    ("/chat/completions",      Dialect::OpenAiChat),
    ("/completions",           Dialect::OpenAiChat),
    ("/responses",             Dialect::OpenAiResponses),
    ("/v1/messages",           Dialect::Anthropic),
    (":streamGenerateContent", Dialect::Gemini),
    ("/converse-stream",       Dialect::Bedrock),
    ("/v1/chat",               Dialect::Cohere),
    ("/v2/chat",               Dialect::Cohere),
    ("/api/chat",              Dialect::Ollama),
    ("/api/generate",          Dialect::Ollama),
];

impl Dialect {
    /// The dialect in which a call to this path, without its query, is answered if it asks a model for an answer. None
    /// where it asks for anything else, or nobody knows.
    ///
    /// ```
    /// use fuseline_llm::Dialect;
    ///
    /// assert_eq!(Dialect::of_path("/openai/v1/chat/completions"), Some(Dialect::OpenAiChat));
    /// assert_eq!(Dialect::of_path("/v1/models"), None);
    /// ```
    pub fn of_path(path: &str) -> Option<Self> {
        let mut paths = PATHS.iter();
        let (_, dialect) = paths.find(|(end, _)| path.ends_with(end))?;
        Some(*dialect)
    }

    /// The framing in which its streams usually come. A `content-type` tells more: see [`Framing::of_content_type`].
    ///
    /// ```
    /// use fuseline_llm::{Dialect, Framing};
    ///
    /// assert_eq!(Dialect::Anthropic.usual_framing(), Framing::Sse);
    /// assert_eq!(Dialect::Bedrock.usual_framing(), Framing::EventStream);
    /// ```
    pub const fn usual_framing(self) -> Framing {
        match self {
            Self::Bedrock => Framing::EventStream,
            Self::Ollama => Framing::NdJson,
            Self::Anthropic
            | Self::Cohere
            | Self::Gemini
            | Self::OpenAiChat
            | Self::OpenAiResponses => Framing::Sse,
        }
    }

    /// None where the event's data is no JSON.
    pub(super) fn look(self, event: &StreamEvent<'_>) -> Option<Look> {
        match &*event.data {
            b"" => return Some(Look::default()),
            b"[DONE]" => {
                return Some(Look {
                    is_marker: self == Self::OpenAiChat,
                    ..Look::default()
                });
            }
            _ => {}
        }
        let text = std::str::from_utf8(&event.data).ok()?;
        match self {
            Self::Anthropic => json::look(text, anthropic::Event::look),
            Self::Bedrock => json::look(text, |data: bedrock::Event<'_>| data.look(event.name)),
            Self::Cohere => json::look(text, cohere::Event::look),
            Self::Gemini => json::look(text, gemini::Chunk::look),
            Self::Ollama => json::look(text, ollama::Line::look),
            Self::OpenAiChat => json::look(text, chat::Chunk::look),
            Self::OpenAiResponses => json::look(text, responses::Event::look),
        }
    }
}

#[cfg(test)]
mod tests;
