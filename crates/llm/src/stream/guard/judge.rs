//! What each piece of a stream means for its passing on.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ending::StreamEnding;
use crate::classify::{Event, Transcript};
use crate::stream::{Dialect, ErrorEvent, Finish, Framing, Piece, StreamEvent, StreamReader};

/// More of an error's event is not kept.
const MAX_ERROR: usize = 64 << 10;

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) enum Judgement {
    Pass,
    /// It passes, and it is a content event of so many bytes.
    Content(usize),
    LeaveOut,
    /// It passes, and it is an error: the last that passes.
    Error,
    /// Neither it nor anything after it passes.
    Stop(StreamEnding),
}

impl Judgement {
    /// How the stream ends with the piece, if it does.
    pub(in crate::stream) const fn ending(self) -> Option<StreamEnding> {
        match self {
            Self::Pass | Self::Content(_) | Self::LeaveOut => None,
            Self::Error => Some(StreamEnding::Error),
            Self::Stop(ending) => Some(ending),
        }
    }
}

/// The error that a stream told of.
#[derive(Clone, PartialEq, Eq)]
struct Told {
    name: Option<Box<str>>,
    data: Box<[u8]>,
    /// Whether it was told as a reason to finish.
    is_finish: bool,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told")
            .field("name", &self.name)
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// Reads the events, and remembers what the classifier will ask.
#[derive(Debug)]
pub(in crate::stream) struct Judge {
    dialect: Dialect,
    framing: Framing,
    pub(in crate::stream) reader: StreamReader,
    finish: Option<Finish>,
    error: Option<Told>,
    /// Whether SDKs raise that error.
    is_raised: bool,
    /// Whether any event has said something, if only that the stream began.
    has_data: bool,
}

impl Judge {
    pub(in crate::stream) fn new(dialect: Dialect, framing: Framing) -> Self {
        Self {
            dialect,
            framing,
            reader: StreamReader::new(dialect),
            finish: None,
            error: None,
            is_raised: false,
            has_data: false,
        }
    }

    pub(in crate::stream) fn piece(&mut self, piece: &Piece<'_>) -> Judgement {
        match piece {
            Piece::Event(event) => self.event(event),
            Piece::Filler => Judgement::Pass,
            Piece::Oversized => Judgement::Stop(StreamEnding::Oversized),
            Piece::Corrupt => Judgement::Stop(StreamEnding::Corrupt),
        }
    }

    pub(in crate::stream) fn event(&mut self, event: &StreamEvent<'_>) -> Judgement {
        let is_done = *event.data == *b"[DONE]";
        self.has_data |= !is_done && !event.data.is_empty();
        let is_tool_call_open = self.reader.is_tool_call_open();
        let has_content = self.has_content();
        let seen = self.reader.read(event);
        if seen.malformed {
            // What is taken from an array leaves its comma behind.
            let can_be_missed = !is_tool_call_open && self.framing != Framing::JsonArray;
            return if can_be_missed {
                Judgement::LeaveOut
            } else {
                Judgement::Stop(StreamEnding::Malformed)
            };
        }
        if let Some(error) = seen.error {
            self.error = Some(Told {
                name: error.name.map(Into::into),
                data: error.data.get(..MAX_ERROR).unwrap_or(error.data).into(),
                is_finish: seen.finish.is_some(),
            });
            self.is_raised = is_raised(self.dialect, self.framing, event);
            return Judgement::Error;
        }
        self.finish = seen.finish.or(self.finish);
        if seen.is_content() {
            return Judgement::Content(event.data.len());
        }
        if is_done && has_content && !self.reader.is_complete() {
            // SDKs would take it for a finish.
            return Judgement::Stop(StreamEnding::Truncated);
        }
        Judgement::Pass
    }

    /// How a stream ended that goes on no longer.
    pub(in crate::stream) const fn at_end(&self) -> StreamEnding {
        if self.has_data {
            StreamEnding::Truncated
        } else {
            StreamEnding::Empty
        }
    }

    pub(super) fn error(&self) -> Option<ErrorEvent<'_>> {
        self.error.as_ref().map(|told| ErrorEvent {
            name: told.name.as_deref(),
            data: &told.data,
        })
    }

    /// Why the model stopped, where it said so.
    pub(in crate::stream) const fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// Whether the provider has told the caller of the error, in a form that his SDK raises.
    pub(super) const fn has_raised(&self) -> bool {
        self.is_raised
    }

    pub(super) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::default();
        if self.has_data {
            transcript.note(&Event {
                name: "",
                data: "{}",
            });
        }
        if self.reader.has_output() {
            transcript.note_content();
        }
        if let Some(told) = &self.error {
            let data = String::from_utf8_lossy(&told.data);
            if told.is_finish {
                // There may be rules for the reason, and an error beside it.
                transcript.note(&Event {
                    name: "",
                    data: &data,
                });
            } else {
                transcript.note_error(told.name.as_deref().unwrap_or_default(), &data);
            }
        }
        match self.finish {
            Some(finish) => transcript.note_finish(finish.as_str()),
            None if self.reader.is_complete() => transcript.note(&Event {
                name: "",
                data: "[DONE]",
            }),
            None => {}
        }
        transcript
    }

    fn has_content(&self) -> bool {
        self.reader.has_output() || self.finish.is_some()
    }
}

/// Whether SDKs of a dialect raise this error event or have a name for it; others they pass over, or take for a finish.
fn is_raised(dialect: Dialect, framing: Framing, event: &StreamEvent<'_>) -> bool {
    #[derive(Deserialize)]
    struct Field {
        error: Option<IgnoredAny>,
    }
    if framing == Framing::Sse && event.is_exception {
        // A field that is not in the standard.
        return false;
    }
    match dialect {
        Dialect::Anthropic => event.name == Some("error"),
        Dialect::Bedrock => event.is_exception,
        Dialect::Cohere | Dialect::OpenAiResponses => true,
        Dialect::Gemini | Dialect::Ollama | Dialect::OpenAiChat => {
            let event: Result<Field, _> = serde_json::from_slice(&event.data);
            event.is_ok_and(|event| event.error.is_some())
        }
    }
}
