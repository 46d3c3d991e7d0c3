//! One exchange with the place that a fleet shares, whatever that is.

use fuseline_core::ScopeName;

use super::error::FleetError;
use super::message::{Reply, Request};

/// The place that replicas share. It may block, for a short while.
pub(crate) trait Server: Send {
    /// All requests, then the index; an error where any of it is not known to have arrived.
    fn turn(&mut self, turn: &Turn) -> Result<Answers, FleetError>;
}

/// What one replica says at once.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) requests: Vec<Request>,
    pub(crate) index: Option<Index>,
}

/// A replica is here, and these breakers matter to it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// How far back it wants to be told of others' breakers, in ms; 0 for all there are.
    pub(crate) look_back: u64,
    pub(crate) names: Vec<ScopeName>,
}

/// Replies in the order of the requests, and who and what is there, where that was asked.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) replies: Vec<Reply>,
    pub(crate) present: Option<Present>,
}

/// Who and what is there.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) now: u64,
    /// Replicas that were here within the last second.
    pub(crate) alive: u64,
    /// Breakers that matter to somebody.
    pub(crate) names: Vec<ScopeName>,
}
