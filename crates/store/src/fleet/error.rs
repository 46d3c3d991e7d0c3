//! `FleetError`: why a fleet cannot be joined, or its server not be used just now. No message repeats the address, which
//! may hold a password.

/// Why a fleet's server could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The address is none of Redis.
    #[error(
        "`fleet` is no Redis URL; write redis://user:password@host:port/database, or rediss:// for TLS; several host:port (at most 16) with commas between them"
    )]
    Address,
    /// The server cannot be reached, or did not answer in time.
    #[error("the fleet's Redis cannot be used: {0}; see that it runs, and that `fleet` names it")]
    Away(String),
    /// The server answers, but not as asked.
    #[error(
        "the fleet's Redis refuses: {0}; give its user EVAL, EVALSHA and the keys of `fleet_prefix`"
    )]
    Refused(String),
    /// An answer that the scripts do not give.
    #[error(
        "the fleet's Redis gave an answer that is none; give the fleet a database or a `fleet_prefix` of its own"
    )]
    Garbled,
    /// The system gives no thread.
    #[error("the fleet cannot be joined: {0}")]
    Thread(#[from] std::io::Error),
}
