//! `fuseline._native`: breakers, verdicts and watched streams for the Python package around it.
//!
//! It is private: what users see is written by hand in `python/fuseline`. Nothing here waits, and nothing runs in the
//! background but what [`keep`](crate::keep) is asked for; whoever awaits does so in his own language.

mod breaker;
mod clock;
mod entered;
mod errors;
mod keep;
mod permit;
mod policy;
mod registry;
mod verdict;
mod view;
mod watch;

/// The module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::breaker::{Breaker, Handle};
    #[pymodule_export]
    use super::clock::Clock;
    #[pymodule_export]
    use super::keep::Keeper;
    #[pymodule_export]
    use super::permit::Permit;
    #[pymodule_export]
    use super::registry::{Events, Registry};
    #[pymodule_export]
    use super::verdict::{Verdict, classify};
    #[pymodule_export]
    use super::watch::{Request, Watch};

    /// The version of all crates and packages.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
