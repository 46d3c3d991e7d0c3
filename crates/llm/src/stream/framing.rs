//! `Framing`: how a stream's bytes are cut into events, and the machine that finds where each one ends.

use memchr::memchr;

use super::event_stream::Frames;
use super::objects::Objects;
use super::sse::Sse;
use super::{Piece, StreamEvent, event_stream, sse};

/// How the events of a stream are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// The binary frames of AWS, as Bedrock sends them; their checksums are verified.
    EventStream,
    /// One JSON array, sent bit by bit, as Gemini does when it is not asked for server-sent events. Its objects are the
    /// events.
    JsonArray,
    /// One JSON text a line, as Ollama and Cohere's first API send.
    NdJson,
    /// Server-sent events.
    Sse,
}

/// Content types without their parameters. Plain JSON is the last guess: as a stream it is Gemini's array.
#[rustfmt::skip]
const CONTENT_TYPES: [(&str, Framing); 8] = [
    ("text/event-stream",                  Framing::Sse),
    ("application/vnd.amazon.eventstream", Framing::EventStream),
    ("application/x-ndjson",               Framing::NdJson),
    ("application/ndjson",                 Framing::NdJson),
    ("application/jsonl",                  Framing::NdJson),
    ("application/stream+json",            Framing::NdJson),
    ("application/x-json-stream",          Framing::NdJson),
    ("application/json",                   Framing::JsonArray),
];

impl Framing {
    /// The framing that a `content-type` announces; parameters and the case of letters do not matter.
    ///
    /// ```
    /// use fuseline_llm::Framing;
    ///
    /// assert_eq!(Framing::of_content_type("Text/Event-Stream; charset=utf-8"), Some(Framing::Sse));
    /// assert_eq!(Framing::of_content_type("text/html"), None);
    /// ```
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next()?.trim();
        CONTENT_TYPES
            .iter()
            .find(|(name, _)| essence.eq_ignore_ascii_case(name))
            .map(|(_, framing)| *framing)
    }
}

/// Where in the bytes it was given a machine saw a piece end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Event(usize),
    Filler(usize),
    Corrupt(usize),
}

impl Found {
    pub(super) const fn end(self) -> usize {
        match self {
            Self::Event(end) | Self::Filler(end) | Self::Corrupt(end) => end,
        }
    }
}

/// Where a scanner stands in its framing. It keeps no payload.
#[derive(Debug)]
pub(super) enum Machine {
    Sse(Sse),
    Lines,
    Objects(Objects),
    Frames(Frames),
}

impl Machine {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::EventStream => Self::Frames(Frames::default()),
            Framing::JsonArray => Self::Objects(Objects::default()),
            Framing::NdJson => Self::Lines,
            Framing::Sse => Self::Sse(Sse::default()),
        }
    }

    /// The end of the piece that goes on or begins with `bytes`; none where all of them belong to it and it goes on.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<Found> {
        match self {
            Self::Sse(sse) => sse.find(bytes),
            Self::Lines => memchr(b'\n', bytes).map(|at| Found::Event(at + 1)),
            Self::Objects(objects) => objects.find(bytes),
            Self::Frames(frames) => frames.find(bytes),
        }
    }

    /// What a whole piece says.
    pub(super) fn read<'a>(&self, bytes: &'a [u8]) -> Piece<'a> {
        match self {
            Self::Sse(_) | Self::Lines => self.read_rest(bytes).map_or(Piece::Filler, Piece::Event),
            Self::Objects(_) => Piece::Event(unnamed(bytes)),
            Self::Frames(_) => event_stream::read(bytes).map_or(Piece::Corrupt, Piece::Event),
        }
    }

    /// What a piece says whose delimiter is missing.
    pub(super) fn read_rest<'a>(&self, bytes: &'a [u8]) -> Option<StreamEvent<'a>> {
        match self {
            Self::Sse(_) => sse::read(bytes),
            Self::Lines => Some(unnamed(bytes.trim_ascii())).filter(|event| !event.data.is_empty()),
            Self::Objects(_) | Self::Frames(_) => None,
        }
    }
}

fn unnamed(bytes: &[u8]) -> StreamEvent<'_> {
    StreamEvent {
        data: bytes.into(),
        ..StreamEvent::default()
    }
}
