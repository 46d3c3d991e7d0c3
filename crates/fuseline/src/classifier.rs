//! `Classify`: what a result says about the provider.

use std::time::Duration;

use fuseline_core::{Kind, Outcome};

/// Says what a result means for the breaker. Implemented for closures, which name their types so that Rust can tell
/// which results they are for.
///
/// A result is judged whole: an `Ok` may be a failure (an answer without content), and an `Err` may be
/// [`Neutral`](Outcome::Neutral) (a request that was wrong). `took` is how long the call took, for
/// [`Outcome::success`]; of a stream, until its first item.
///
/// It runs once for each call, outside every lock. If it panics, the call counts as cancelled.
///
/// ```
/// use std::time::Duration;
/// use fuseline::{Breaker, Kind, Outcome, Policy};
///
/// let classify = |result: &Result<String, u16>, took: Duration| match result {
///     Ok(text) if text.is_empty() => Outcome::failure(Kind::EmptyResponse),
///     Ok(_) => Outcome::success(took),
///     Err(429) => Outcome::failure(Kind::RateLimit),
///     Err(400..=499) => Outcome::Neutral,
///     Err(_) => Outcome::failure(Kind::ServerError),
/// };
/// let breaker = Breaker::new("openai", Policy::default()).with_classifier(classify);
/// assert_eq!(breaker.call_blocking(|| Ok(String::new())), Ok(String::new()));
/// assert_eq!(breaker.breaker().snapshot().run, 1); // an empty answer is a failure
/// ```
pub trait Classify<T, E> {
    /// The outcome that the breaker records.
    fn classify(&self, result: &Result<T, E>, took: Duration) -> Outcome;
}

impl<T, E, F> Classify<T, E> for F
where
    F: Fn(&Result<T, E>, Duration) -> Outcome,
{
    fn classify(&self, result: &Result<T, E>, took: Duration) -> Outcome {
        self(result, took)
    }
}

/// The default: every `Ok` is a success, every `Err` a failure of kind [`ServerError`](Kind::ServerError).
///
/// ```
/// use std::time::Duration;
/// use fuseline::{AnyError, Classify, Kind, Outcome};
///
/// let lost: Result<(), &str> = Err("connection reset");
/// assert_eq!(AnyError.classify(&lost, Duration::ZERO), Outcome::failure(Kind::ServerError));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is written by its name"
)]
pub struct AnyError;

impl<T, E> Classify<T, E> for AnyError {
    fn classify(&self, result: &Result<T, E>, took: Duration) -> Outcome {
        match result {
            Ok(_) => Outcome::success(took),
            Err(_) => Outcome::failure(Kind::ServerError),
        }
    }
}
