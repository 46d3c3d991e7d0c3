//! `Streaming`: a committed stream on its way to the caller.
//!
//! Nothing is read from the upstream that the caller does not ask for, so a slow reader slows his own stream and fills
//! no memory. How the stream ended is recorded the moment that is known; dropping it closes the upstream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::{Reason, Step, StreamEnding};
use http_body::{Body, Frame};

use super::cache::Keeper;
use super::context::Context as CallContext;
use super::driven::Driven;
use super::streamed::Streamed;
use super::watched::Watched;

/// A stream that is passed on event by event.
pub(crate) struct Streaming {
    watched: Box<Watched>,
    attempt: Box<Driven>,
    /// What the call could still have waited when it was committed.
    patience: Duration,
    call: CallContext,
    is_settled: bool,
    /// Handed on so far.
    bytes: u64,
    /// Collects what passes, while it may be kept.
    keeper: Option<Keeper>,
}

/// The stream could not be ended by an event that says so, and the connection to the caller breaks off instead.
#[derive(Debug)]
pub(crate) struct CutShort;

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream's stream was cut short")
    }
}

impl std::error::Error for CutShort {}

impl Streaming {
    pub(crate) fn new(
        watched: Box<Watched>,
        attempt: Box<Driven>,
        patience: Duration,
        call: CallContext,
        keeper: Option<Keeper>,
    ) -> Self {
        Self {
            watched,
            attempt,
            patience,
            call,
            is_settled: false,
            bytes: 0,
            keeper,
        }
    }

    /// Records how the stream ended, once that is known.
    fn settle(&mut self) {
        let ending = self.watched.guard.ending();
        let Some(ending) = ending.filter(|_| !self.is_settled) else {
            return;
        };
        self.is_settled = true;
        let verdict = self.watched.verdict(&mut self.attempt);
        self.call
            .streamed(Streamed::of(&self.watched.guard, self.bytes));
        self.call.ended(verdict.kind);
        if ending != StreamEnding::Complete {
            self.call.because(&verdict.evidence);
        }
        let now = self.attempt.now();
        self.attempt
            .settle(Step::GiveUp(Reason::Final), self.patience, now);
    }
}

impl Streaming {
    /// All of it has passed: kept, if it was whole and good.
    fn keep(&mut self) {
        let guard = &self.watched.guard;
        let is_whole = guard.ending() == Some(StreamEnding::Complete) && guard.left_out() == 0;
        if let Some(keeper) = self.keeper.take()
            && is_whole
            && self.call.is_success()
        {
            keeper.keep_stream(self.watched.clock.now());
        }
    }

    fn poll_heartbeat(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        let Watched {
            heartbeat, clock, ..
        } = &mut *self.watched;
        match heartbeat {
            Some(heartbeat) if !self.is_settled => heartbeat.poll(context, clock),
            _ => Poll::Pending,
        }
    }
}

impl Body for Streaming {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        let this = &mut *self;
        if this.call.caller().is_ending() {
            let Watched { guard, clock, .. } = &mut *this.watched;
            guard.stopped(clock.now());
        }
        loop {
            this.settle();
            let Watched {
                guard,
                heartbeat,
                clock,
                ..
            } = &mut *this.watched;
            if let Some(bytes) = guard.forward() {
                this.bytes += bytes.len() as u64;
                if let Some(keeper) = &mut this.keeper {
                    keeper.pass(&bytes);
                }
                if let Some(heartbeat) = heartbeat {
                    heartbeat.sent(clock.now());
                }
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if guard.is_over() {
                let ends_honestly = guard.ends_honestly();
                this.keep();
                return Poll::Ready((!ends_honestly).then_some(Err(CutShort)));
            }
            if this
                .watched
                .poll_read(context, &mut this.attempt)
                .is_pending()
            {
                let beat = ready!(this.poll_heartbeat(context));
                return Poll::Ready(Some(Ok(Frame::data(beat))));
            }
        }
    }
}

/// The stream is over, or the caller has left.
impl Drop for Streaming {
    fn drop(&mut self) {
        self.call
            .streamed(Streamed::of(&self.watched.guard, self.bytes));
    }
}
