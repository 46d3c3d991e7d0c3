//! `Streamed`: how the stream went that a caller got, for his call's line in the log.

use std::time::Duration;

use fuseline_llm::{StreamEnding, StreamGuard, Usage};

/// What the guard of a call's stream has seen.
pub(crate) struct Streamed {
    /// None where the caller left before its end.
    pub(crate) ending: Option<StreamEnding>,
    pub(crate) usage: Usage,
    pub(crate) left_out: u64,
    pub(crate) first_token: Option<Duration>,
    /// Content events that came.
    events: u64,
    /// Bytes that the caller got.
    bytes: u64,
}

impl Streamed {
    pub(crate) fn of(guard: &StreamGuard, bytes: u64) -> Self {
        Self {
            ending: guard.ending(),
            usage: guard.usage(),
            left_out: guard.left_out(),
            first_token: guard.first_token(),
            events: guard.content_events(),
            bytes,
        }
    }

    /// Says that a stream which the caller has a part of was not completed, and how much he has.
    pub(crate) fn tell_failure(&self, request_id: &str, target: &str) {
        let ending = self.ending.map(StreamEnding::as_str);
        let (events, bytes) = (self.events, self.bytes);
        tracing::warn!(
            request_id,
            target,
            ending,
            events,
            bytes,
            "a stream broke off"
        );
    }
}
