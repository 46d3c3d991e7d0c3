//! `StreamReader`: what the events of one stream say, and how far its answer has come.

use std::fmt;

use super::dialect::{Dialect, Look};
use super::{CallStage, Finish, StreamEvent, Usage};

/// What one event was seen to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen<'e> {
    /// Whether it carries what the model made: text, reasoning, tool-call data.
    pub output: bool,
    /// Why the model stopped, where it says so.
    pub finish: Option<Finish>,
    /// Whether the answer is complete with it. Never after an error; at a bare end marker (`[DONE]` in OpenAI chat,
    /// `message_stop`) only after content.
    pub end: bool,
    /// The error that it tells of, alone or beside other things.
    pub error: Option<ErrorEvent<'e>>,
    /// The tokens that it counts.
    pub usage: Option<Usage>,
    /// Whether its data should be JSON and is not.
    pub malformed: bool,
}

impl Seen<'_> {
    /// Whether this is a content event, one that proves progress: it carries output or a finish.
    pub const fn is_content(&self) -> bool {
        self.output || self.finish.is_some()
    }
}

/// An error inside a stream, in the pieces that classification reads.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorEvent<'e> {
    /// The finish reason that stands for trouble, or else the name of the event or exception.
    pub name: Option<&'e str>,
    /// The event's data, as it came. It may hold secrets: not for logs.
    pub data: &'e [u8],
}

impl fmt::Debug for ErrorEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorEvent")
            .field("name", &self.name)
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// Reads a stream's events in their order.
///
/// ```
/// use fuseline_llm::{Dialect, Framing, Piece, Scanner, StreamReader};
///
/// let stream = concat!(
///     "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
///     "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n",
///     "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
/// );
/// let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
/// let mut reader = StreamReader::new(Dialect::OpenAiChat);
/// let (mut rest, mut content) = (stream.as_bytes(), Vec::new());
/// while let Some(scanned) = scanner.scan(rest) {
///     if let Piece::Event(event) = &scanned.piece {
///         content.push(reader.read(event).is_content());
///     }
///     rest = &rest[scanned.end..];
/// }
/// assert_eq!(content, [false, true, true]);
/// assert!(reader.is_complete());
/// ```
#[derive(Clone, Debug)]
pub struct StreamReader {
    dialect: Dialect,
    has_output: bool,
    has_content: bool,
    has_failed: bool,
    is_complete: bool,
    is_tool_call_open: bool,
    usage: Usage,
}

impl StreamReader {
    /// A reader at the beginning of a stream.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            has_output: false,
            has_content: false,
            has_failed: false,
            is_complete: false,
            is_tool_call_open: false,
            usage: Usage::default(),
        }
    }

    /// Reads the next event.
    pub fn read<'e>(&mut self, event: &'e StreamEvent<'_>) -> Seen<'e> {
        let is_exception = event.is_exception || event.name == Some("error");
        let look = self.dialect.look(event);
        let malformed = look.is_none() && !is_exception;
        let look = look.unwrap_or_default();
        let reason = match look.finish {
            Some(Finish::Failure(reason)) => Some(reason),
            _ => None,
        };
        let error = (is_exception || look.is_error || reason.is_some()).then_some(ErrorEvent {
            name: reason.or(event.name),
            data: &event.data,
        });
        Seen {
            output: look.output,
            finish: look.finish,
            end: self.advance(&look, error.is_some()),
            error,
            usage: look.usage,
            malformed,
        }
    }

    /// Remembers what an event said, and tells whether it ends the answer.
    fn advance(&mut self, look: &Look, is_error: bool) -> bool {
        self.has_output |= look.output;
        self.has_content |= look.output || look.finish.is_some();
        self.has_failed |= is_error;
        let is_end =
            !self.has_failed && (look.finish.is_some() || look.is_marker && self.has_content);
        self.is_complete |= is_end;
        match look.tool_call {
            Some(change) => self.is_tool_call_open = change == CallStage::Open,
            None => self.is_tool_call_open &= look.finish.is_none(),
        }
        if let Some(usage) = look.usage {
            self.usage.input_tokens = usage.input_tokens.or(self.usage.input_tokens);
            self.usage.output_tokens = usage.output_tokens.or(self.usage.output_tokens);
        }
        is_end
    }

    /// Whether the answer has come to its proper end.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the model has made anything: text, reasoning, tool-call data.
    pub const fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether a tool call has begun and is not whole: nothing that comes now may be left out.
    pub const fn is_tool_call_open(&self) -> bool {
        self.is_tool_call_open
    }

    /// The tokens counted so far: of each sort the last number that was told.
    pub const fn usage(&self) -> Usage {
        self.usage
    }
}
