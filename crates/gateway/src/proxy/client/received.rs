//! `Received`: an answer's body, which brings its connection back when it has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::host::Host;
use super::line::Line;

/// A body as it comes. Dropped before its end, it closes its connection, or by HTTP/2 its stream.
pub(crate) struct Received {
    body: Incoming,
    /// Until the end.
    line: Option<(Arc<Host>, Line)>,
}

impl Received {
    pub(super) fn new(body: Incoming, host: Arc<Host>, line: Line) -> Self {
        let mut received = Self {
            body,
            line: Some((host, line)),
        };
        received.note_end();
        received
    }

    /// The library does not ask for more after the last byte that a length announced.
    fn note_end(&mut self) {
        if self.body.is_end_stream() {
            self.ended();
        }
    }

    fn ended(&mut self) {
        if let Some((host, line)) = self.line.take() {
            host.give_back(line);
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(None) => self.ended(),
            Poll::Ready(Some(Ok(_))) => self.note_end(),
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
