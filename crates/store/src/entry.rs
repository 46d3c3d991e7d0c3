//! `Entry`: one transition as the history keeps it.

use fuseline_core::{ScopeName, Transition};
use serde::Serialize;

use crate::moment::Moment;

/// A change of a breaker's state, in wall-clock time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// When it took effect, in ms since 1970.
    pub at_ms: u64,
    /// The breaker's name.
    pub breaker: String,
    /// `provider`, `model` or `key`.
    pub scope: String,
    /// Which process of those that kept this history, by when it began: in ms since 1970.
    pub run: u64,
    /// The transition's number in that process.
    pub number: u64,
    /// The state left.
    pub from: String,
    /// The state entered.
    pub to: String,
    /// When an `open` or a forced state ends, in ms since 1970, where that is known.
    pub until_ms: Option<u64>,
    /// What decided.
    pub cause: String,
    /// The reasons in words.
    pub why: String,
}

impl Entry {
    pub(crate) fn of(name: &ScopeName, transition: &Transition, run: u64, now: &Moment) -> Self {
        Self {
            at_ms: now.wall_of(transition.at),
            breaker: name.to_string(),
            scope: name.scope().as_str().to_owned(),
            run,
            number: transition.number,
            from: transition.from.as_str().to_owned(),
            to: transition.to.as_str().to_owned(),
            until_ms: transition.until.map(|until| now.wall_of(until)),
            cause: transition.why.cause.as_str().to_owned(),
            why: transition.why.to_string(),
        }
    }
}
