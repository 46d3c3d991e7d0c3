//! `Queue`: calls that wait to be sent, and what came of them, kept over restarts.
//!
//! ```text
//!            submit              take                    finish               ttl
//!   nothing ───────► waiting ──────────► sent under ──────────────► done ──────────► nothing
//!                      │  ▲               a lease                                      ▲
//!                      │  └─ give back, ─────┘                                         │
//!                      │     or the lease ends                                         │
//!                      └──────────── expires ─────────────────► expired ──── ttl ──────┘
//! ```
//!
//! A queue knows nothing of HTTP: requests and results are bytes, and a tenant is a digest. What it holds no secret of
//! cannot leak from it.

#[cfg(test)]
#[cfg(all(feature = "redis", feature = "sqlite"))]
mod contract;
#[cfg(feature = "redis")]
mod redis;

use core::fmt;
use std::time::Duration;

#[cfg(feature = "redis")]
pub use self::redis::RedisQueue;
use crate::error::StoreError;
#[cfg(feature = "redis")]
use crate::fleet::FleetError;

/// What a row costs beside its request or result, in bytes.
pub(crate) const ROW: u64 = 512;
/// After so many sends a call lets those behind it go first, so that one that never succeeds does not hold all others
/// up.
pub(crate) const PATIENCE: u32 = 5;

/// A digest: who a call belongs to, or by which name he knows it.
pub type Digest = [u8; 32];

/// A place that keeps calls until they are sent, and their results for a while.
///
/// What every queue promises, and one suite of tests holds all of them to:
///
/// - **Durable.** What [`submit`](Self::submit) and [`finish`](Self::finish) have acknowledged is there for a process
///   that comes after this one was killed.
/// - **In order.** Within a lane calls are taken in the order in which they were submitted, at most
///   [`lane_places`](QueueConfig::lane_places) at once. A call that was sent five times in vain lets the others go first.
/// - **At least once.** A call that was taken is there until it is finished. Whoever takes it holds a lease; when that
///   ends, the call is taken again.
/// - **Bounded.** By calls that wait, and by bytes of requests and results together.
/// - **To its tenant alone.** A call is found by its id and its tenant's digest, and to all others it does not exist.
///
/// `now` is the time of day in ms since 1970. A queue that several processes share goes by its server's clock instead.
/// A queue may block: it is to be asked from a thread of its own.
pub trait Queue: fmt::Debug + Send {
    /// Keeps a call, unless there is no room for it, or one of the same [`name`](NewCall::name) is there that has not
    /// expired.
    ///
    /// # Errors
    /// The call has not been kept; where a server's answer was lost, it may have been.
    fn submit(&mut self, call: &NewCall, now: u64) -> Result<Submitted, QueueError>;

    /// What there is to do. Calls whose time is over expire, and results whose time is over go.
    ///
    /// # Errors
    /// The store cannot be read.
    fn look(&mut self, now: u64) -> Result<Outlook, QueueError>;

    /// Takes the lane's next call, to be sent; none where there is none, or all places are taken.
    ///
    /// # Errors
    /// Nothing has been taken; where a server's answer was lost, the lease ends by itself.
    fn take(&mut self, lane: &str, now: u64) -> Result<Option<Taken>, QueueError>;

    /// Prolongs a lease; `false` where it is not held any more.
    ///
    /// # Errors
    /// The store cannot be written.
    fn keep(&mut self, lease: &Lease, now: u64) -> Result<bool, QueueError>;

    /// Gives a call back to its place in the lane; `false` where the lease is not held any more.
    ///
    /// # Errors
    /// The store cannot be written; the lease ends by itself.
    fn give_back(&mut self, lease: &Lease, how: Sent, now: u64) -> Result<bool, QueueError>;

    /// Keeps what came of a call, in the place of its request. The first result counts: `false` where there is one, or
    /// nobody waits for it any more.
    ///
    /// # Errors
    /// The result has not been kept; come again.
    fn finish(&mut self, id: &str, result: &[u8], now: u64) -> Result<bool, QueueError>;

    /// How this tenant's call stands.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&mut self, id: &str, tenant: &Digest, now: u64) -> Result<Option<Found>, QueueError>;

    /// Removes this tenant's call, with its result; `false` where there is none. One that is being sent is not called back.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove(&mut self, id: &str, tenant: &Digest, now: u64) -> Result<bool, QueueError>;

    /// Whether what was acknowledged survives the end of whatever keeps it, too. A Redis without `appendonly` forgets; one
    /// with it is safe to the second, and with `appendfsync always` at once.
    ///
    /// # Errors
    /// The server does not say.
    fn is_durable(&mut self) -> Result<bool, QueueError>;
}

/// What bounds a queue. The same for all who share it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct QueueConfig {
    /// Calls that may wait.
    pub max_calls: u64,
    /// Bytes of all requests and results, with 512 more for each.
    pub max_bytes: u64,
    /// How long a call may wait.
    pub expires: Duration,
    /// How long a result is kept.
    pub ttl: Duration,
    /// How long a lease is: after a crash calls are sent again so much later.
    pub lease: Duration,
    /// Calls of one lane that may be under way at once.
    pub lane_places: u32,
}

/// A call to be kept.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct NewCall {
    /// By which it is found; unique, and nobody's guess.
    pub id: String,
    /// Calls of one lane are sent in their order.
    pub lane: String,
    /// Whose call it is.
    pub tenant: Digest,
    /// By which its tenant would know it if he sent it again.
    pub name: Option<Digest>,
    /// The call itself.
    pub request: Vec<u8>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "kept, known, or no room")]
#[must_use]
pub enum Submitted {
    /// It is kept.
    Kept,
    /// It was kept before, under this id.
    Known(String),
    /// There is no room.
    Full,
}

/// What there is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that callers read")]
pub struct Outlook {
    /// Calls that wait or are being sent.
    pub waiting: u64,
    /// Bytes of requests and results, as they are bounded.
    pub bytes: u64,
    /// Calls that have expired since the last look; told once.
    pub expired: u64,
    /// Lanes with a call that can be taken, the one with the oldest call first.
    pub lanes: Vec<String>,
}

/// A call to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that callers read")]
pub struct Taken {
    /// What it was taken under.
    pub lease: Lease,
    /// The call itself.
    pub request: Vec<u8>,
    /// How often it was sent, this time among them.
    pub sends: u32,
    /// How often it failed although its circuit was closed.
    pub strikes: u32,
}

/// The right to send a call, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that queues read")]
pub struct Lease {
    /// The call's id.
    pub id: String,
    /// Tells this lease from the ones before it.
    pub token: u64,
}

/// How a call comes back to its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "complete by definition")]
pub enum Sent {
    /// It was not sent after all.
    NotAtAll,
    /// It failed while its circuit was open anyway.
    AsProbe,
    /// It failed while its circuit was closed: a strike.
    InVain,
}

/// How a call stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that callers read")]
pub struct Found {
    /// How far it is.
    pub stage: Stage,
    /// How often it was sent so far.
    pub sends: u32,
    /// When it expires if it is not done, or is forgotten if it is; in ms since 1970.
    pub ends_ms: u64,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition, as the picture above"
)]
pub enum Stage {
    /// It waits, with so many of its lane before it.
    Waiting {
        /// How many.
        ahead: u64,
    },
    /// It is being sent.
    Sending,
    /// This came of it.
    Done {
        /// As it was given to [`Queue::finish`].
        result: Vec<u8>,
    },
    /// It waited for too long, and is not sent any more.
    Expired,
}

/// Why a queue could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

#[cfg(feature = "sqlite")]
impl NewCall {
    /// What it takes of the bound.
    pub(crate) fn size(&self) -> u64 {
        size(&self.request)
    }
}

/// What a request or a result takes of the bound.
#[cfg(feature = "sqlite")]
pub(crate) fn size(content: &[u8]) -> u64 {
    content.len() as u64 + ROW
}

/// Milliseconds, as stores keep them.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
