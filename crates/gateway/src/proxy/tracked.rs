//! `Tracked`: a connection to a provider, and what is known of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Response, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use tokio::time::Instant;
use tower_service::Service;

/// What is known of a connection. Clones are the same one's.
#[derive(Clone)]
pub(crate) struct Mark(Arc<Known>);

struct Known {
    /// It has brought an answer before. One that breaks without a byte then was idle for too long; on a fresh one the
    /// provider itself hung up.
    is_proven: AtomicBool,
    /// From when on no further call takes it; none = never.
    of_age_at: Option<Instant>,
}

impl Mark {
    fn new(max_age: Duration) -> Self {
        Self(Arc::new(Known {
            is_proven: AtomicBool::new(false),
            of_age_at: Instant::now().checked_add(max_age),
        }))
    }

    /// Notes that the connection behind this answer works, and gives whether it has come of age.
    pub(crate) fn note<B>(response: &Response<B>) -> bool {
        let Some(Self(known)) = response.extensions().get() else {
            return false;
        };
        known.is_proven.store(true, Ordering::Relaxed);
        known.of_age_at.is_some_and(|at| at <= Instant::now())
    }

    /// Whether the connection that this error is of had brought an answer before.
    pub(crate) fn was_proven(error: &ClientError) -> bool {
        let mut extras = http::Extensions::new();
        if let Some(connected) = error.connect_info() {
            connected.get_extras(&mut extras);
        }
        extras
            .get::<Self>()
            .is_some_and(|Self(known)| known.is_proven.load(Ordering::Relaxed))
    }
}

type Inner = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;

/// A connection that carries its [`Mark`].
pub(crate) struct Tracked {
    inner: Inner,
    mark: Mark,
}

impl Tracked {
    /// One that is of age after so long.
    pub(crate) fn new(inner: Inner, max_age: Duration) -> Self {
        Self {
            inner,
            mark: Mark::new(max_age),
        }
    }
}

impl Connection for Tracked {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.mark.clone())
    }
}

impl Read for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl Write for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }
}
