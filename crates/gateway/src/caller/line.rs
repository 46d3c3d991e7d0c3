//! `Line`: a caller's socket, as HTTP is spoken over it; what passes is noted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Caller;

/// A socket that tells its [`Caller`] what he takes.
pub(crate) struct Line {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
    caller: Caller,
}

impl Line {
    pub(super) fn new(read: Arc<OwnedReadHalf>, write: OwnedWriteHalf, caller: Caller) -> Self {
        Self {
            read,
            write,
            caller,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.caller.state().hand_on(buffer) {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.read.as_ref().as_ref().poll_read_ready(context))?;
            match self.read.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.write).poll_write(context, bytes);
        self.caller.sent(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.write).poll_write_vectored(context, slices);
        self.caller.sent(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
