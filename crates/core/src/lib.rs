//! The state machine of Fuseline, the circuit breaker for LLM calls.
//!
//! No I/O, no async, no timers and no clock: `now` is an argument. Ask a [`Breaker`] for a [`Permit`], make the call,
//! [`record`](Permit::record) the [`Outcome`]; what changed is data in the breaker's numbered history.
//!
//! ```
//! use core::time::Duration;
//! use fuseline_core::{Breaker, Clock, Kind, Outcome, Policy, ScopeName};
//!
//! let clock = Clock::system();
//! let breaker = Breaker::new(ScopeName::provider("openai"), Policy::default());
//! match breaker.try_acquire(clock.now()) {
//!     Err(refused) => println!("{refused}"), // "circuit open, retry in 12 s": answer from somewhere else
//!     Ok(permit) => {
//!         let outcome = match call_the_model() {
//!             Ok(took) => Outcome::success(took),
//!             Err(kind) => Outcome::failure(kind),
//!         };
//!         permit.record(&outcome, clock.now());
//!     }
//! }
//! # fn call_the_model() -> Result<Duration, Kind> { Ok(Duration::from_millis(800)) }
//! ```
//!
//! Where to look: [`Policy`] for the settings, [`Breaker`] for the four kinds of methods, [`Scopes`] for calls that
//! touch a provider, a model and a key at once, [`Registry`] for many breakers, [`Snapshot`] for what there is to see.

mod backoff;
mod breaker;
mod clock;
#[cfg(feature = "serde")]
mod duration_text;
mod event;
mod fleet;
mod hot;
mod kind;
#[cfg(all(test, fuseline_loom))]
mod loom_tests;
mod machine;
mod outcome;
mod permit;
mod policy;
mod policy_check;
mod preset;
mod registry;
#[cfg(feature = "serde")]
pub mod replay;
mod rules;
mod saved;
mod scope;
mod scoped;
mod snapshot;
mod state;
mod sync;
mod tick;
mod ticket;
mod trip;
mod window;

pub use breaker::Breaker;
pub use clock::Clock;
pub use event::{Cause, FailureNote, Reason, Rejection, Transition, Why};
pub use fleet::Evidence;
pub use kind::{Kind, KindRule, UnknownName};
pub use outcome::{Failure, Outcome};
pub use permit::Permit;
pub use policy::{Count, KindSpec, Mode, OnSuccess, Per, Policy, PolicyError, PolicySpec, Problem};
pub use preset::Preset;
pub use registry::{Registry, RegistryConfig, RegistryError};
pub use saved::{Counted, SavedBreaker, SavedWindow};
pub use scope::{Scope, ScopeName};
pub use scoped::{Policies, ScopedPermit, ScopedRejection, Scopes};
pub use snapshot::{RuleSnapshot, Snapshot};
pub use state::State;
pub use tick::Tick;
pub use trip::TripRule;
