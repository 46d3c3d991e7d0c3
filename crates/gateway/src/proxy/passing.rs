//! `Passing`: a body that is not looked into on its way to the caller, and the eye that its attempt keeps on it.
//!
//! Bytes are handed on as they come: nothing is read from the upstream that the caller does not ask for, so a slow
//! reader slows his own stream and fills no memory. Whatever ends it (the proper end, a fault, a caller who left) is
//! told to the attempt, and dropping it closes the upstream.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::{Fault, Reason, Step};
use http_body::{Body, Frame, SizeHint};

use super::client::Received;
use super::context::Context as CallContext;
use super::driven::Driven;
use super::whole::Whole;

/// A body that is passed on frame by frame.
pub(crate) struct Passing {
    /// What was read before it was known that the rest would not be waited for.
    begun: Whole,
    rest: Received,
    watch: Option<Watch>,
}

/// Who is told how it went.
pub(crate) struct Watch {
    pub(crate) attempt: Box<Driven>,
    /// What the call could still have waited when it was committed.
    pub(crate) patience: Duration,
    pub(crate) context: CallContext,
}

impl Passing {
    /// Passes `begun` and then `rest` on; without a watch nobody is told, since all is settled.
    pub(crate) fn new(begun: Bytes, rest: Received, watch: Option<Watch>) -> Self {
        let begun = Whole::from(begun);
        let mut passing = Self { begun, rest, watch };
        passing.note_end();
        passing
    }

    /// hyper does not ask for more after the last byte that a length announced, so the end is looked for at each step.
    fn note_end(&mut self) {
        if self.rest.is_end_stream()
            && let Some(watch) = self.watch.take()
        {
            watch.ended();
        }
    }
}

impl Watch {
    fn saw(&mut self, bytes: usize) {
        let now = self.attempt.now();
        self.attempt.body(bytes, now);
    }

    fn ended(mut self) {
        let now = self.attempt.now();
        self.context.ended(self.attempt.end(now).kind);
        self.settle();
    }

    fn broke(mut self) {
        let now = self.attempt.now();
        self.context
            .ended(self.attempt.failed(Fault::Reset, now).kind);
        self.settle();
    }

    fn settle(&mut self) {
        let now = self.attempt.now();
        self.attempt
            .settle(Step::GiveUp(Reason::Final), self.patience, now);
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(piece) = self.begun.piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let polled = Pin::new(&mut self.rest).poll_frame(context);
        match &polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(bytes), Some(watch)) = (frame.data_ref(), &mut self.watch) {
                    watch.saw(bytes.len());
                }
                self.note_end();
            }
            Poll::Ready(Some(Err(_))) => {
                if let Some(watch) = self.watch.take() {
                    watch.broke();
                }
            }
            Poll::Ready(None) => {
                if let Some(watch) = self.watch.take() {
                    watch.ended();
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let begun = self.begun.left();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(begun));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(begun));
        }
        hint
    }
}
