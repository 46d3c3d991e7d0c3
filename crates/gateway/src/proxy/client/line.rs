//! `Line`: one connection to a provider, and what is known of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::time::Instant;

use super::Failure;
use super::host::Host;

type Outgoing = Request<Full<Bytes>>;

/// A connection over which a request can be sent: one at a time by HTTP/1.1, any number by HTTP/2.
pub(super) struct Line {
    sender: Sender,
    known: Arc<Known>,
    /// When it was used last.
    pub(super) used: Instant,
}

pub(super) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

struct Known {
    /// It has brought an answer before.
    is_proven: AtomicBool,
    /// From when on no further call takes it; none = never.
    of_age_at: Option<Instant>,
}

impl Line {
    /// One that is of age after so long.
    pub(super) fn new(sender: Sender, max_age: Duration) -> Self {
        let now = Instant::now();
        Self {
            sender,
            known: Arc::new(Known {
                is_proven: AtomicBool::new(false),
                of_age_at: now.checked_add(max_age),
            }),
            used: now,
        }
    }

    /// The same connection for a further request, where it takes several at once.
    pub(super) fn another(&self) -> Option<Self> {
        let Sender::Http2(sender) = &self.sender else {
            return None;
        };
        Some(Self {
            sender: Sender::Http2(sender.clone()),
            known: Arc::clone(&self.known),
            used: self.used,
        })
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    /// Whether a request can be sent at once. One whose last answer has just ended may need a moment.
    pub(super) fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => sender.is_ready(),
        }
    }

    /// Whether nothing goes over it any more, or nothing should.
    pub(super) fn is_over(&self, now: Instant, idle_timeout: Duration) -> bool {
        let is_closed = match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        };
        is_closed
            || self.known.of_age_at.is_some_and(|at| at <= now)
            || now.saturating_duration_since(self.used) > idle_timeout
    }

    /// Writes the address as this line's HTTP has it.
    pub(super) fn address(&self, request: &mut Outgoing, host: &Host) {
        let parts = std::mem::take(request.uri_mut()).into_parts();
        let path = parts
            .path_and_query
            .unwrap_or(PathAndQuery::from_static("/"));
        if self.is_http2() {
            *request.uri_mut() = host.at(path);
            request.headers_mut().remove(HOST);
        } else {
            *request.uri_mut() = path.into();
            request.headers_mut().insert(HOST, host.name().clone());
        }
    }

    pub(super) async fn send(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(request).await,
            Sender::Http2(sender) => sender.try_send_request(request).await,
        }
    }

    /// It has brought an answer.
    pub(super) fn prove(&self) {
        self.known.is_proven.store(true, Ordering::Relaxed);
    }

    /// It has not.
    pub(super) fn failure(&self, error: hyper::Error) -> Failure {
        Failure::Broken {
            error,
            was_proven: self.known.is_proven.load(Ordering::Relaxed),
            is_http2: self.is_http2(),
        }
    }
}
