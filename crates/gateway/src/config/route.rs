//! `[[routes]]`: which targets serve a model, in which order, and what happens when one fails.

mod read;
mod target;

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::Kind;
pub use fuseline_llm::{Price, Strategy};

use super::{Pattern, TimeoutSpec};

/// One route.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// The models it serves.
    pub model: Pattern,
    /// Who serves them, at least one, all of one protocol.
    pub targets: Vec<Target>,
    /// In which order they are tried.
    pub strategy: Strategy,
    /// How long a call may take until its answer is committed; none = 120 s, or for a stream as long as a target's
    /// `first_token` if that is longer.
    pub budget: Option<Duration>,
    /// Further attempts at the same target.
    pub retries: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// The longest wait within a call on a provider's word.
    pub max_wait: Duration,
    /// Whether a request whose outcome is unknown is sent again like any other, all attempts under one
    /// `Idempotency-Key`.
    pub resend_unknown: bool,
    /// The share of answers after whose time a second target is asked as well; none = never.
    pub hedge: Option<f64>,
    /// How long after its first content a stream is kept back.
    pub hold_back: Duration,
    /// What is left to do when every target is out, in order.
    pub on_exhausted: Vec<OnExhausted>,
    /// What to do after a failure of some kind, instead of the usual.
    pub on: BTreeMap<Kind, OnKind>,
    /// Time limits for this route.
    pub timeouts: TimeoutSpec,
}

/// A provider, and the model to ask it for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Target {
    /// A name in `providers`.
    pub provider: String,
    /// The model to ask for; none = the one that the caller named.
    pub model: Option<String>,
    /// US dollars per million tokens, for `strategy = "cheapest"`.
    pub price: Option<Price>,
    /// Share of the calls, for `strategy = "weighted"`.
    pub weight: Option<u32>,
    /// The tokens that its model takes at once; none = what `[[models]]` says, or not known.
    pub context: Option<u32>,
    /// Calls of this route that it may have at once; none = any number.
    pub max_in_flight: Option<u32>,
}

/// Where a call may go when its route's own targets do not serve it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Elsewhere {
    /// To one more target.
    Target(Target),
    /// To the route whose `model` is written so.
    Route(String),
}

/// One step of `on_exhausted`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OnExhausted {
    /// The last good answer to the same request.
    Cache,
    /// Wait for the soonest recovery.
    Wait,
    /// Store the request and send it when the circuit closes.
    Queue,
    /// Another target or route.
    Elsewhere(Elsewhere),
}

/// What to do after a failure of one kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OnKind {
    /// The next target.
    Next,
    /// Return the answer as it came.
    Return,
    /// The next target whose model has a larger context.
    Bigger,
    /// Another target or route.
    Elsewhere(Elsewhere),
}

impl OnExhausted {
    /// The one more target that this step is, if it is one.
    pub(super) const fn target(&self) -> Option<&Target> {
        match self {
            Self::Elsewhere(Elsewhere::Target(target)) => Some(target),
            Self::Elsewhere(Elsewhere::Route(_)) | Self::Cache | Self::Wait | Self::Queue => None,
        }
    }
}

impl OnKind {
    /// The one more target that this leads to, if it leads to one.
    pub(super) const fn target(&self) -> Option<&Target> {
        match self {
            Self::Elsewhere(Elsewhere::Target(target)) => Some(target),
            Self::Elsewhere(Elsewhere::Route(_)) | Self::Next | Self::Return | Self::Bigger => None,
        }
    }
}
