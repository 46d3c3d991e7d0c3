//! `Scanner`: finds the events in a stream's bytes, whatever the chunks they come in.
//!
//! A scanner does no I/O and changes no byte: it says where the next piece of the stream ends, so that a driver
//! forwards the upstream's own bytes piece by piece, holds back what is not whole, or leaves one piece out. An event
//! that lies in one chunk is borrowed from it; only one that spans chunks is gathered, up to a limit. Each byte is
//! looked at a fixed number of times, whatever the chunks. What the events mean is the matter of `dialect.rs`.
//!
//! Hot path. No allocation for an event that lies in one chunk, no lock, no log, no clock.

mod collect;
mod dialect;
mod event_stream;
mod framing;
mod guard;
mod objects;
mod reader;
mod sse;

use std::borrow::Cow;
use std::fmt;

pub use self::collect::{Collector, Completion, Incomplete, IncompleteReason, ToolCall};
use self::dialect::CallStage;
pub(crate) use self::dialect::Told;
pub use self::dialect::{Dialect, Finish, Usage};
pub use self::framing::Framing;
use self::framing::{Found, Machine};
pub use self::guard::{
    StreamEnding, StreamGuard, StreamTimers, Timer, read_timeout, reasoning_first_token,
};
pub use self::reader::{ErrorEvent, Seen, StreamReader};

/// A buffer that has grown beyond this for one event is given back after it.
const KEPT: usize = 16 * 1024;

/// An incremental scanner of one stream.
///
/// ```
/// use fuseline_llm::{Framing, Piece, Scanner};
///
/// let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
/// let mut seen = Vec::new();
/// for chunk in ["data: one\n\nda", "ta: two\n\n: still here\n"] {
///     let mut rest = chunk.as_bytes();
///     while let Some(scanned) = scanner.scan(rest) {
///         if let Piece::Event(event) = &scanned.piece {
///             seen.push(String::from_utf8_lossy(&event.data).into_owned());
///         }
///         // A driver forwards rest[..scanned.end], after what it has held back of earlier chunks.
///         rest = &rest[scanned.end..];
///     }
///     // And holds back `rest`, whose piece is not whole.
/// }
/// assert_eq!(seen, ["one", "two"]);
/// ```
pub struct Scanner {
    machine: Machine,
    limit: usize,
    /// What earlier chunks held of the piece that is not whole yet.
    pending: Vec<u8>,
    /// Whether `pending` is the piece that was told last.
    told: bool,
    /// Whether the rest of an event that was too large is being passed over.
    oversized: bool,
}

/// The next piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// How many bytes of the chunk belong to the piece: it begins with what earlier chunks left over and ends here.
    /// At least 1.
    pub end: usize,
    /// What it is.
    pub piece: Piece<'a>,
}

/// What a piece of a stream is. The pieces of a stream, one after the other, are the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: whoever forwards bytes must say what becomes of each kind"
)]
pub enum Piece<'a> {
    /// A whole event with its delimiter.
    Event(StreamEvent<'a>),
    /// No event: a comment, a blank line, what stands between the elements of an array, or more of an oversized event.
    Filler,
    /// The beginning of an event larger than the limit, told once. What is left of it follows as filler.
    Oversized,
    /// Bytes that break the framing: a length that cannot be, a checksum that is wrong. Where the next event begins may
    /// be unknown; then all that follows is filler.
    Corrupt,
}

/// One event. Its debug form does not hold its data, which may be anybody's secret.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamEvent<'a> {
    /// The field `event` of server-sent events; `:event-type`, `:exception-type` or `:error-code` of an AWS frame.
    pub name: Option<&'a str>,
    /// The payload: borrowed, unless it stands on several lines of a server-sent event.
    pub data: Cow<'a, [u8]>,
    /// Whether the framing itself calls it an error: an exception frame, or the field `error` of some llama.cpp builds.
    pub is_exception: bool,
}

impl fmt::Debug for StreamEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEvent")
            .field("name", &self.name)
            .field("bytes", &self.data.len())
            .field("is_exception", &self.is_exception)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("machine", &self.machine)
            .field("limit", &self.limit)
            .field("pending_bytes", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl Scanner {
    /// The usual limit of an event, delimiters included: 1 MiB.
    pub const EVENT_LIMIT: usize = 1 << 20;

    /// A scanner at the beginning of a stream. No more than `limit` bytes of one event are kept, and at least 1.
    pub fn new(framing: Framing, limit: usize) -> Self {
        Self {
            machine: Machine::new(framing),
            limit: limit.max(1),
            pending: Vec::new(),
            told: false,
            oversized: false,
        }
    }

    /// The first piece that ends in `chunk`, the bytes that follow what was scanned so far.
    ///
    /// Ask again with the bytes after its end, until there is none: then the whole chunk has been taken, and what
    /// belongs to a piece that is not whole, never more than the limit, is remembered.
    pub fn scan<'a>(&'a mut self, chunk: &'a [u8]) -> Option<Scanned<'a>> {
        self.forget_told();
        if self.oversized {
            return self.pass_over(chunk);
        }
        let room = self.limit - self.pending.len();
        let window = chunk.get(..room).unwrap_or(chunk);
        let Some(found) = self.machine.find(window) else {
            if window.len() == room {
                self.oversized = true;
                self.pending = Vec::new();
                return Some(Scanned {
                    end: room,
                    piece: Piece::Oversized,
                });
            }
            self.pending.extend_from_slice(window);
            return None;
        };
        let end = found.end();
        let mut bytes = window.get(..end).unwrap_or(window);
        self.told = true;
        if !self.pending.is_empty() {
            self.pending.extend_from_slice(bytes);
            bytes = &self.pending;
        }
        let piece = match found {
            Found::Event(_) => self.machine.read(bytes),
            Found::Filler(_) => Piece::Filler,
            Found::Corrupt(_) => Piece::Corrupt,
        };
        Some(Scanned { end, piece })
    }

    /// The event that the stream left without its last delimiter; the stream is at its end.
    ///
    /// Such an event may be whole, as is the last line of many servers, or cut: its data tells. Where the framing shows
    /// that it was cut (an AWS frame, an object of an array) there is none.
    pub fn finish(&mut self) -> Option<StreamEvent<'_>> {
        self.forget_told();
        self.machine.read_rest(&self.pending)
    }

    fn pass_over(&mut self, chunk: &[u8]) -> Option<Scanned<'static>> {
        let found = self.machine.find(chunk);
        self.oversized = found.is_none();
        let end = found.map_or(chunk.len(), |found| found.end());
        (end > 0).then_some(Scanned {
            end,
            piece: Piece::Filler,
        })
    }

    fn forget_told(&mut self) {
        if !std::mem::take(&mut self.told) {
            return;
        }
        if self.pending.capacity() > KEPT {
            self.pending = Vec::new();
        }
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests;
