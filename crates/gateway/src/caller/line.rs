//! `Line`: a caller's socket, as HTTP is spoken over it; what passes is noted.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Caller;

/// A socket that tells its [`Caller`] what he takes. Its write half is shared with his watch, not its read half: the runtime
/// knows of a read that left nothing only by its own.
pub(crate) struct Line {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
    caller: Caller,
}

impl Line {
    pub(super) fn new(read: OwnedReadHalf, write: Arc<OwnedWriteHalf>, caller: Caller) -> Self {
        Self {
            read,
            write,
            caller,
        }
    }

    fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stream: &TcpStream = self.write.as_ref().as_ref();
        loop {
            ready!(stream.poll_write_ready(context))?;
            match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.caller.state().hand_on(buffer) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = self.poll_send(context, bytes);
        self.caller.sent(&polled);
        polled
    }

    /// A socket holds nothing back.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = self.write.as_ref().as_ref();
        Poll::Ready(SockRef::from(stream).shutdown(Shutdown::Write))
    }
}
