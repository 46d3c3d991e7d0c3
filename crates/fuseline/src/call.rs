//! Calls under a breaker: async, blocking and streaming, with the default classifier or an own one.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;

use crate::breaker::Breaker;
use crate::bytes::{GuardedBytes, StreamTerms};
use crate::classifier::{AnyError, Classify};
use crate::error::Error;
use crate::stream::Guarded;

/// A breaker together with a classifier of its calls' results. Made by [`Breaker::with_classifier`].
#[derive(Clone, Debug)]
pub struct Classified<C> {
    breaker: Breaker,
    classify: C,
}

impl Breaker {
    /// Makes one call, if the breaker lets it through. The future is not polled otherwise.
    ///
    /// `Ok` counts as a success, `Err` as a failure of kind `server_error`; for anything else see
    /// [`with_classifier`](Self::with_classifier). Dropping the returned future (a timeout around it, a `select!`), and
    /// a panic in the call, say nothing about the provider. A limit that shall count belongs inside, as an `Err`; where it
    /// is longer than `probe_timeout` (60 s unless set), set that too, or a slow probe is taken for a lost one.
    ///
    /// # Errors
    /// [`Error::Open`] where the breaker refuses, [`Error::Inner`] with the call's own error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use fuseline::{Breaker, Policy};
    ///
    /// async fn ask(prompt: &str) -> Result<String, std::io::Error> {
    ///     Ok(format!("an answer to {prompt}"))
    /// }
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let answer = breaker.call(ask("Why?")).await;
    /// assert_eq!(answer.unwrap(), "an answer to Why?");
    /// # }
    /// ```
    pub async fn call<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error<E>> {
        call_as(self, &AnyError, call).await
    }

    /// Makes one blocking call on this thread, if the breaker lets it through. Counts as [`call`](Self::call) does; a
    /// panic passes through and says nothing about the provider.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    ///
    /// ```
    /// use fuseline::{Breaker, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// assert_eq!(breaker.call_blocking(|| "42".parse::<u8>()), Ok(42));
    /// ```
    pub fn call_blocking<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, Error<E>> {
        call_blocking_as(self, &AnyError, call)
    }

    /// Makes one call that opens a stream, and guards the stream until it ends: an `Err` instead of a stream is a failure,
    /// and so is an `Err` in it. See [`Guarded`] for the endings.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    ///
    /// ```
    /// # use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};
    /// # use futures_core::Stream;
    /// # struct Tokens(u8);
    /// # impl Stream for Tokens {
    /// #     type Item = Result<u8, Infallible>;
    /// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    /// #         self.0 += 1;
    /// #         Poll::Ready((self.0 < 4).then_some(Ok(self.0)))
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fuseline::{Breaker, Policy};
    ///
    /// async fn tokens() -> Result<impl Stream<Item = Result<u8, Infallible>> + Unpin, Infallible> {
    ///     Ok(Tokens(0))
    /// }
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let mut stream = breaker.call_stream(tokens()).await?;
    /// while let Some(token) = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
    ///     println!("{}", token?);
    /// }
    /// assert!(stream.is_settled());
    /// # Ok(()) }
    /// ```
    pub async fn call_stream<S, T, E>(
        &self,
        call: impl Future<Output = Result<S, E>>,
    ) -> Result<Guarded<S>, Error<E>>
    where
        S: Stream<Item = Result<T, E>>,
    {
        call_stream_as(self, AnyError, call).await
    }

    /// Makes one call that opens a streamed answer, and watches its bytes: an `Err` instead of a stream is a failure, and
    /// how the stream ends is judged by what its events say. For `terms` and `sleep` see [`Permit::guard_bytes`](crate::Permit::guard_bytes), for the
    /// endings [`GuardedBytes`].
    ///
    /// # Errors
    /// As [`call`](Self::call).
    ///
    /// ```
    /// # use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};
    /// # struct Body(Option<&'static str>);
    /// # impl futures_core::Stream for Body {
    /// #     type Item = Result<bytes::Bytes, Infallible>;
    /// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    /// #         Poll::Ready(self.0.take().map(|chunk| Ok(chunk.into())))
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fuseline::{Breaker, Policy, classify::Dialect};
    ///
    /// async fn ask(prompt: &str) -> Result<Body, Infallible> {
    ///     let answer = format!("an answer to {prompt}"); // your client's call
    /// #   drop(answer);
    /// #   Ok(Body(Some("{\"message\":{\"content\":\"Because.\"},\"done\":true}\n")))
    /// }
    ///
    /// let breaker = Breaker::new("ollama", Policy::default());
    /// let stream = breaker.call_bytes(ask("Why?"), Dialect::Ollama, tokio::time::sleep).await?;
    /// let answer = stream.collect().await?;
    /// assert_eq!(answer.text, "Because.");
    /// # Ok(()) }
    /// ```
    pub async fn call_bytes<S, E, F>(
        &self,
        call: impl Future<Output = Result<S, E>>,
        terms: impl Into<StreamTerms>,
        sleep: impl FnMut(Duration) -> F + Send + 'static,
    ) -> Result<GuardedBytes<S>, Error<E>>
    where
        S: Stream<Item = Result<Bytes, E>>,
        F: Future + Send + 'static,
    {
        call_bytes_as(self, &AnyError, call, terms, sleep).await
    }

    /// This breaker with an own classifier: a closure, or a type that is [`Classify`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Kind, Outcome, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let guarded = breaker.with_classifier(|result: &Result<(), u16>, took: Duration| match result {
    ///     Ok(()) => Outcome::success(took),
    ///     Err(400..=499) => Outcome::Neutral, // the caller's own fault
    ///     Err(_) => Outcome::failure(Kind::ServerError),
    /// });
    /// let _ = guarded.call_blocking(|| Err(404));
    /// assert_eq!(guarded.breaker().snapshot().run, 0);
    /// ```
    pub fn with_classifier<C>(&self, classify: C) -> Classified<C> {
        Classified {
            breaker: self.clone(),
            classify,
        }
    }
}

impl<C> Classified<C> {
    /// The breaker.
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// As [`Breaker::call`], judged by the classifier.
    ///
    /// # Errors
    /// As [`Breaker::call`]. A result that the classifier calls a failure comes back as it is.
    pub async fn call<T, E>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, Error<E>>
    where
        C: Classify<T, E>,
    {
        call_as(&self.breaker, &self.classify, call).await
    }

    /// As [`Breaker::call_blocking`], judged by the classifier.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_blocking<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, Error<E>>
    where
        C: Classify<T, E>,
    {
        call_blocking_as(&self.breaker, &self.classify, call)
    }

    /// As [`Breaker::call_stream`], each item judged by the classifier.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_stream<S, T, E>(
        &self,
        call: impl Future<Output = Result<S, E>>,
    ) -> Result<Guarded<S, C>, Error<E>>
    where
        S: Stream<Item = Result<T, E>>,
        C: Classify<T, E> + Clone,
    {
        call_stream_as(&self.breaker, self.classify.clone(), call).await
    }

    /// As [`Breaker::call_bytes`]. The classifier judges an `Err` instead of a stream, and no more.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_bytes<S, E, F>(
        &self,
        call: impl Future<Output = Result<S, E>>,
        terms: impl Into<StreamTerms>,
        sleep: impl FnMut(Duration) -> F + Send + 'static,
    ) -> Result<GuardedBytes<S>, Error<E>>
    where
        S: Stream<Item = Result<Bytes, E>>,
        F: Future + Send + 'static,
        C: Classify<Bytes, E>,
    {
        call_bytes_as(&self.breaker, &self.classify, call, terms, sleep).await
    }
}

async fn call_bytes_as<S, E, F>(
    breaker: &Breaker,
    classify: &impl Classify<Bytes, E>,
    call: impl Future<Output = Result<S, E>>,
    terms: impl Into<StreamTerms>,
    sleep: impl FnMut(Duration) -> F + Send + 'static,
) -> Result<GuardedBytes<S>, Error<E>>
where
    S: Stream<Item = Result<Bytes, E>>,
    F: Future + Send + 'static,
{
    let permit = breaker.enter()?.into_owned();
    match call.await {
        Ok(stream) => Ok(permit.guard_bytes(stream, terms, sleep)),
        Err(error) => Err(Error::Inner(permit.judge_error(error, classify))),
    }
}

async fn call_as<T, E>(
    breaker: &Breaker,
    classify: &impl Classify<T, E>,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Error<E>> {
    let permit = breaker.enter()?;
    let result = call.await;
    permit.judge(&result, classify);
    result.map_err(Error::Inner)
}

fn call_blocking_as<T, E>(
    breaker: &Breaker,
    classify: &impl Classify<T, E>,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, Error<E>> {
    let permit = breaker.enter()?;
    let result = call();
    permit.judge(&result, classify);
    result.map_err(Error::Inner)
}

async fn call_stream_as<S, T, E, C>(
    breaker: &Breaker,
    classify: C,
    call: impl Future<Output = Result<S, E>>,
) -> Result<Guarded<S, C>, Error<E>>
where
    S: Stream<Item = Result<T, E>>,
    C: Classify<T, E>,
{
    let permit = breaker.enter()?.into_owned();
    match call.await {
        Ok(stream) => Ok(permit.guard_with(stream, classify)),
        Err(error) => Err(Error::Inner(permit.judge_error(error, &classify))),
    }
}
