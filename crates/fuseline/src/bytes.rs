//! `GuardedBytes`: a streamed answer as it comes from the provider. What its events say settles the permit. Hot path:
//! bytes pass through as slices of what came, without a lock; a timer is armed anew only when it has rung, or must
//! ring earlier.

mod alarm;
mod collect;
mod error;
mod terms;
mod watch;

use std::borrow::Borrow;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::{Completion, Fault, Incomplete, StreamEnding, Usage, Verdict};
use futures_core::Stream;
use pin_project_lite::pin_project;

pub(crate) use self::alarm::Alarm;
pub use self::collect::collect;
use self::collect::gather;
pub use self::error::StreamError;
pub use self::terms::StreamTerms;
pub use self::watch::Watch;
use crate::breaker::Breaker;
use crate::permit::Permit;

pin_project! {
    /// A streamed answer under a permit. Made by [`Permit::guard_bytes`].
    ///
    /// The provider's own bytes come out, each event when its last byte is there; nothing is added to them. What is no
    /// JSON where it should be is left out, unless a tool call is being written. **A stream that ends with `None` is
    /// complete**; any other ending is one last `Err`: a [`StreamError`]. The permit settles once, by whichever comes first:
    ///
    /// | what happens | recorded |
    /// |---|---|
    /// | the answer comes to its end marker; it is read on to the end all the same | success, timed to its first content event |
    /// | an error in the stream | the failure that it names: `overloaded`, `rate_limit` ... |
    /// | its end without an end marker, an error of your stream's, broken framing | `stream_truncated` |
    /// | an end before anything was said | `empty_response` |
    /// | a limit passes ([`StreamTimers`](crate::classify::StreamTimers)): no content, or too slowly | `stream_stall`; for `total` `timeout` |
    /// | a probe has delivered content for `probe_proof` (5 s unless set) | success |
    /// | it is dropped, or never read | nothing; a probe's slot is free again |
    /// | it is dropped when it has been waited on for `cancel_counts_after` (20 s unless set) without a content event | `timeout` |
    ///
    /// The limits run from when the permit was given, by the breaker's clock. The time in which you do not ask for
    /// bytes is yours: only `total` counts it. Content events are signs of life, which keep a probe's lease; pings are not.
    /// A probe's lease is `probe_timeout` (60 s unless set): where `first_token` is longer, set that too, or ask for leave
    /// with [`try_acquire_within`](crate::Breaker::try_acquire_within).
    ///
    /// ```
    /// use std::{convert::Infallible, future::poll_fn, pin::Pin};
    /// use fuseline::{Breaker, Policy, StreamError, classify::{Dialect, StreamEnding}};
    /// use futures_core::Stream;
    /// # use std::task::{Context, Poll};
    /// # struct Cut(Option<&'static str>);
    /// # impl Stream for Cut {
    /// #     type Item = Result<bytes::Bytes, Infallible>;
    /// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    /// #         Poll::Ready(self.0.take().map(|chunk| Ok(chunk.into())))
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = Cut(Some("data: {\"choices\":[{\"delta\":{\"content\":\"Beca\"}}]}\n\n"));
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let permit = breaker.try_acquire_owned()?;
    /// let mut stream = permit.guard_bytes(body, Dialect::OpenAiChat, tokio::time::sleep);
    /// while let Some(bytes) = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
    ///     match bytes {
    ///         Ok(bytes) => print!("{}", String::from_utf8_lossy(&bytes)),
    ///         Err(StreamError::Incomplete { ending, .. }) => assert_eq!(ending, StreamEnding::Truncated),
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// assert_eq!(breaker.snapshot().run, 1);
    /// # Ok(()) }
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct GuardedBytes<S: Stream, B: Borrow<fuseline_core::Breaker> = Breaker> {
        // None once nothing more is wanted from it.
        #[pin]
        stream: Option<S>,
        // Its error, until it is handed on.
        error: Option<S::Item>,
        watch: Watch<B>,
        // Behind a lock that nobody takes: a timer need not be shared between threads, a stream may be.
        alarm: Mutex<Alarm>,
        fault: fn(&S::Item) -> Fault,
    }
}

impl<S: Stream, B: Borrow<fuseline_core::Breaker>> GuardedBytes<S, B> {
    pub(crate) fn new(permit: Permit<B>, stream: S, terms: StreamTerms, alarm: Alarm) -> Self
    where
        B: Clone,
    {
        Self {
            stream: Some(stream),
            error: None,
            watch: Watch::new(permit, terms),
            alarm: Mutex::new(alarm),
            fault: |_| Fault::Reset,
        }
    }

    /// Tells by the stream's errors what happened on the wire.
    #[cfg(feature = "reqwest")]
    pub(crate) fn fault(mut self, fault: fn(&S::Item) -> Fault) -> Self {
        self.fault = fault;
        self
    }

    /// How the stream ended, once that is known: an answer may be complete while bytes still come.
    pub fn ending(&self) -> Option<StreamEnding> {
        self.watch.guard().ending()
    }

    /// What the classifier says of the ending: the kind of a failure, and the provider's wait hint.
    pub const fn verdict(&self) -> Option<&Verdict> {
        self.watch.verdict()
    }

    /// Whether the permit has been settled.
    pub const fn is_settled(&self) -> bool {
        self.watch.is_settled()
    }

    /// The tokens counted so far.
    pub const fn usage(&self) -> Usage {
        self.watch.guard().usage()
    }

    /// How long the first content event took, from when the permit was given. None before it.
    pub fn first_token(&self) -> Option<Duration> {
        self.watch.guard().first_token()
    }

    /// How many events were left out because they were no JSON.
    pub const fn left_out(&self) -> u64 {
        self.watch.guard().left_out()
    }

    /// Reads to the end and puts the answer together: text, reasoning, tool calls with all of their arguments. At most
    /// [`Collector::LIMIT`](fuseline_llm::Collector::LIMIT) bytes of it; [`collect`] takes another limit.
    ///
    /// # Errors
    /// [`Incomplete`]: the stream failed, or the model stopped in a tool call. Half an answer is never given out as one.
    pub async fn collect<E>(self) -> Result<Completion, Incomplete<E>>
    where
        S: Stream<Item = Result<Bytes, E>>,
    {
        let mut stream = pin!(self);
        let collector = stream.watch.terms().collector();
        let collected = gather(stream.as_mut(), collector, StreamError::into_reason).await;
        collected.map_err(|mut incomplete| {
            incomplete.kind = stream.verdict().and_then(|verdict| verdict.kind);
            incomplete
        })
    }
}

impl<S, B, E> Stream for GuardedBytes<S, B>
where
    S: Stream<Item = Result<Bytes, E>>,
    B: Borrow<fuseline_core::Breaker>,
{
    type Item = Result<Bytes, StreamError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let watch = this.watch;
        loop {
            if let Some(bytes) = watch.forward() {
                return Poll::Ready(Some(Ok(bytes)));
            }
            let Some(stream) = this.stream.as_mut().as_pin_mut() else {
                return Poll::Ready(None);
            };
            if watch.guard().is_over() {
                this.stream.set(None);
                return Poll::Ready(last_word(watch, this.error.take()));
            }
            watch.asked();
            if watch.guard().is_over() {
                continue;
            }
            match stream.poll_next(cx) {
                Poll::Ready(Some(Ok(chunk))) => watch.bytes(chunk),
                Poll::Ready(Some(error)) => {
                    watch.broke((this.fault)(&error));
                    *this.error = Some(error);
                }
                Poll::Ready(None) => watch.end(),
                Poll::Pending => match watch.deadline() {
                    Some((at, now)) => {
                        let alarm = this.alarm.get_mut();
                        let alarm = alarm.unwrap_or_else(PoisonError::into_inner);
                        ready!(alarm.poll_rung(at, now, cx));
                    }
                    None => return Poll::Pending,
                },
            }
        }
    }
}

/// What a stream that is over is ended with: nothing, if it is complete.
fn last_word<B, E>(
    watch: &Watch<B>,
    error: Option<Result<Bytes, E>>,
) -> Option<Result<Bytes, StreamError<E>>>
where
    B: Borrow<fuseline_core::Breaker>,
{
    let ending = watch.guard().ending();
    let ending = ending.filter(|ending| *ending != StreamEnding::Complete)?;
    Some(Err(match error {
        Some(Err(error)) if matches!(ending, StreamEnding::Broken(_)) => StreamError::Inner(error),
        _ => StreamError::Incomplete {
            ending,
            kind: watch.kind(),
        },
    }))
}

impl<S: Stream, B: Borrow<fuseline_core::Breaker>> fmt::Debug for GuardedBytes<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBytes")
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}
