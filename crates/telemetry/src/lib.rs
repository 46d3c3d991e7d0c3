//! Turns breaker snapshots and events into metrics and logs.
//!
//! Nothing here is called on the way of a call: [`metrics_page`] reads the breakers when somebody scrapes, and
//! [`TransitionLog`] drains their histories from a task of its own.

mod log;
mod names;
mod prometheus;

pub use log::TransitionLog;
pub use prometheus::{CONTENT_TYPE, FleetState, KeptState, metrics_page};
