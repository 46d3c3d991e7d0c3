//! `Transcript`: what the events of a stream have said, in bounded space.

use std::fmt;

use super::content;

/// More of an error's event is not kept.
const MAX_ERROR: usize = 64 << 10;
const MAX_FINISH: usize = 64;
const DONE: &str = "[DONE]";

/// One event of a stream, whatever its framing.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that drivers write down"
)]
pub struct Event<'a> {
    /// Its name, empty where it has none: the field `event` of SSE, the event or exception type of an AWS frame. What
    /// the framing itself calls an error is named `error`, or ends in `Exception`.
    pub name: &'a str,
    /// Its data.
    pub data: &'a str,
}

/// What the events of a stream have said so far: whether there was content, how it finished, the first error.
///
/// ```
/// use fuseline_llm::{Event, Transcript};
///
/// let mut transcript = Transcript::default();
/// transcript.note(&Event { name: "", data: r#"{"choices": [{"delta": {"role": "assistant"}}]}"# });
/// assert!(!transcript.has_content());
/// transcript.note(&Event { name: "", data: r#"{"choices": [{"delta": {"content": "Hi"}}]}"# });
/// assert!(transcript.has_content() && !transcript.is_complete());
/// transcript.note(&Event { name: "", data: "[DONE]" });
/// assert!(transcript.is_complete());
/// ```
#[derive(Clone, Default)]
pub struct Transcript {
    has_data: bool,
    has_content: bool,
    finish: Option<Box<str>>,
    is_end: bool,
    error: Option<Failed>,
}

/// The event that was an error.
#[derive(Clone)]
pub(super) struct Failed {
    pub(super) name: Box<str>,
    pub(super) data: Box<str>,
}

impl Transcript {
    /// Takes an event in. Comments need not be told. What comes after an error is not looked at.
    pub fn note(&mut self, event: &Event<'_>) {
        let data = event.data.trim();
        if self.error.is_some() || data.is_empty() {
            return;
        }
        if data == DONE {
            self.is_end = true;
            return;
        }
        self.has_data = true;
        let is_named_error = event.name == "error" || event.name.ends_with("xception");
        if is_named_error {
            return self.note_error(event.name, data);
        }
        let Some(reading) = content::read(data.as_bytes()) else {
            return;
        };
        if reading.is_error {
            return self.note_error(event.name, data);
        }
        self.has_content |= reading.has_content;
        self.is_end |= reading.is_end || matches!(event.name, "message_stop" | "messageStop");
        if let Some(reason) = reading.finish {
            self.note_finish(&reason);
        }
    }

    /// The model stopped for this reason, in the provider's word.
    pub fn note_finish(&mut self, reason: &str) {
        self.has_data = true;
        self.finish = Some(beginning(reason, MAX_FINISH).into());
    }

    /// There was text, reasoning or tool-call data.
    pub fn note_content(&mut self) {
        (self.has_data, self.has_content) = (true, true);
    }

    /// There was an error. The first one stays.
    pub fn note_error(&mut self, name: &str, data: &str) {
        self.has_data = true;
        self.error.get_or_insert_with(|| Failed {
            name: beginning(name, MAX_FINISH).into(),
            data: beginning(data, MAX_ERROR).into(),
        });
    }

    /// Whether text, reasoning or tool-call data has come.
    pub const fn has_content(&self) -> bool {
        self.has_content
    }

    /// Whether the answer is whole: the model has said why it stopped, or the end marker came after content.
    pub const fn is_complete(&self) -> bool {
        self.error.is_none() && (self.finish.is_some() || (self.is_end && self.has_content))
    }

    /// No event that could be read said anything.
    pub(super) const fn has_said_nothing(&self) -> bool {
        !self.has_content && self.finish.is_none() && self.error.is_none()
    }

    pub(super) const fn has_data(&self) -> bool {
        self.has_data
    }

    pub(super) fn finish(&self) -> Option<&str> {
        self.finish.as_deref()
    }

    pub(super) const fn is_end(&self) -> bool {
        self.is_end
    }

    pub(super) const fn error(&self) -> Option<&Failed> {
        self.error.as_ref()
    }
}

/// The longest beginning of at most so many bytes.
fn beginning(text: &str, most: usize) -> &str {
    let most = most.min(text.len());
    let mut ends = (0..=most).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

// What the model wrote and errors that may show secrets stay out.
impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("has_content", &self.has_content)
            .field("finish", &self.finish)
            .field("is_error", &self.error.is_some())
            .finish_non_exhaustive()
    }
}
