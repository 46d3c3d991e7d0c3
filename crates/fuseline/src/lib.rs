//! The circuit breaker for LLM calls.
//!
//! A provider that is failing costs every caller a timeout. A breaker notices, refuses calls at once, tests the provider
//! with one careful call at a time, and lets traffic back. This crate brings it to your code:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use fuseline::{Breaker, Error, Policy};
//!
//! async fn ask(prompt: &str) -> Result<String, std::io::Error> {
//!     Ok(format!("an answer to {prompt}")) // your client's call
//! }
//!
//! let breaker = Breaker::new("openai", Policy::default());
//! match breaker.call(ask("Why?")).await {
//!     Ok(answer) => println!("{answer}"),
//!     Err(Error::Open(refused)) => println!("{refused}"), // circuit `openai` is open, retry in 12 s
//!     Err(error) => println!("asked in vain: {error}"),
//! }
//! # }
//! ```
//!
//! # What for what
//!
//! | you have | take | feature |
//! |---|---|---|
//! | an async call | [`Breaker::call`] | |
//! | a blocking call | [`Breaker::call_blocking`] | |
//! | a stream of tokens | [`Breaker::call_stream`], or [`Permit::guard`] | |
//! | anything else | [`Breaker::try_acquire`], which gives a [`Permit`] | |
//! | errors of your own, or answers that are failures | [`Breaker::with_classifier`] | |
//! | several providers | [`Chain`] | `chain` (on) |
//! | many breakers | [`Registry`], with [`Events`] | |
//! | a tower client | [`tower::BreakerLayer`] | `tower` |
//! | a reqwest client | [`reqwest::Client`] | `reqwest` |
//!
//! Calls and permits work under any async runtime, or none. [`Chain`] waits on tokio's timer, and only where you give it
//! a [`max_wait`](Chain::max_wait).
//!
//! # What is promised
//!
//! - A call settles exactly once, whatever happens. One that is cancelled, panics or is dropped half-read says nothing about
//!   the provider: no counter moves, and a probe's slot is free again at once.
//! - At most [`probes`](PolicySpec::probes) (1 unless set) calls test a provider that was open, however many wait.
//! - A call that outlives its breaker's state changes nothing.
//! - A refusal says when to ask again.
//! - No thread, no task, no global state: a breaker is a value.
//!
//! # Settings
//!
//! [`PolicySpec`] lists every key with its default; [`Policy::new`] checks them. A [`Preset`] makes a breaker behave like
//! one of five known systems:
//!
//! ```
//! use std::time::Duration;
//! use fuseline::{Breaker, Policy, PolicySpec, TripRule};
//!
//! let spec = PolicySpec {
//!     preset: Some("vernllm".parse()?),
//!     cooldown: Some(Duration::from_secs(20)), // wins over the preset's
//!     ..PolicySpec::default()
//! };
//! let breaker = Breaker::new("openai", Policy::new(&spec)?);
//! # let _ = breaker;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time is monotonic, in steps of up to 4 ms; tests bring a [`Clock::manual`] and move it.

mod breaker;
mod call;
#[cfg(feature = "chain")]
mod chain;
mod classifier;
mod error;
#[cfg(any(feature = "reqwest", feature = "tower"))]
mod head;
mod name;
mod permit;
mod registry;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod stream;
#[cfg(feature = "tower")]
pub mod tower;

pub use breaker::Breaker;
pub use call::Classified;
#[cfg(feature = "chain")]
pub use chain::Chain;
pub use classifier::{AnyError, Classify};
pub use error::{CircuitOpen, Error};
pub use fuseline_core::{
    Cause, Clock, Count, Failure, FailureNote, Kind, KindRule, KindSpec, Mode, OnSuccess, Outcome,
    Per, Policy, PolicyError, PolicySpec, Preset, Problem, Reason, RegistryConfig, RegistryError,
    Rejection, RuleSnapshot, Scope, ScopeName, Snapshot, State, Tick, Transition, TripRule,
    UnknownName, Why,
};
/// What counts as what: the rules that turn an HTTP answer into a verdict, free of I/O.
pub use fuseline_llm as classify;
pub use name::IntoName;
pub use permit::Permit;
pub use registry::{Event, Events, Registry};
pub use stream::Guarded;
