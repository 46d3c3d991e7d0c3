//! `Reply`: what one request gets, from a canned answer to a broken connection.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

/// What one request gets.
///
/// [`Reply::ok`] and [`Reply::status`] answer in the caller's dialect; the methods then change one thing each. *Events* below
/// are content events: the opening and closing events of a dialect go out too but are not counted.
///
/// ```
/// # use std::time::Duration;
/// # use fuseline_mock::Reply;
/// let choppy = Reply::ok().events(20).gap(Duration::from_millis(50)).cut_after(5);
/// let limited = Reply::status(429).retry_after(2);
/// # let _ = (choppy, limited);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Reply {
    pub(crate) delay: Duration,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) content: Content,
    pub(crate) text: Option<String>,
    pub(crate) error: ErrorText,
    pub(crate) events: Option<usize>,
    pub(crate) first_gap: Duration,
    pub(crate) gap: Duration,
    pub(crate) ending: Ending,
}

/// What is sent, or what happens in its place.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A good answer below 400, an error body from 400 on, in the caller's dialect.
    Canned,
    /// These bytes as the body.
    Body(Bytes),
    /// These bytes as a streamed body, piece by piece.
    Chunks(Vec<Bytes>),
    /// These bytes in place of a whole HTTP answer.
    Raw(Bytes),
    /// The connection closes.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing, for as long as the caller waits.
    Stall,
}

/// Parts of a canned error body; what is absent follows from the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorText {
    pub(crate) kind: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

/// How a body ends: the number is that of content events sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Cut(usize),
    Reset(usize),
    Stall(usize),
}

impl Reply {
    /// A good answer: plain, or streamed where the request says `"stream": true`.
    pub fn ok() -> Self {
        Self::with(200, Content::Canned)
    }

    /// This status: from 400 on with an error body in the caller's dialect, below with the good answer's.
    pub fn status(status: u16) -> Self {
        Self::with(status, Content::Canned)
    }

    /// Closes the connection before any head.
    pub fn close() -> Self {
        Self::with(200, Content::Close)
    }

    /// Resets the connection before any head.
    pub fn reset() -> Self {
        Self::with(200, Content::Reset)
    }

    /// Sends nothing and keeps the connection open until the caller leaves.
    pub fn stall() -> Self {
        Self::with(200, Content::Stall)
    }

    /// Sends these bytes in place of an HTTP answer, then closes.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::with(200, Content::Raw(bytes.into()))
    }

    fn with(status: u16, content: Content) -> Self {
        Self {
            delay: Duration::ZERO,
            status,
            headers: Vec::new(),
            content,
            text: None,
            error: ErrorText::default(),
            events: None,
            first_gap: Duration::ZERO,
            gap: Duration::ZERO,
            ending: Ending::Complete,
        }
    }

    /// Waits this long before the head.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Adds a header. A name that the mock would set itself (`content-type`, the request id) is replaced; a name given
    /// twice is sent twice.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds `retry-after` in seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", seconds.to_string())
    }

    /// The text of a canned answer; each word is one event of a stream.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The error type of a canned error body.
    pub fn error_type(mut self, kind: impl Into<String>) -> Self {
        self.error.kind = Some(kind.into());
        self
    }

    /// The `code` of a canned error body (OpenAI's dialect; Anthropic's has none).
    pub fn error_code(mut self, code: impl Into<String>) -> Self {
        self.error.code = Some(code.into());
        self
    }

    /// The message of a canned error body.
    pub fn error_message(mut self, message: impl Into<String>) -> Self {
        self.error.message = Some(message.into());
        self
    }

    /// Sends this body, as `application/json` unless a header says otherwise.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.content = Content::Body(body.into());
        self
    }

    /// Streams these bytes exactly, as `text/event-stream` unless a header says otherwise; each piece is one event.
    pub fn chunks<C: Into<Bytes>>(mut self, chunks: impl IntoIterator<Item = C>) -> Self {
        self.content = Content::Chunks(chunks.into_iter().map(Into::into).collect());
        self
    }

    /// The number of events of a canned stream; the text's words repeat as needed.
    pub fn events(mut self, events: usize) -> Self {
        self.events = Some(events);
        self
    }

    /// Silence before the first event, after the head and the opening events.
    pub fn first_gap(mut self, gap: Duration) -> Self {
        self.first_gap = gap;
        self
    }

    /// Silence between events; a plain body goes out in two halves with the gap between them.
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// Closes the connection without a terminator after this many events. Of a plain body, 0 sends only the head and any
    /// other number one half.
    pub fn cut_after(mut self, events: usize) -> Self {
        self.ending = Ending::Cut(events);
        self
    }

    /// As [`cut_after`](Self::cut_after), with a reset in place of a close.
    pub fn reset_after(mut self, events: usize) -> Self {
        self.ending = Ending::Reset(events);
        self
    }

    /// As [`cut_after`](Self::cut_after), but the connection stays open and silent.
    pub fn stall_after(mut self, events: usize) -> Self {
        self.ending = Ending::Stall(events);
        self
    }

    /// What makes this reply impossible to send, if anything does.
    pub(crate) fn problem(&self) -> Option<String> {
        if !(200..=599).contains(&self.status) || StatusCode::from_u16(self.status).is_err() {
            return Some(format!("status is {}, must be 200 to 599", self.status));
        }
        for (name, value) in &self.headers {
            if HeaderName::try_from(name).is_err() {
                return Some(format!("headers: {name:?} is no header name"));
            }
            if HeaderValue::try_from(value).is_err() {
                return Some(format!(
                    "headers.{name}: the value has characters that HTTP does not allow"
                ));
            }
            if name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding")
            {
                return Some(format!(
                    "headers.{name}: the framing is set by the mock; use raw to send another"
                ));
            }
        }
        None
    }
}

/// What the reply is, in a few words: `200`, `503 after 2s`, `200, cut after 5 events`, `reset`.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Canned | Content::Body(_) | Content::Chunks(_) => write!(f, "{}", self.status),
            Content::Raw(_) => f.write_str("raw bytes"),
            Content::Close => f.write_str("closed"),
            Content::Reset => f.write_str("reset"),
            Content::Stall => f.write_str("silence"),
        }?;
        if !self.delay.is_zero() {
            write!(f, " after {}", humantime::format_duration(self.delay))?;
        }
        match self.ending {
            Ending::Complete => Ok(()),
            Ending::Cut(sent) => write!(f, ", cut after {sent} events"),
            Ending::Reset(sent) => write!(f, ", reset after {sent} events"),
            Ending::Stall(sent) => write!(f, ", silent after {sent} events"),
        }
    }
}
