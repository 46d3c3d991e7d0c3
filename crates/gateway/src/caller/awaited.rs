//! `Awaited`: an answer that a caller waits for until its last byte is taken over for sending.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::{Asking, Waiting};

/// A body, and what ends with it.
pub(crate) struct Awaited<B> {
    body: B,
    _waiting: Option<Waiting>,
    _asking: Asking,
    _place: Option<OwnedSemaphorePermit>,
}

impl<B> Awaited<B> {
    /// There is neither a call that is waited for nor a place among the calls where the answer was at hand before anybody
    /// was asked.
    pub(crate) fn new(
        body: B,
        asking: Asking,
        waiting: Option<Waiting>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            body,
            _waiting: waiting,
            _asking: asking,
            _place: place,
        }
    }
}

impl<B: Body + Unpin> Body for Awaited<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
