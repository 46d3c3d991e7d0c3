//! `Permit`: leave to make one call, timed by its breaker's clock.

use std::borrow::Borrow;
use std::fmt;
use std::time::Duration;

use fuseline_core::{Kind, Outcome, Rejection, Transition};
use futures_core::Stream;

use crate::breaker::Breaker;
use crate::bytes::{Alarm, GuardedBytes, StreamTerms};
use crate::classifier::{AnyError, Classify};
use crate::stream::Guarded;

/// Leave to make one call, and the duty to say how it went. Made by [`Breaker::try_acquire`](crate::Breaker::try_acquire).
///
/// It settles exactly once: the methods that take `self` settle it, and a permit that is dropped (an early return, a
/// panic, a cancelled future) is cancelled: no counter moves, and a probe's slot is free again at once.
///
/// A plain `Permit` owns its breaker and can be moved to another task; a `Permit<&Breaker>` borrows it.
///
/// ```
/// use fuseline::{Breaker, Kind, Policy};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// breaker.try_acquire()?.success();
/// breaker.try_acquire()?.failure(Kind::Timeout);
/// drop(breaker.try_acquire()?); // says nothing
/// assert_eq!(breaker.snapshot().run, 1);
/// # Ok::<(), fuseline::Rejection>(())
/// ```
#[must_use = "a permit that is dropped is cancelled: the call is not counted"]
pub struct Permit<B: Borrow<fuseline_core::Breaker> = Breaker>(fuseline_core::Permit<B>);

impl<B: Borrow<fuseline_core::Breaker>> Permit<B> {
    #[inline]
    pub(crate) const fn new(permit: fuseline_core::Permit<B>) -> Self {
        Self(permit)
    }

    /// The provider came through, just now. `slow` rules judge the time since the permit was given.
    #[inline(always)]
    pub fn success(self) -> Option<Transition> {
        let now = self.0.now();
        let took = self.0.elapsed(now);
        self.0.record(&Outcome::success(took), now)
    }

    /// The call failed by this kind; whether that counts is the policy's to say.
    pub fn failure(self, kind: Kind) -> Option<Transition> {
        self.record(&Outcome::failure(kind))
    }

    /// Says how the call went, in full: a [`Failure`](fuseline_core::Failure) can carry the provider's wait hint.
    /// Returns the transition that followed, if one did.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Failure, Kind, Outcome, Policy, State};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let throttled = Failure::new(Kind::RateLimit).retry_after(Duration::from_secs(90)).open_now();
    /// let opened = breaker.try_acquire()?.record(&Outcome::Failure(throttled));
    /// assert_eq!(opened.map(|transition| transition.to), Some(State::Open));
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    #[inline(always)]
    pub fn record(self, outcome: &Outcome) -> Option<Transition> {
        let now = self.0.now();
        self.0.record(outcome, now)
    }

    /// Gives the permit back: the call says nothing about the provider.
    pub fn cancel(self) {
        drop(self);
    }

    /// A sign of life: a probe's lease begins anew. Nothing for other calls.
    pub fn progress(&self) {
        if self.0.is_probe() {
            self.0.progress(self.0.now());
        }
    }

    /// Guards a stream: the same items come out, and how the stream ends settles the permit. See [`Guarded`].
    ///
    /// ```
    /// use fuseline::{Breaker, Policy};
    /// # fn tokens() -> impl futures_core::Stream<Item = Result<String, std::io::Error>> { tokio_stream() }
    /// # struct Empty;
    /// # impl futures_core::Stream for Empty {
    /// #     type Item = Result<String, std::io::Error>;
    /// #     fn poll_next(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>)
    /// #         -> std::task::Poll<Option<Self::Item>> { std::task::Poll::Ready(None) }
    /// # }
    /// # fn tokio_stream() -> Empty { Empty }
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let stream = breaker.try_acquire_owned()?.guard(tokens());
    /// # drop(stream);
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    pub fn guard<S>(self, stream: S) -> Guarded<S, AnyError, B> {
        Guarded::new(self, stream, AnyError)
    }

    /// As [`guard`](Self::guard), with an own classifier of items. See [`Guarded`] for what its answers mean.
    pub fn guard_with<S, C>(self, stream: S, classify: C) -> Guarded<S, C, B> {
        Guarded::new(self, stream, classify)
    }

    /// Guards a streamed answer as it comes from the provider: the same bytes come out, and the permit settles by what
    /// they say. See [`GuardedBytes`].
    ///
    /// `terms` is what they are in: a [`Dialect`](crate::classify::Dialect), or [`StreamTerms`] in full. `sleep` is
    /// your runtime's timer, which wakes the stream when a limit passes: `tokio::time::sleep`,
    /// `async_io::Timer::after`. Where there is none, `|_| std::future::pending::<()>()` leaves the limits to be
    /// looked at when the stream is polled.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use fuseline::{Breaker, Policy, classify::Dialect};
    /// # use std::{pin::Pin, task::{Context, Poll}};
    /// # struct Body(std::array::IntoIter<&'static str, 2>);
    /// # impl futures_core::Stream for Body {
    /// #     type Item = Result<bytes::Bytes, Infallible>;
    /// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    /// #         Poll::Ready(self.0.next().map(|chunk| Ok(chunk.into())))
    /// #     }
    /// # }
    /// # fn answer() -> Body {
    /// #     Body([
    /// #         "data: {\"choices\":[{\"delta\":{\"content\":\"Because.\"}}]}\n\n",
    /// #         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    /// #     ].into_iter())
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let permit = breaker.try_acquire_owned()?;
    /// let body = answer(); // your client's: any `Stream<Item = Result<Bytes, E>>`
    /// let stream = permit.guard_bytes(body, Dialect::OpenAiChat, tokio::time::sleep);
    /// assert_eq!(stream.collect().await?.text, "Because.");
    /// # Ok(()) }
    /// ```
    pub fn guard_bytes<S, F>(
        self,
        stream: S,
        terms: impl Into<StreamTerms>,
        sleep: impl FnMut(Duration) -> F + Send + 'static,
    ) -> GuardedBytes<S, B>
    where
        S: Stream,
        F: Future + Send + 'static,
        B: Clone,
    {
        GuardedBytes::new(self, stream, terms.into(), Alarm::new(sleep))
    }

    /// Time since the permit was given, in steps of up to 4 ms.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed(self.0.now())
    }

    /// Whether this is a probe of a half-open breaker: its outcome decides more than another's.
    pub fn is_probe(&self) -> bool {
        self.0.is_probe()
    }

    /// In shadow mode, the refusal that an enforcing breaker would have given.
    pub fn would_reject(&self) -> Option<Rejection> {
        self.0.would_reject()
    }

    /// The breaker that gave it.
    pub(crate) const fn breaker(&self) -> &B {
        self.0.breaker()
    }

    /// See [`probe_proof`](fuseline_core::PolicySpec::probe_proof); none for other calls.
    pub(crate) fn probe_proof(&self) -> Option<Duration> {
        self.0.probe_proof()
    }

    /// Whether this is a probe that began to deliver `first` after it was admitted and has delivered for long enough: its
    /// success can be recorded, though its stream goes on. See [`probe_proof`](fuseline_core::PolicySpec::probe_proof).
    pub fn is_proven(&self, first: Duration) -> bool {
        let proof = self.0.probe_proof();
        proof.is_some_and(|proof| self.elapsed() >= first.saturating_add(proof))
    }

    /// Settles by what `classify` says of a result.
    #[inline]
    pub(crate) fn judge<T, E>(
        self,
        result: &Result<T, E>,
        classify: &impl Classify<T, E>,
    ) -> Outcome {
        let now = self.0.now();
        let outcome = classify.classify(result, self.0.elapsed(now));
        self.0.record(&outcome, now);
        outcome
    }

    /// As [`judge`](Self::judge) for an error, which is handed back.
    pub(crate) fn judge_error<T, E>(self, error: E, classify: &impl Classify<T, E>) -> E {
        let result: Result<T, E> = Err(error);
        self.judge(&result, classify);
        match result {
            Err(error) => error,
            Ok(_) => unreachable!("it was made as an error"),
        }
    }
}

impl Permit<&Breaker> {
    /// The same permit, holding its breaker: it can be moved to another task.
    #[inline(always)]
    pub fn into_owned(self) -> Permit {
        Permit(self.0.into_owned())
    }
}

impl<B: Borrow<fuseline_core::Breaker>> fmt::Debug for Permit<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
