//! What replicas and the place they share say to each other about one breaker. Plain data; times are the place's own.

use fuseline_core::{ScopeName, State};
use serde::{Deserialize, Serialize};

/// What the fleet holds a breaker to be, in some version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(skip, default = "closed")]
    pub(crate) state: State,
    /// When an `open` or a forced state ends; 0 where a forced one has no end.
    #[serde(skip)]
    pub(crate) until: u64,
    /// When it began.
    pub(crate) since: u64,
    pub(crate) episodes: u32,
    /// What was observed, against which threshold, in thousandths.
    pub(crate) observed: u64,
    pub(crate) threshold: u64,
    pub(crate) kind: Option<String>,
    /// The replica that says so.
    pub(crate) by: String,
    /// An operator told it to.
    #[serde(default)]
    pub(crate) is_command: bool,
}

fn closed() -> State {
    State::Closed
}

impl Record {
    /// Whether it stands against calls, or for them, at this time. An `open` does until a probe says otherwise.
    pub(crate) fn holds(&self, now: u64) -> bool {
        match self.state {
            State::Open | State::HalfOpen => true,
            State::ForcedOpen | State::ForcedClosed => self.until == 0 || now < self.until,
            State::Closed | State::Degraded => false,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }
}

/// One replica's turn with one breaker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) name: ScopeName,
    /// When it was sent, as far as the replica knows. One that comes more than a second early or late only reads: what it
    /// says was true at another time.
    pub(crate) sent: u64,
    /// What the replica has counted, as text.
    pub(crate) counts: String,
    pub(crate) offer: Option<Offer>,
    pub(crate) ask: Ask,
}

/// A record that is to become the fleet's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Offer {
    /// Taken only where it is above the version there.
    pub(crate) version: u64,
    pub(crate) record: Record,
    /// The fencing token of the lease under which it was found out; 0 for none. Refused where a higher one was given out.
    pub(crate) token: u64,
    pub(crate) weight: Weight,
}

/// Whether an offer waits for the end of a probe elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weight {
    /// It does.
    Evidence,
    /// It does not.
    Command,
}

/// What a replica wants of the lease on the fleet's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// Nothing.
    Nothing,
    /// To have it for `length` ms, with a token above `seen`.
    Want { seen: u64, length: u64 },
    /// To keep it for another `length` ms, with so many good probes so far.
    Keep { token: u64, length: u64, good: u32 },
    /// To give it back.
    Back { token: u64, good: u32 },
}

/// How things stand after a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reply {
    pub(crate) now: u64,
    /// Whether the offer was taken.
    pub(crate) taken: bool,
    /// 0 where there is no record.
    pub(crate) version: u64,
    pub(crate) record: Option<Record>,
    /// The highest token given out.
    pub(crate) token: u64,
    /// Who has the lease under that token, and until when, if it has not ended.
    pub(crate) holder: Option<(String, u64)>,
    /// Good probes of this episode.
    pub(crate) good: u32,
    /// What each replica has counted, and when it said so.
    pub(crate) counts: Vec<(String, u64, String)>,
}
