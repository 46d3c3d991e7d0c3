//! Keeps the state of breakers over restarts, off the way of every call.
//!
//! ```text
//! Registry ── export, history ──► Pump ── Batch ──► Store ── Records ──► Registry::restore
//!  (core)                      (own thread)    (SQLite, memory)          (the next process)
//! ```
//!
//! A [`Pump`] looks at a registry's breakers from a thread of its own and writes what has changed: transitions at once,
//! counts each second. No call waits for it; what it could not write in time it counts. A [`Store`] keeps one
//! [`Record`] a breaker and, if it can, a history of [`Entry`]s. A `Queue` keeps calls that are to be sent later. There is
//! no async runtime here.
//!
//! Features, both by default: `sqlite` keeps state in a file, `redis` lets replicas meet in a `Fleet`. A `Queue` needs one of
//! them, a `Keeper` both.
//!
//! ```
//! use fuseline_core::{Clock, Kind, Outcome, Policy, Registry, ScopeName, State};
//! use fuseline_store::{Memory, Moment, Pump, Store};
//!
//! let kept = Memory::default();
//! let registry = Registry::default();
//! let name = ScopeName::provider("openai");
//! let breaker = registry.get_breaker(&name, &Policy::default(), registry.now())?;
//! for _ in 0..5 {
//!     let permit = breaker.try_acquire(registry.now())?;
//!     permit.record(&Outcome::failure(Kind::ServerError), registry.now());
//! }
//! Pump::start(&registry, Box::new(kept.clone()))?.stop(); // writes what is left
//!
//! let next = Registry::default(); // the next process
//! let now = Moment::read(next.clock());
//! for record in kept.clone().load()? {
//!     next.restore(&record.saved(&now), &Policy::default(), now.tick)?;
//! }
//! let breaker = next.find_breaker(&name).expect("restored");
//! assert_eq!(breaker.state(next.now()), State::Open);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod contract;
mod entry;
mod error;
#[cfg(feature = "redis")]
mod fleet;
#[cfg(all(feature = "redis", feature = "sqlite"))]
mod keeper;
#[cfg(feature = "redis")]
mod line;
mod memory;
mod moment;
mod pump;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod queue;
mod record;
#[cfg(test)]
#[cfg(feature = "redis")]
mod redis_server;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;

pub use entry::Entry;
pub use error::StoreError;
#[cfg(feature = "redis")]
pub use fleet::{Fleet, FleetConfig, FleetError, FleetHealth, FleetStatus};
#[cfg(all(feature = "redis", feature = "sqlite"))]
pub use keeper::{Keeper, KeeperError};
pub use memory::Memory;
pub use moment::{Boot, Moment};
pub use pump::{Kept, Pump, Tally};
#[cfg(feature = "redis")]
pub use queue::RedisQueue;
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub use queue::{
    Digest, Found, Lease, NewCall, Outlook, Queue, QueueConfig, QueueError, Sent, Stage, Submitted,
    Taken,
};
pub use record::{Counts, End, Reasons, Record, Window, WindowOf};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteQueue};
pub use store::{Batch, Store};
