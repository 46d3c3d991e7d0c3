//! The circuit breaker for LLM calls.
//!
//! A provider that is failing costs every caller a timeout. A breaker notices, refuses calls at once, tests the provider
//! with one careful call at a time, and lets traffic back. This crate brings it to your code, around the client that you
//! have; `cargo add fuseline`, and:
//!
//! ```
//! use fuseline::{Breaker, Chain, Error, Policy};
//!
//! async fn ask(model: &str) -> Result<String, std::io::Error> {
//!     Ok(format!("an answer of {model}")) // your client's call
//! }
//!
//! #[tokio::main]
//! async fn main() {
//!     let chain = Chain::builder()
//!         .target(Breaker::new("openai", Policy::default()), "gpt-5")
//!         .target(Breaker::new("groq", Policy::default()), "llama-3.3-70b");
//!     match chain.call(ask).await {
//!         Ok(answer) => println!("{answer}"),
//!         Err(Error::Open(refused)) => println!("{refused}"), // circuit `openai` is open, retry in 12 s
//!         Err(error) => println!("asked in vain: {error}"),
//!     }
//! }
//! ```
//!
//! # What for what
//!
//! | you have | take | feature |
//! |---|---|---|
//! | an async call | [`Breaker::call`] | |
//! | a blocking call | [`Breaker::call_blocking`] | |
//! | a stream of tokens | [`Breaker::call_stream`], or [`Permit::guard`] | |
//! | a streamed answer as bytes | [`Breaker::call_bytes`], or [`Permit::guard_bytes`]; [`collect`] | |
//! | anything else | [`Breaker::try_acquire`], which gives a [`Permit`] | |
//! | errors of your own, or answers that are failures | [`Breaker::with_classifier`] | |
//! | several providers | [`Chain`](struct.Chain.html) | `chain` (on) |
//! | the last good answers for when all are out | [`Cache`](struct.Cache.html), by [`Chain::cache`](struct.Chain.html#method.cache) | `chain` (on) |
//! | many breakers | [`Registry`], with [`Events`] | |
//! | a tower client | [`tower::BreakerLayer`](tower/struct.BreakerLayer.html) | `tower` |
//! | a reqwest client | [`reqwest::Client`](reqwest/struct.Client.html) | `reqwest` |
//!
//! Calls and permits work under any async runtime, or none. A chain waits on tokio's timer, and only where you give it a
//! `max_wait`; a streamed answer on the timer that you give it.
//!
//! # What counts
//!
//! | through | success | failure | neither |
//! |---|---|---|---|
//! | `call`, `call_blocking` | `Ok` | `Err` | cancelled, panicked |
//! | streams | their end | an `Err`, in a stream or instead of one | dropped before their end |
//! | streamed answers as bytes, and through `reqwest` | the end marker of their dialect | an error event, a cut, silence: [`GuardedBytes`] | dropped before their end |
//! | `tower`, other answers through `reqwest` | 2xx, once its body has come to its end | 429, 408, 5xx; no answer; a body that breaks off | 400, 401, 403, 404; a body that is left |
//!
//! Where nothing is known of a dialect, an end is the end of the body or of the stream, not a marker in it such as
//! `[DONE]`: read on to it, or say [`Guarded::success`].
//!
//! A [`Classify`] of yours, a closure will do, judges otherwise: it sees results as well as errors. A [`Kind`] says what
//! failed; whether that counts, and how much, is the policy's to say.
//!
//! # What is promised
//!
//! - A call settles exactly once, whatever happens. One that is cancelled, panics or is dropped half-read says nothing about
//!   the provider: no counter moves, and a probe's slot is free again at once.
//! - At most [`probes`](PolicySpec::probes) (1 unless set) calls test a provider that was open, however many wait.
//! - A call that outlives its breaker's state changes nothing.
//! - A refusal says when to ask again: [`CircuitOpen`]. A provider's own wish (`retry-after`) lengthens the wait, up to
//!   an hour unless set.
//! - The processes of a fleet do not come back in the same instant: cooldowns are lengthened by chance.
//! - No thread, no task, no global state: a breaker is a value.
//!
//! # Settings
//!
//! [`PolicySpec`] lists every key with its default, and reads from configuration with serde, durations as `"30s"`;
//! [`Policy::new`] checks it and tells every mistake at once. A [`Preset`] makes a breaker behave like one of five known
//! systems:
//!
//! ```
//! use std::time::Duration;
//! use fuseline::{Breaker, Policy, PolicySpec};
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
mod bytes;
mod call;
#[cfg(feature = "chain")]
mod chain;
mod classifier;
mod error;
mod exchange;
#[cfg(any(feature = "reqwest", feature = "tower"))]
mod head;
mod name;
mod permit;
mod registry;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod settings;
mod stream;
#[cfg(feature = "tower")]
pub mod tower;
mod verdict;

pub use breaker::Breaker;
pub use bytes::{GuardedBytes, StreamError, StreamTerms, Watch, collect};
pub use call::Classified;
#[cfg(feature = "chain")]
pub use chain::{Answer, Cache, CachedChain, Chain, ChainBuilder};
pub use classifier::{AnyError, Classify};
pub use error::{CircuitOpen, Error};
pub use exchange::Exchange;
pub use fuseline_core::{
    Cause, Clock, Count, Failure, FailureNote, Kind, KindRule, KindSpec, Mode, OnSuccess, Outcome,
    Per, Policy, PolicyError, PolicySpec, Preset, Problem, Reason, RegistryConfig, RegistryError,
    Rejection, RuleSnapshot, Scope, ScopeName, Snapshot, State, Tick, Transition, TripRule,
    UnknownName, Why,
};
/// What counts as what: the rules that turn an HTTP answer into a verdict, free of I/O.
pub use fuseline_llm as classify;
pub use fuseline_llm::{Completion, Incomplete, IncompleteReason, ToolCall};
pub use name::IntoName;
pub use permit::Permit;
pub use registry::{Event, Events, Registry};
pub use settings::read_settings;
pub use stream::Guarded;
pub use verdict::outcome;
