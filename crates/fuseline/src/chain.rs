//! `Chain`: several targets, each behind its breaker, tried in order.

mod cache;

use std::future::Future;
use std::time::Duration;

use fuseline_core::{Kind, Outcome, Tick};

use crate::breaker::Breaker;
use crate::classifier::{AnyError, Classify};
use crate::error::{CircuitOpen, Error};

pub use cache::{Answer, Cache, CachedChain};

/// The shortest sleep: a refusal may end within the millisecond.
const SHORTEST: Duration = Duration::from_millis(1);

/// Targets in the order of preference, each with its breaker. A call goes to the first whose breaker lets it through;
/// if that fails, to the next.
///
/// A target is whatever tells your call where to go: a model's name, an `Arc` of a client. It is cloned for each call.
///
/// | a target | then |
/// |---|---|
/// | refuses (its circuit is open) | the next is tried, at no cost |
/// | comes through, or the classifier calls the result neutral | that is the result |
/// | fails | the next is tried; after the last one, that is the result |
/// | fails because the request is at fault (`bad_request`, `not_found`, `content_policy`, `validation`, `parse`), `cancelled` or `local` | that is the result |
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use fuseline::{Breaker, Chain, Policy};
///
/// async fn ask(model: &'static str) -> Result<String, String> {
///     if model == "large" { Err("503".into()) } else { Ok(format!("an answer of {model}")) }
/// }
///
/// let chain = Chain::builder()
///     .target(Breaker::new("openai", Policy::default()), "large")
///     .target(Breaker::new("anthropic", Policy::default()), "other");
/// assert_eq!(chain.call(ask).await.unwrap(), "an answer of other");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Chain<T, C = AnyError> {
    links: Vec<(Breaker, T)>,
    max_wait: Duration,
    classify: C,
}

/// A chain without a target. Made by [`Chain::builder`]; the first target makes it a [`Chain`].
#[derive(Clone, Copy, Debug)]
#[must_use]
#[non_exhaustive]
pub struct ChainBuilder;

impl ChainBuilder {
    /// The first target: the one to which calls go as long as all is well.
    pub fn target<T>(self, breaker: Breaker, target: T) -> Chain<T> {
        Chain {
            links: vec![(breaker, target)],
            max_wait: Duration::ZERO,
            classify: AnyError,
        }
    }
}

impl Chain<()> {
    /// Begins a chain, of whatever targets; it waits for nobody and keeps nothing.
    pub const fn builder() -> ChainBuilder {
        ChainBuilder
    }
}

/// How a call along a chain ended.
enum Ending<R, E> {
    /// This is the result.
    Settled(Result<R, E>, Outcome),
    /// Every target has failed or refused: the last failure, or the shortest wait.
    Exhausted(Result<R, Error<E>>),
}

impl<T, C> Chain<T, C> {
    /// A further target, tried when those before it refuse or fail. A smaller model goes last.
    #[must_use]
    pub fn target(mut self, breaker: Breaker, target: T) -> Self {
        self.links.push((breaker, target));
        self
    }

    /// Where every target refuses, waits up to so long in all for the first that may let calls through again, on tokio's
    /// timer. Default 0: the refusal comes at once. A wait that would be longer is not begun.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Chain, Policy};
    ///
    /// let chain = Chain::builder()
    ///     .target(Breaker::new("openai", Policy::default()), "large")
    ///     .target(Breaker::new("anthropic", Policy::default()), "other")
    ///     .max_wait(Duration::from_secs(20));
    /// assert!(chain.is_available());
    /// ```
    #[must_use]
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Judges results by an own classifier; see [`Classify`]. What it calls a failure goes on to the next target, unless
    /// its kind says that the request is at fault.
    #[must_use]
    pub fn with_classifier<D>(self, classify: D) -> Chain<T, D> {
        Chain {
            links: self.links,
            max_wait: self.max_wait,
            classify,
        }
    }

    /// Keeps good results, and gives the last one to the same request where every target has failed or refused, after
    /// any [`max_wait`](Self::max_wait). See [`CachedChain::call`].
    #[must_use]
    pub const fn cache<K, R>(self, cache: Cache<K, R>) -> CachedChain<T, C, K, R> {
        CachedChain::new(self, cache)
    }

    /// Whether a call would be let through to some target now.
    pub fn is_available(&self) -> bool {
        self.links.iter().any(|(breaker, _)| breaker.is_available())
    }

    /// Makes the call to the targets in turn until one comes through. At most one call a target. Dropping the returned
    /// future cancels the call that is under way, which then says nothing about its target.
    ///
    /// # Errors
    /// [`Error::Open`] with the shortest wait where every target refused, else [`Error::Inner`] with the last error.
    ///
    /// # Panics
    /// Where it must wait outside of a tokio runtime with a timer.
    pub async fn call<R, E, F, Fut>(&self, call: F) -> Result<R, Error<E>>
    where
        T: Clone,
        C: Classify<R, E>,
        F: FnMut(T) -> Fut,
        Fut: Future<Output = Result<R, E>>,
    {
        match self.run(call).await {
            Ending::Settled(result, _) => result.map_err(Error::Inner),
            Ending::Exhausted(result) => result,
        }
    }

    async fn run<R, E, F, Fut>(&self, mut call: F) -> Ending<R, E>
    where
        T: Clone,
        C: Classify<R, E>,
        F: FnMut(T) -> Fut,
        Fut: Future<Output = Result<R, E>>,
    {
        let mut left = self.max_wait;
        loop {
            let mut soonest: Option<CircuitOpen> = None;
            let mut failed = None;
            for (breaker, target) in &self.links {
                let permit = match breaker.enter() {
                    Ok(permit) => permit,
                    Err(refused) => {
                        let sooner = soonest
                            .as_ref()
                            .is_none_or(|so_far| refused.retry_after < so_far.retry_after);
                        if sooner {
                            soonest = Some(refused);
                        }
                        continue;
                    }
                };
                let result = call(target.clone()).await;
                let outcome = permit.judge(&result, &self.classify);
                if !another_may_do(&outcome) {
                    return Ending::Settled(result, outcome);
                }
                failed = Some(result);
            }
            if let Some(result) = failed {
                return Ending::Exhausted(result.map_err(Error::Inner));
            }
            let refused = match soonest {
                Some(refused) if refused.retry_after > left => {
                    return Ending::Exhausted(Err(refused.into()));
                }
                Some(refused) => refused,
                None => continue,
            };
            let wait = refused.retry_after.max(SHORTEST);
            left = left.saturating_sub(wait);
            tokio::time::sleep(wait).await;
        }
    }
}

impl<T, C> Chain<T, C> {
    /// The time on its breakers' clock.
    fn now(&self) -> Tick {
        let first = self.links.first();
        first.map_or(Tick::ZERO, |(breaker, _)| breaker.now())
    }
}

/// Whether another target may do better.
const fn another_may_do(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Success { .. } | Outcome::Neutral => false,
        Outcome::Failure(failure) => !matches!(
            failure.kind(),
            Kind::BadRequest
                | Kind::NotFound
                | Kind::ContentPolicy
                | Kind::Validation
                | Kind::Parse
                | Kind::Cancelled
                | Kind::Local
        ),
    }
}
