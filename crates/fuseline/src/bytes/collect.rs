//! `collect`: a stream of bytes, guarded or not, as one answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};

use bytes::Bytes;
use fuseline_llm::{Collector, Completion, Incomplete, IncompleteReason};
use futures_core::Stream;

/// Reads any stream of an answer's bytes to its end and puts the answer together, in the collector's dialect and up to
/// its limit. What it is given of [`GuardedBytes`](crate::GuardedBytes) is watched; of any other stream a silence lasts
/// as long as it lasts.
///
/// # Errors
/// [`Incomplete`]: the stream failed or ended without an end marker, or the model stopped in a tool call. Half an answer
/// is never given out as one.
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
/// use fuseline::classify::{Collector, Dialect, Framing};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let line = "{\"message\":{\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n";
/// # let body = Body(Some(line));
/// let collector = Collector::new(Dialect::Ollama, Framing::NdJson).limit(100_000);
/// let answer = fuseline::collect(body, collector).await.unwrap();
/// assert_eq!(answer.text, "Hi");
/// # }
/// ```
pub async fn collect<S, E>(stream: S, collector: Collector) -> Result<Completion, Incomplete<E>>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    gather(pin!(stream), collector, IncompleteReason::Inner).await
}

pub(super) async fn gather<S, T, E>(
    mut stream: Pin<&mut S>,
    mut collector: Collector,
    reason: impl FnOnce(T) -> IncompleteReason<E>,
) -> Result<Completion, Incomplete<E>>
where
    S: Stream<Item = Result<Bytes, T>>,
{
    while !collector.has_failed() {
        match poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            Some(Ok(chunk)) => collector.bytes(&chunk),
            // Whatever happens to the connection after the end marker does not matter.
            Some(Err(_)) if collector.is_complete() => break,
            Some(Err(error)) => return Err(collector.broke(reason(error))),
            None => break,
        }
    }
    collector.end()
}
