//! `StreamError`: how a guarded answer ended that is not complete.

use std::fmt;

use fuseline_core::Kind;
use fuseline_llm::{IncompleteReason, StreamEnding};

/// How a guarded answer ended that is not complete: the last item of a [`GuardedBytes`](crate::GuardedBytes).
///
/// ```
/// use fuseline::{Kind, StreamError, classify::StreamEnding};
///
/// let error: StreamError<std::io::Error> =
///     StreamError::Incomplete { ending: StreamEnding::Truncated, kind: Kind::StreamTruncated };
/// assert_eq!(error.to_string(), "the provider's stream ended before the answer was complete");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError<E> {
    /// The stream failed with an error of its own.
    Inner(E),
    /// It ended otherwise than by its end marker.
    Incomplete {
        /// How.
        ending: StreamEnding,
        /// What that is for the breaker.
        kind: Kind,
    },
}

impl<E> StreamError<E> {
    pub(super) fn into_reason(self) -> IncompleteReason<E> {
        match self {
            Self::Inner(error) => IncompleteReason::Inner(error),
            Self::Incomplete { ending, .. } => IncompleteReason::Ended(ending),
        }
    }
}

impl<E: fmt::Display> fmt::Display for StreamError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inner(error) => error.fmt(f),
            Self::Incomplete {
                ending: StreamEnding::Error,
                kind,
            } => write!(f, "{} ({kind})", StreamEnding::Error),
            Self::Incomplete { ending, .. } => ending.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for StreamError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // It speaks for itself, so what comes next is what caused it.
            Self::Inner(error) => error.source(),
            Self::Incomplete { .. } => None,
        }
    }
}
