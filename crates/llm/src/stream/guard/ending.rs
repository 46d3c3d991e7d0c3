//! `StreamEnding`: how a stream ended, each way told apart.

use std::fmt;
use std::time::Duration;

use super::timers::Timer;
use crate::classify::Ending;
use crate::evidence::Fault;

/// How a stream ended. Its text is the sentence for logs and for the caller; the text is not API, [`as_str`] is.
///
/// [`as_str`]: StreamEnding::as_str
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamEnding {
    /// The answer is complete. Whatever happened to the connection afterwards does not matter.
    Complete,
    /// It came to its end and said nothing: no event, or none but an end marker.
    Empty,
    /// It came to its end without its end marker, or called itself done before it was.
    Truncated,
    /// The connection broke.
    Broken(Fault),
    /// A limit passed, with its length. By the timer it was silent (`first_token`: no content, whatever else came),
    /// stalled, idle, too slow to be of use, or too long in all.
    TimedOut {
        /// Which limit.
        timer: Timer,
        /// What it was.
        limit: Duration,
    },
    /// An event was an error: see [`StreamGuard::error`](super::StreamGuard::error).
    Error,
    /// An event in the middle of a tool call, or in a JSON array, was no JSON.
    Malformed,
    /// An event was larger than [`Scanner::EVENT_LIMIT`](crate::Scanner::EVENT_LIMIT).
    Oversized,
    /// Its framing was broken.
    Corrupt,
    /// The caller left.
    Cancelled,
    /// The caller left, having waited for `cancel_counts_after` without a content event.
    Unserved,
    /// Whoever passed it on could do so no longer.
    Stopped,
}

impl StreamEnding {
    /// The name in logs, and the code in error events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "stream_complete",
            Self::Empty => "stream_empty",
            Self::Truncated => "stream_truncated",
            Self::Broken(_) => "stream_broken",
            Self::TimedOut { timer, .. } => match timer {
                Timer::FirstToken => "stream_silent",
                Timer::Stall => "stream_stall",
                Timer::Rate => "stream_slow",
                Timer::Idle => "stream_idle",
                Timer::Total => "stream_total",
            },
            Self::Error => "stream_error",
            Self::Malformed => "stream_malformed",
            Self::Oversized => "stream_oversized",
            Self::Corrupt => "stream_corrupt",
            Self::Cancelled => "cancelled",
            Self::Unserved => "unserved",
            Self::Stopped => "shutting_down",
        }
    }

    /// What the classifier is told; beside it, it is told what the events said.
    ///
    /// A stream that was given up for what it sent counts as cut: it is the guard that cuts it.
    pub const fn for_classifier(self) -> Ending {
        match self {
            Self::Complete | Self::Empty | Self::Truncated | Self::Error => Ending::Complete,
            Self::Broken(fault) => Ending::Broken(fault),
            Self::TimedOut { timer, .. } => Ending::Broken(match timer {
                Timer::FirstToken | Timer::Stall | Timer::Rate | Timer::Idle => Fault::Stall,
                Timer::Total => Fault::Deadline,
            }),
            Self::Malformed | Self::Oversized | Self::Corrupt => Ending::Broken(Fault::Reset),
            Self::Cancelled | Self::Stopped => Ending::Left,
            Self::Unserved => Ending::Broken(Fault::Deadline),
        }
    }

    /// Whether the caller must be told that his answer is not whole.
    pub(super) const fn is_failure(self) -> bool {
        !matches!(
            self,
            Self::Complete | Self::Empty | Self::Cancelled | Self::Unserved
        )
    }
}

impl fmt::Display for StreamEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Complete => "the stream is complete",
            Self::Empty => "the stream ended and said nothing",
            Self::Truncated => "the provider's stream ended before the answer was complete",
            Self::Broken(fault) => {
                return write!(
                    f,
                    "the connection to the provider broke before the answer was complete ({})",
                    fault.as_str()
                );
            }
            Self::TimedOut { timer, limit } => {
                let what = match timer {
                    Timer::FirstToken => "sent no content",
                    Timer::Stall => "sent no further content",
                    Timer::Rate => "sent content too slowly",
                    Timer::Idle => "sent nothing",
                    Timer::Total => "was not complete",
                };
                let (key, limit) = (timer.as_str(), humantime::format_duration(*limit));
                return write!(f, "the provider's stream {what} for {limit} (limit {key})");
            }
            Self::Error => "the provider's stream failed with an error of its own",
            Self::Malformed => "the provider's stream held an event that is no JSON",
            Self::Oversized => "the provider's stream held an event of more than 1 MiB",
            Self::Corrupt => "the framing of the provider's stream is broken",
            Self::Cancelled => "the caller left",
            Self::Unserved => "the caller left after waiting for content in vain",
            Self::Stopped => "the gateway was stopped before the answer was complete",
        };
        f.write_str(what)
    }
}
