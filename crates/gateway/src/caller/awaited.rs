//! `Awaited`: an answer that a caller waits for until its last byte is taken over for sending.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A body, and what is held until it is gone, such as the call that ends with it.
pub(crate) struct Awaited<B, H> {
    body: B,
    _held: H,
}

impl<B, H> Awaited<B, H> {
    pub(crate) const fn new(body: B, held: H) -> Self {
        Self { body, _held: held }
    }
}

impl<B: Body + Unpin, H: Unpin> Body for Awaited<B, H> {
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
