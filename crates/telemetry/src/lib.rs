//! Turns breaker snapshots and events into metrics and logs.
//!
//! Nothing here is called on the way of a call: [`metrics_page`] reads the breakers when somebody scrapes, and
//! [`TransitionReader`] drains their histories from a task of its own.

mod names;
mod prometheus;
mod transitions;

pub use prometheus::{CONTENT_TYPE, metrics_page};
pub use transitions::{Observed, TransitionReader};
