//! `Chain`: several targets, each behind its breaker, tried in order.

use std::future::Future;
use std::time::Duration;

use fuseline_core::{Kind, Outcome};

use crate::breaker::Breaker;
use crate::classifier::{AnyError, Classify};
use crate::error::{CircuitOpen, Error};

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
/// let chain = Chain::new(Breaker::new("openai", Policy::default()), "large")
///     .then(Breaker::new("anthropic", Policy::default()), "other");
/// assert_eq!(chain.call(ask).await.unwrap(), "an answer of other");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Chain<T, C = AnyError> {
    links: Vec<(Breaker, T)>,
    max_wait: Duration,
    classify: C,
}

impl<T> Chain<T> {
    /// A chain of one target, which waits for nobody.
    pub fn new(breaker: Breaker, target: T) -> Self {
        Self {
            links: vec![(breaker, target)],
            max_wait: Duration::ZERO,
            classify: AnyError,
        }
    }
}

impl<T, C> Chain<T, C> {
    /// A further target, tried when those before it refuse or fail.
    #[must_use]
    pub fn then(mut self, breaker: Breaker, target: T) -> Self {
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
    /// let chain = Chain::new(Breaker::new("openai", Policy::default()), "large")
    ///     .then(Breaker::new("anthropic", Policy::default()), "other")
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
    pub async fn call<R, E, F, Fut>(&self, mut call: F) -> Result<R, Error<E>>
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
                    return result.map_err(Error::Inner);
                }
                failed = Some(result);
            }
            if let Some(result) = failed {
                return result.map_err(Error::Inner);
            }
            let refused = match soonest {
                Some(refused) if refused.retry_after > left => return Err(refused.into()),
                Some(refused) => refused,
                None => continue,
            };
            let wait = refused.retry_after.max(SHORTEST);
            left = left.saturating_sub(wait);
            tokio::time::sleep(wait).await;
        }
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
