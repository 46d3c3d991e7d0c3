//! `Guarded`: a stream whose end settles its permit. Hot path: items pass through untouched, without a lock or an
//! allocation.

use std::borrow::Borrow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fuseline_core::Outcome;
use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::breaker::Breaker;
use crate::classifier::{AnyError, Classify};
use crate::permit::Permit;

pin_project! {
    /// A stream under a permit. The same items come out; the permit settles once, by whichever comes first:
    ///
    /// | what happens | recorded |
    /// |---|---|
    /// | the stream ends (`None`), or [`success`](Guarded::success) is said | success, timed to its first item |
    /// | the classifier calls an item a failure, `Ok` or `Err` | that failure; the stream goes on as it will |
    /// | the classifier calls an `Err` neutral | nothing |
    /// | a probe has delivered for `probe_proof` (5 s unless set) | success |
    /// | the guard is dropped before | nothing; a probe's slot is free again |
    ///
    /// Every other item is a sign of life, which keeps a probe's lease. Only a stream's own end counts as its end: a
    /// stream that falls silent is the caller's to give up, by `Err` or by dropping it, and a caller who stops at a marker
    /// (`[DONE]`) says [`success`](Guarded::success), or reads on to `None`.
    #[must_use = "streams do nothing unless polled"]
    pub struct Guarded<S, C = AnyError, B: Borrow<fuseline_core::Breaker> = Breaker> {
        #[pin]
        stream: S,
        permit: Option<Permit<B>>,
        classify: C,
        first: Option<Duration>,
    }
}

impl<S, C, B: Borrow<fuseline_core::Breaker>> Guarded<S, C, B> {
    pub(crate) const fn new(permit: Permit<B>, stream: S, classify: C) -> Self {
        Self {
            stream,
            permit: Some(permit),
            classify,
            first: None,
        }
    }

    /// The stream has said that it is complete: success, though its end has not been polled. Nothing where it is settled.
    ///
    /// ```
    /// # use std::{convert::Infallible, pin::Pin, task::{Context, Poll}};
    /// # use futures_core::Stream;
    /// # struct Events;
    /// # impl Stream for Events {
    /// #     type Item = Result<&'static str, Infallible>;
    /// #     fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    /// #         Poll::Ready(Some(Ok("[DONE]")))
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let breaker = fuseline::Breaker::new("openai", fuseline::Policy::default());
    /// let mut events = breaker.call_stream(async { Ok(Events) }).await?;
    /// while let Some(event) = std::future::poll_fn(|cx| Pin::new(&mut events).poll_next(cx)).await {
    ///     if event? == "[DONE]" {
    ///         events.success();
    ///         break;
    ///     }
    /// }
    /// assert!(events.is_settled());
    /// # Ok(()) }
    /// ```
    pub fn success(&mut self) {
        if let Some(permit) = self.permit.take() {
            let took = self.first.unwrap_or_else(|| permit.elapsed());
            permit.record(&Outcome::success(took));
        }
    }

    /// Whether the permit has been settled; what still comes is not counted.
    pub const fn is_settled(&self) -> bool {
        self.permit.is_none()
    }
}

impl<S, C, B, T, E> Stream for Guarded<S, C, B>
where
    B: Borrow<fuseline_core::Breaker>,
    S: Stream<Item = Result<T, E>>,
    C: Classify<T, E>,
{
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let item = ready!(this.stream.poll_next(cx));
        let Some(permit) = this.permit.take() else {
            return Poll::Ready(item);
        };
        let first = *this.first.get_or_insert_with(|| permit.elapsed());
        match &item {
            None => {
                permit.record(&Outcome::success(first));
            }
            Some(result) => match (this.classify.classify(result, first), result) {
                (outcome @ Outcome::Failure(_), _) | (outcome @ Outcome::Neutral, Err(_)) => {
                    permit.record(&outcome);
                }
                _ if permit.is_proven(first) => {
                    permit.record(&Outcome::success(first));
                }
                _ => {
                    permit.progress();
                    *this.permit = Some(permit);
                }
            },
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl<S, C, B: Borrow<fuseline_core::Breaker>> fmt::Debug for Guarded<S, C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("permit", &self.permit)
            .finish_non_exhaustive()
    }
}
