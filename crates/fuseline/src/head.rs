//! What an HTTP answer says: `ByStatus`, and the body whose end settles the permit. Shared by `tower` and `reqwest`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fuseline_core::{Failure, Kind, Outcome};
use fuseline_llm::{Head, Shape, classify_head};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::classifier::Classify;
use crate::permit::Permit;
use crate::verdict::{outcome, wall};

const SWITCHING_PROTOCOLS: u16 = 101;
const EVENT_STREAM: &str = "text/event-stream";

/// The default for HTTP: judges an answer by its status and wait hints, with the rules of
/// [`classify_head`](crate::classify::classify_head).
///
/// | answer | outcome |
/// |---|---|
/// | 2xx, 304 | success, once its body has come to its end; at once where there is none (`HEAD`, 204) |
/// | 101 | success: the caller asked for an upgrade, and what follows is no answer any more |
/// | 429 | failure of kind `rate_limit`; opens at once where its hint asks for more than 30 s |
/// | 402 | failure of kind `quota_exhausted`; opens at once, for 10 minutes unless the answer says more |
/// | 3xx | nothing: the address is wrong, which says nothing about the provider's health |
/// | 5xx, 408, 425 and all others | failure of their kind, of which the policy says whether it counts: 400, 401, 403 and 404 do not |
/// | no answer | failure of kind `network`, or `timeout` where the client can tell |
/// | a body that breaks off | failure of kind `network`; `stream_truncated` for `text/event-stream` |
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is written by its name"
)]
pub struct ByStatus;

impl<E> Classify<http::response::Parts, E> for ByStatus {
    fn classify(&self, result: &Result<http::response::Parts, E>, took: Duration) -> Outcome {
        match result {
            Ok(parts) => of_head(parts.status.as_u16(), &parts.headers, took),
            Err(_) => Outcome::failure(Kind::Network),
        }
    }
}

/// The outcome of a head: a success is one only once the body has ended.
pub(crate) fn of_head(status: u16, headers: &HeaderMap, took: Duration) -> Outcome {
    if status == SWITCHING_PROTOCOLS {
        return Outcome::success(took);
    }
    let Some(verdict) = classify_head(&Head::new(status, headers), wall()) else {
        return Outcome::success(took);
    };
    outcome(&verdict, took)
}

/// Settles the permit of an answer by its head, or keeps it for the body's end.
pub(crate) fn settle_head<B: Body>(
    permit: Permit,
    outcome: &Outcome,
    headers: &HeaderMap,
    body: B,
    fault: fn(&B::Error, Shape) -> Kind,
) -> BreakerBody<B> {
    let shape = shape_of(headers);
    let mut permit = Some(permit);
    let is_empty = body.is_end_stream() || body.size_hint().exact() == Some(0);
    let decided = is_empty || !matches!(outcome, Outcome::Success { .. });
    if let Some(permit) = permit.take_if(|_| decided) {
        permit.record(outcome);
    }
    BreakerBody {
        inner: body,
        permit,
        shape,
        first: None,
        fault,
    }
}

fn shape_of(headers: &HeaderMap) -> Shape {
    let media = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    match media.and_then(|media| media.get(..EVENT_STREAM.len())) {
        Some(media) if media.eq_ignore_ascii_case(EVENT_STREAM) => Shape::Stream,
        _ => Shape::Plain,
    }
}

/// What a break means where the client cannot tell more.
pub(crate) const fn broken(shape: Shape) -> Kind {
    match shape {
        Shape::Stream => Kind::StreamTruncated,
        Shape::Plain => Kind::Network,
    }
}

pin_project! {
    /// A body whose end settles the permit of its call. The same frames come out.
    ///
    /// Its end is a success, timed to the first byte of an event stream and to the end of anything else; an error is a
    /// failure; dropped before, it says nothing. Bytes are signs of life, whatever they say: events are not read. An
    /// event stream under a probe has proved itself after 5 s of them (`probe_proof`); a probe's body that nobody reads
    /// fails when its lease ends.
    pub struct BreakerBody<B>
    where
        B: Body,
    {
        #[pin]
        inner: B,
        permit: Option<Permit>,
        shape: Shape,
        first: Option<Duration>,
        fault: fn(&B::Error, Shape) -> Kind,
    }
}

impl<B: Body> Body for BreakerBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        let Some(permit) = this.permit.take() else {
            return Poll::Ready(frame);
        };
        let first = *this.first.get_or_insert_with(|| permit.elapsed());
        let took = match this.shape {
            Shape::Stream => first,
            Shape::Plain => permit.elapsed(),
        };
        let is_proven = *this.shape == Shape::Stream && permit.is_proven(first);
        match &frame {
            Some(Err(error)) => {
                permit.record(&Outcome::Failure(Failure::new((this.fault)(
                    error,
                    *this.shape,
                ))));
            }
            Some(Ok(_)) if !is_proven && !this.inner.is_end_stream() => {
                permit.progress();
                *this.permit = Some(permit);
            }
            None | Some(Ok(_)) => {
                permit.record(&Outcome::success(took));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: Body> std::fmt::Debug for BreakerBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BreakerBody")
            .field("permit", &self.permit)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
