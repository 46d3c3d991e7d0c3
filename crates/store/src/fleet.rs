//! A fleet: replicas that exchange what they know of their breakers, and act as one.
//!
//! ```text
//! Registry ── evidence, history ──► Worker ──► Member ── Request ──► Redis
//!  (core)   ◄── restore, grants ──  (own thread)      ◄── Reply ──   (one script)
//! ```
//!
//! What decides is without I/O: `member.rs` (what to offer, what to adopt, whose turn it is to probe) and `counts.rs` (what
//! all have counted). `model.rs` runs the former through everything that can go wrong. `worker.rs` brings them to a
//! registry (what it knows of one breaker: `part.rs`), `link.rs` to Redis (over a `Line`, in the words of `wire.rs`).

mod counts;
mod error;
mod link;
mod member;
mod message;
#[cfg(test)]
mod model;
mod part;
#[cfg(test)]
mod redis_tests;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;
mod translate;
mod turn;
mod wire;
mod worker;

use core::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use fuseline_core::{Policy, Registry, ScopeName};

pub use error::FleetError;
use link::Link;
use worker::{Counters, LOOK_EVERY, Worker};

/// Where a fleet meets.
#[derive(Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct FleetConfig {
    /// `redis://user:password@host:port/database`, or `rediss://` for TLS. A secret: nothing here repeats it. `host:port`
    /// may be several, with commas between them: of servers of which one at a time takes writes, or nodes of a cluster. One
    /// node of a cluster is enough to find the others.
    pub url: String,
    /// Certificates in PEM of authorities that are trusted beside the public ones. Default none.
    pub authorities: Option<Vec<u8>>,
    /// What every key begins with, so that several fleets can share a database. Default `fuseline`.
    pub prefix: String,
    /// Tells this replica from all others: a number by chance.
    pub replica: u64,
}

impl FleetConfig {
    /// Whether a fleet can be joined by this; connects to nothing.
    ///
    /// # Errors
    /// The address is none of Redis, or the authorities are none.
    pub fn check(&self) -> Result<(), FleetError> {
        Link::new(self).map(drop)
    }

    /// What others know this replica by.
    fn name(&self) -> String {
        format!("{:016x}", self.replica)
    }
}

impl fmt::Debug for FleetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetConfig")
            .field("prefix", &self.prefix)
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}

/// A replica's membership in its fleet. Dropped, it ends by itself; [`leave`](Self::leave) waits for that.
///
/// ```
/// use fuseline_core::{Policy, Registry, Scope};
/// use fuseline_store::{Fleet, FleetConfig};
///
/// let registry = Registry::default();
/// let config = FleetConfig {
///     url: "redis://127.0.0.1:6379".to_owned(),
///     authorities: None,
///     prefix: "fuseline".to_owned(),
///     replica: 0x5eed, // by chance, in earnest
/// };
/// // Breakers of keys are nobody else's business here.
/// let shares = |name: &fuseline_core::ScopeName| {
///     (name.scope() != Scope::Key).then(Policy::default)
/// };
/// let fleet = Fleet::join(&registry, &config, shares)?;
/// assert!(fleet.status().health().is_degraded, "alone until Redis answers");
/// fleet.leave();
/// # Ok::<(), fuseline_store::FleetError>(())
/// ```
#[derive(Debug)]
pub struct Fleet {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
    status: FleetStatus,
}

/// Reads how a fleet fares, from anywhere. Clones read the same.
#[derive(Clone, Debug, Default)]
pub struct FleetStatus(Arc<Counters>);

/// How a fleet fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetHealth {
    /// Whether each replica decides by itself, because Redis is out of reach.
    pub is_degraded: bool,
    /// Replicas that were there at the last exchange, this one among them.
    pub replicas: u64,
    /// Exchanges that were tried.
    pub turns: u64,
    /// Exchanges that failed.
    pub failures: u64,
    /// Breakers whose state Redis had forgotten, and was told again.
    pub resets: u64,
}

impl Fleet {
    /// Joins. Needs no Redis to be there: until it is, this replica decides by itself.
    ///
    /// `shares` gives the settings of a breaker by its name, for those that others have opened before this replica has
    /// called them; none for breakers that are nobody else's business.
    ///
    /// # Errors
    /// The address is none of Redis, or the system gives no thread.
    pub fn join(
        registry: &Registry,
        config: &FleetConfig,
        shares: impl Fn(&ScopeName) -> Option<Policy> + Send + 'static,
    ) -> Result<Self, FleetError> {
        let link = Link::new(config)?;
        let (stop, stopped) = mpsc::channel();
        let status = FleetStatus::default();
        let counters = Arc::clone(&status.0);
        let shares = Box::new(shares);
        let mut worker = Worker::new(
            registry.clone(),
            Box::new(link),
            shares,
            config.name(),
            counters,
        );
        let work = move || {
            loop {
                worker.look();
                if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return worker.leave();
                }
            }
        };
        let thread = thread::Builder::new()
            .name("fuseline-fleet".to_owned())
            .spawn(work)?;
        Ok(Self {
            stop,
            thread,
            status,
        })
    }

    /// How it fares, to be read from elsewhere.
    pub fn status(&self) -> FleetStatus {
        self.status.clone()
    }

    /// Leaves: gives its leases back, in one last exchange, and waits for that. What it has told holds.
    pub fn leave(self) {
        drop(self.stop);
        drop(self.thread.join());
    }
}

impl FleetStatus {
    /// The breakers that somebody in the fleet has trouble with, or had within the last second; none without Redis.
    pub fn troubled(&self) -> Vec<ScopeName> {
        let named = self.0.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.iter().cloned().collect()
    }

    /// How the fleet fares now.
    pub fn health(&self) -> FleetHealth {
        let counters = &self.0;
        FleetHealth {
            is_degraded: counters.is_degraded.load(Ordering::Relaxed),
            replicas: counters.replicas.load(Ordering::Relaxed),
            turns: counters.turns.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            resets: counters.resets.load(Ordering::Relaxed),
        }
    }
}
