//! What is special about calls to models: what a request asks for, what an answer means, where to go next.
//!
//! No I/O, no clock, no async: whoever drives these types tells them what happened and what time it is. The way of
//! a call through this crate:
//!
//! | step | from | to |
//! |---|---|---|
//! | request | path and body | [`RequestFacts`] |
//! | route | [`Route`], [`Limits`] | [`Plan`], then one [`Step`] at a time |
//! | watch a stream | [`StreamGuard`], bytes | what may go on to the caller, and the [`StreamEnding`] |
//! | collect it | [`Collector`], bytes | the whole [`Completion`], or [`Incomplete`] |
//! | permit, classify, record | [`Answer`] or [`Fault`] | [`Attempt`], which gives one [`Verdict`] by its [`Classifier`] |
//! | next | [`Verdict`], [`Standing`] | [`Plan::after`] |
//! | nobody answers | [`Plan::extend`], [`Plan::until_recovery`] | further steps; or the [`LastGood`] answer |
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use fuseline_core::{Count, Policies, Policy, Registry, Scopes, Tick};
//! use fuseline_llm::{
//!     Admission, Answer, Attempt, Body, Classifier, Ending, Head, Limits, Operation, Owner, Plan, Shape, Step, Target,
//!     Terms,
//! };
//!
//! let (registry, now) = (Registry::default(), Tick::ZERO);
//! let target = Target::new("primary", "large", "key 0", Owner::Gateway);
//! let [provider, model, key] = target.scopes();
//! let policies = Policies::all(&Policy::default());
//! let scopes = Scopes::new(&registry, provider, Some(model), Some(key), policies, now)?;
//!
//! let mut plan = Plan::new(vec![target], Limits::default(), 1, now);
//! assert_eq!(plan.next(|_| Admission::of(&scopes, now), now), Step::Try(0));
//! let terms = Terms {
//!     operation: Operation::Create,
//!     shape: Shape::Plain,
//!     count: Count::Call,
//!     limit: Duration::from_secs(600),
//!     probe_proof: Duration::from_secs(5),
//!     cancel_counts_after: Duration::from_secs(20),
//! };
//! let mut attempt = Attempt::begin(&scopes, terms, now)?;
//! // The provider answers; a driver would have sent the request here.
//! let headers = http::HeaderMap::new();
//! let answer = |status, body| Answer {
//!     provider: "openai",
//!     operation: Operation::Create,
//!     head: Some(Head::new(status, &headers)),
//!     body: Body::Whole(body),
//!     ending: Ending::Complete,
//! };
//! let (rules, wall) = (Classifier::builtin(), SystemTime::UNIX_EPOCH);
//! attempt.head(503, now);
//! let verdict = attempt.answered(rules, &answer(503, b"try later"), wall, now);
//! let step = plan.after(&verdict, attempt.standing(now), |_| Admission::of(&scopes, now), now);
//! attempt.settle(step, plan.patience(now), now);
//! let Step::RetryAfter { target: 0, delay } = step else { unreachable!() };
//! let now = now + delay;
//! attempt.again(now)?;
//! attempt.head(200, now);
//! assert!(attempt.answered(rules, &answer(200, br#"{"choices": [{"message": {"content": "Hi"}}]}"#), wall, now).is_success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What counts as what are the tables of [`Classifier`]; what a breaker is told is one more, in
//! [`Verdict::outcome`]; what a call does next is the last, in [`Plan`]'s.

mod attempt;
mod classify;
mod evidence;
mod head;
mod hints;
mod json;
mod last_good;
mod mask;
mod request;
mod route;
mod stream;
mod target;
mod verdict;

pub use attempt::{Attempt, Denied, Terms};
pub use classify::{
    Answer, Body, BodyForm, Classifier, CodeSpec, Ending, Event, HintUse, RuleProblem, RuleSpec,
    ScopeSpec, StatusSpec, Then, Transcript, When, classify_head,
};
pub use evidence::{Citation, Evidence, Fault};
pub use head::{Head, Headers};
pub use hints::{Hint, HintInput, HintSource, wait_hint};
pub use last_good::LastGood;
pub use mask::mask;
pub use request::{Operation, Price, Protocol, RequestFacts, Shape, Tokens};
pub use route::{
    Admission, Contender, Detours, Fallback, Limits, OnFailure, Pace, Plan, Reason, RetryBudget,
    Route, Standing, Step, Strategy,
};
pub use stream::{
    Collector, Completion, Dialect, ErrorEvent, Finish, Framing, Incomplete, IncompleteReason,
    Piece, Scanned, Scanner, Seen, StreamEnding, StreamEvent, StreamGuard, StreamReader,
    StreamTimers, Timer, ToolCall, Usage, read_timeout, reasoning_first_token,
};
pub use target::{Owner, Target, credential_id};
pub use verdict::Verdict;
