//! `Collector`: from a stream's bytes to the whole answer, or to the reason why there is none.
//!
//! **Nothing half is given out as whole.** An answer is one only if its stream came to its end marker and every tool
//! call has all of its arguments. Text is decoded once, at the end: a letter that chunks, or two events, cut in halves
//! is whole by then.

mod dialects;
mod gathered;
mod node;

use std::convert::Infallible;
use std::fmt;

use fuseline_core::Kind;

use self::gathered::Gathered;
use super::guard::{Judge, Judgement};
use super::{Dialect, Finish, Framing, Piece, Scanner, StreamEnding, StreamEvent, Usage};

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// What the model said; of several choices the first. A refusal is text as well.
    pub text: String,
    /// What it told of its reasoning.
    pub reasoning: String,
    /// The tools that the caller is to run, in their order. Those that the provider runs itself are left out.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped; [`Finish::Stop`] where an end marker came and no reason.
    pub finish: Finish,
    /// The tokens that were counted.
    pub usage: Usage,
}

/// A tool that the model wants to be run, with all of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// What its result is to refer to; empty where the dialect has no such thing.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// A JSON object, as the model wrote it; of tools that take plain text, that text.
    pub arguments: String,
}

/// Why there is no answer, and what there is of it. Its debug form does not hold what the model wrote.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incomplete<E = Infallible> {
    /// What is missing, or went wrong.
    pub reason: IncompleteReason<E>,
    /// The text as far as it came: for a person to read, never to be taken for an answer. There are no tool calls.
    pub text: String,
    /// The tokens that were counted, which will be billed all the same.
    pub usage: Usage,
    /// What the classifier calls the failure, where one was asked: a collector alone asks none.
    pub kind: Option<Kind>,
}

/// Why an answer is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncompleteReason<E = Infallible> {
    /// The stream has ended otherwise than by its end marker.
    Ended(StreamEnding),
    /// The stream has failed with an error of its own.
    Inner(E),
    /// The model stopped before the arguments of a tool call were whole.
    ToolCall,
    /// It is larger than so many bytes.
    TooLarge(usize),
}

impl<E: fmt::Debug> fmt::Debug for Incomplete<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incomplete")
            .field("reason", &self.reason)
            .field("text_bytes", &self.text.len())
            .field("usage", &self.usage)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<E: fmt::Display> fmt::Display for Incomplete<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is not complete: ")?;
        match &self.reason {
            IncompleteReason::Ended(ending) => ending.fmt(f),
            IncompleteReason::Inner(error) => error.fmt(f),
            IncompleteReason::ToolCall => {
                f.write_str("the model stopped in the middle of a tool call")
            }
            IncompleteReason::TooLarge(limit) => {
                write!(
                    f,
                    "it is larger than {limit} bytes, the limit of the collector"
                )
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Incomplete<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            // It speaks for itself, so what comes next is what caused it.
            IncompleteReason::Inner(error) => error.source(),
            _ => None,
        }
    }
}

/// Collects one stream.
///
/// ```
/// use fuseline_llm::{Collector, Dialect, Framing, Incomplete, IncompleteReason, StreamEnding};
///
/// let begin = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi \"}}]}\n\n";
/// let end = "data: {\"choices\":[{\"delta\":{\"content\":\"you\"},\"finish_reason\":\"stop\"}]}\n\n";
///
/// let mut collector = Collector::new(Dialect::OpenAiChat, Framing::Sse);
/// collector.bytes(begin.as_bytes());
/// collector.bytes(end.as_bytes());
/// assert_eq!(collector.end()?.text, "Hi you");
///
/// let mut collector = Collector::new(Dialect::OpenAiChat, Framing::Sse);
/// collector.bytes(begin.as_bytes());
/// let incomplete: Incomplete = collector.end().unwrap_err();
/// assert_eq!(incomplete.reason, IncompleteReason::Ended(StreamEnding::Truncated));
/// assert_eq!(incomplete.text, "Hi ");
/// # Ok::<(), Incomplete>(())
/// ```
pub struct Collector {
    dialect: Dialect,
    scanner: Scanner,
    judge: Judge,
    gathered: Gathered,
    limit: usize,
    ended: Option<StreamEnding>,
}

impl Collector {
    /// The usual limit of what is collected: 16 MiB.
    pub const LIMIT: usize = 16 << 20;

    /// A collector at the beginning of a stream.
    pub fn new(dialect: Dialect, framing: Framing) -> Self {
        Self {
            dialect,
            scanner: Scanner::new(framing, Scanner::EVENT_LIMIT),
            judge: Judge::new(dialect, framing),
            gathered: Gathered::default(),
            limit: Self::LIMIT,
            ended: None,
        }
    }

    /// Collects so many bytes at most, as they are written in the stream: [`LIMIT`](Self::LIMIT) unless set.
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The next bytes of the stream. After a failure they are ignored.
    pub fn bytes(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !self.has_failed()
            && let Some(scanned) = self.scanner.scan(rest)
        {
            let judgement = self.judge.piece(&scanned.piece);
            rest = rest.get(scanned.end..).unwrap_or_default();
            if let Piece::Event(event) = &scanned.piece {
                gather(self.dialect, &mut self.gathered, judgement, event);
            }
            self.ended = judgement.ending();
        }
    }

    /// Whether the stream has come to its end marker. What follows it, a count of tokens perhaps, may still come.
    pub const fn is_complete(&self) -> bool {
        self.judge.reader.is_complete()
    }

    /// Whether the answer cannot become complete any more: no further bytes are wanted.
    pub const fn has_failed(&self) -> bool {
        self.ended.is_some() || self.is_too_large()
    }

    /// The stream has come to its end: the answer, if it is complete.
    ///
    /// # Errors
    /// What is missing.
    pub fn end<E>(mut self) -> Result<Completion, Incomplete<E>> {
        if !self.has_failed()
            && let Some(event) = self.scanner.finish()
        {
            let judgement = self.judge.event(&event);
            gather(self.dialect, &mut self.gathered, judgement, &event);
            // One that was cut says nothing.
            self.ended = (judgement == Judgement::Error).then_some(StreamEnding::Error);
        }
        if self.is_too_large() {
            let limit = self.limit;
            return Err(self.broke(IncompleteReason::TooLarge(limit)));
        }
        if !self.is_complete() {
            let ending = self.ended.unwrap_or_else(|| self.judge.at_end());
            return Err(self.broke(IncompleteReason::Ended(ending)));
        }
        self.whole()
    }

    const fn is_too_large(&self) -> bool {
        self.gathered.size() > self.limit
    }

    /// The stream goes on no longer, for this reason.
    pub fn broke<E>(self, reason: IncompleteReason<E>) -> Incomplete<E> {
        Incomplete {
            reason,
            text: self.gathered.text_so_far(),
            usage: self.judge.reader.usage(),
            kind: None,
        }
    }

    fn whole<E>(self) -> Result<Completion, Incomplete<E>> {
        let finish = self.judge.finish().unwrap_or(Finish::Stop);
        let Some(tool_calls) = self.gathered.tool_calls(finish) else {
            return Err(self.broke(IncompleteReason::ToolCall));
        };
        let Some((text, reasoning)) = self.gathered.speech() else {
            return Err(self.broke(IncompleteReason::Ended(StreamEnding::Malformed)));
        };
        Ok(Completion {
            text,
            reasoning,
            tool_calls,
            finish,
            usage: self.judge.reader.usage(),
        })
    }
}

/// Takes an event in, if it passes.
fn gather(
    dialect: Dialect,
    gathered: &mut Gathered,
    judgement: Judgement,
    event: &StreamEvent<'_>,
) {
    if matches!(judgement, Judgement::Pass | Judgement::Content(_)) {
        dialects::gather(dialect, event, gathered);
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("dialect", &self.dialect)
            .field("bytes", &self.gathered.size())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
