//! `Front`: gives a body to the answers that the HTTP library writes by itself.
//!
//! What is no request that can be read never reaches a service: the library answers it by a head alone, with the status
//! 400, 414 or 431, and closes the connection. SDKs and people expect a reason. An answer of that kind is known by its
//! time: it is written while nobody's call is being answered, so that no byte of an answer is ever taken for one. Where the
//! last answer is still on its way, it stays as it is.
//!
//! It takes no lists of buffers, on purpose: the library then puts what belongs together (an event, its length, the head of an
//! answer) into one, which costs less than a list does. No piece that it is given is large: see `Whole`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::caller::Caller;
use crate::proxy;

const NO_BODY: &str = "content-length: 0\r\n";

/// A line to a caller.
pub(super) struct Front<L> {
    line: L,
    caller: Caller,
    /// What is still to be written in place of the library's own answer.
    own: Option<Bytes>,
}

impl<L> Front<L> {
    pub(super) fn new(line: L, caller: Caller) -> Self {
        Self {
            line,
            caller,
            own: None,
        }
    }
}

impl<L: AsyncRead + Unpin> AsyncRead for Front<L> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line).poll_read(context, buffer)
    }
}

impl<L: AsyncWrite + Unpin> AsyncWrite for Front<L> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.own.is_none() && !this.caller.is_asking() {
            this.own = with_a_body(bytes);
        }
        let Some(own) = &mut this.own else {
            return Pin::new(&mut this.line).poll_write(context, bytes);
        };
        while own.has_remaining() {
            let written = ready!(Pin::new(&mut this.line).poll_write(context, own))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            own.advance(written);
        }
        this.own = None;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The library asks for it once it has nothing more of its own.
        self.caller.flushed();
        Pin::new(&mut self.line).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line).poll_shutdown(context)
    }
}

/// An answer without a body, with one.
fn with_a_body(head: &[u8]) -> Option<Bytes> {
    let head = str::from_utf8(head).ok()?;
    let status: u16 = head.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    let (before, after) = head.split_once(NO_BODY)?;
    let body = proxy::unreadable(status)?;
    tracing::debug!(status, "a request could not be read");
    let length = body.len();
    let answer = format!(
        "{before}content-type: application/json\r\ncontent-length: {length}\r\n{after}{body}"
    );
    Some(answer.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_own_answers_get_a_reason_and_nothing_else_does() {
        for (status, code) in [
            (400, "bad_request"),
            (414, "uri_too_long"),
            (431, "head_too_large"),
        ] {
            let head =
                format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{NO_BODY}date: d\r\n\r\n");
            let answer = with_a_body(head.as_bytes()).unwrap();
            let answer = str::from_utf8(&answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.contains(&format!("content-length: {}\r\n", body.len())),
                "{head}"
            );
            assert!(head.ends_with("date: d"), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["error"]["code"], code);
        }
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\n",
            "",
        ] {
            assert_eq!(with_a_body(other.as_bytes()), None, "{other}");
        }
    }
}
