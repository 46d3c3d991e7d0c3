//! `Awaited`: an answer that a caller waits for until its last byte is taken over for sending.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

use super::Waiting;

/// A body, and the call that ends with it; none where the answer was at hand before anybody was asked.
pub(crate) struct Awaited<B> {
    body: B,
    _waiting: Option<Waiting>,
}

impl<B> Awaited<B> {
    pub(crate) fn new(body: B, waiting: Option<Waiting>) -> Self {
        Self {
            body,
            _waiting: waiting,
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
