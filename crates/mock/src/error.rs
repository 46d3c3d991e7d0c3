//! The two errors of the mock: a script that cannot be played, and an event that did not come in time.

use std::fmt;
use std::time::Duration;

use crate::Counts;

/// A script that cannot be played: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    place: String,
    problem: String,
}

impl ScriptError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ScriptError {}

/// What was waited for did not come in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedOut {
    pub(crate) after: Duration,
    pub(crate) counts: Counts,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "waited {:?} in vain; so far {:?}",
            self.after, self.counts
        )
    }
}

impl std::error::Error for TimedOut {}
