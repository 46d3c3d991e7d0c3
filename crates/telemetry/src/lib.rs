//! Turns breaker snapshots, transitions and ended calls into metrics and logs.
//!
//! On the way of a call nothing is done but counting its end: [`Metrics`] reads the breakers when somebody scrapes, and
//! [`TransitionReader`] drains their histories from a task of its own.

mod catalogue;
mod fleet;
mod names;
mod prometheus;
mod reloads;
mod sums;
mod traffic;
mod transitions;

pub use catalogue::Catalogue;
pub use fleet::FleetState;
pub use prometheus::{CONTENT_TYPE, KeptState, Metrics};
pub use reloads::Reload;
pub use traffic::{Attempts, CallOutcome, EndedCall};
pub use transitions::{Observed, TransitionReader};
