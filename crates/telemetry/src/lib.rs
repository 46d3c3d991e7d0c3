//! Turns breaker snapshots, transitions and calls into metrics, spans and logs.
//!
//! On the way of a call nothing is done but counting its end: [`Metrics`] reads the breakers when somebody scrapes,
//! [`TransitionReader`] drains their histories from a task of its own, and [`Otlp`] exports from threads of its own.

mod breakers;
mod catalogue;
mod family;
mod fleet;
mod names;
mod otlp;
mod prometheus;
mod queue;
mod reloads;
mod sums;
mod traffic;
mod transitions;

pub use catalogue::Catalogue;
pub use family::Family;
pub use fleet::FleetState;
pub use otlp::{
    AttemptReport, AttemptSpan, CallReport, CallSpan, Otlp, OtlpError, OtlpSettings, Post,
    PostError, PostFuture, Upstream,
};
pub use prometheus::{CONTENT_TYPE, KeptState, Metrics};
pub use queue::QueueState;
pub use reloads::Reload;
pub use traffic::{Attempts, CallOutcome, EndedCall};
pub use transitions::{Observed, TransitionReader};
