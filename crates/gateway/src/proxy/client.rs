//! The HTTP client: requests over connections that are kept for the next one, those of one provider together.
//!
//! ```text
//! Pool ─► Host ─► Line: a kept one, or a new one by Connector
//!           ▲       │
//!           └───────┴── Received: the answer's body, which brings its line back at its end
//! ```

mod connector;
mod host;
mod line;
mod received;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::Fault;
use http::{Request, Response, Uri};
use http_body_util::Full;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;

use crate::config::PoolSpec;
use connector::Connector;
use host::Host;
use line::Line;
pub(crate) use received::Received;

/// All connections to providers. Clones share them.
#[derive(Clone)]
pub(crate) struct Clients(Arc<Shared>);

struct Shared {
    connector: Connector,
    settings: PoolSpec,
    /// By whether TLS is spoken, and by authority; as many as the configuration names.
    hosts: Mutex<[BTreeMap<String, Arc<Host>>; 2]>,
}

/// Sends requests whose body is at hand, over connections that stand within a limit.
#[derive(Clone)]
pub(crate) struct Pool {
    clients: Clients,
    limit: Duration,
    reuse: Reuse,
}

/// Whether a request may go over a connection that stands already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reuse {
    #[default]
    Allowed,
    Refused,
}

/// Why there is no answer. Its text may hold an address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no connection came about")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    #[error("the connection broke before an answer came")]
    Broken {
        #[source]
        error: hyper::Error,
        /// It had brought an answer before. One that breaks without a byte then was idle for too long; on a fresh one the
        /// provider itself hung up.
        was_proven: bool,
        is_http2: bool,
    },
}

impl Clients {
    /// `authorities` are trusted beside the public ones.
    pub(crate) fn new(
        crypto: Arc<CryptoProvider>,
        authorities: &[CertificateDer<'static>],
        settings: PoolSpec,
    ) -> Result<Self, rustls::Error> {
        Ok(Self(Arc::new(Shared {
            connector: Connector::new(crypto, authorities, settings)?,
            settings,
            hosts: Mutex::default(),
        })))
    }

    /// For requests whose connection must stand within `limit`, TLS included.
    pub(crate) fn with_connect_timeout(&self, limit: Duration, reuse: Reuse) -> Pool {
        Pool {
            clients: self.clone(),
            limit,
            reuse,
        }
    }

    fn host(&self, uri: &Uri) -> Arc<Host> {
        let is_tls = uri.scheme() != Some(&http::uri::Scheme::HTTP);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let [plain, secured] = &mut *hosts;
        let hosts = if is_tls { secured } else { plain };
        if let Some(host) = hosts.get(authority) {
            return Arc::clone(host);
        }
        let host = Arc::new(Host::new(uri, self.0.settings));
        hosts.insert(authority.to_owned(), Arc::clone(&host));
        host
    }
}

impl Pool {
    /// Sends a request, and gives the answer's head and its body as it comes. A request that a kept connection did not
    /// take, because it was about to close, goes over another one.
    pub(crate) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Received>, Failure> {
        let host = self.clients.host(request.uri());
        loop {
            let kept = match self.reuse {
                Reuse::Allowed => host.take(),
                Reuse::Refused => None,
            };
            let is_kept = kept.is_some();
            let mut line = match kept {
                Some(line) => line,
                None => Box::pin(self.connect(&host)).await?,
            };
            line.address(&mut request, &host);
            match line.send(request).await {
                Ok(response) => {
                    line.prove();
                    return Ok(response.map(|body| Received::new(body, host, line)));
                }
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if is_kept => request = unsent,
                    _ => return Err(line.failure(refused.into_error())),
                },
            }
        }
    }

    async fn connect(&self, host: &Arc<Host>) -> Result<Line, Failure> {
        let connecting = self.clients.0.connector.connect(host.root().clone());
        let line = match tokio::time::timeout(self.limit, connecting).await {
            Ok(connected) => connected.map_err(Failure::Connect)?,
            Err(late) => return Err(Failure::Connect(late.into())),
        };
        host.share(&line);
        Ok(line)
    }
}

impl Failure {
    /// What it means.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Broken {
                error, was_proven, ..
            } => match reset_before_processing(error) {
                true => Fault::NotProcessed,
                false if *was_proven && !is_unreadable(error) => Fault::Stale,
                false => Fault::Reset,
            },
            Self::Connect(error) => unconnected(error.as_ref()),
        }
    }

    /// Where one kept connection has died unnoticed, so may have others of its age. By HTTP/2 there is but one, and all of
    /// its calls find the next one.
    pub(crate) fn reuse_after(&self) -> Reuse {
        match self {
            Self::Broken {
                is_http2: false, ..
            } if self.fault() == Fault::Stale => Reuse::Refused,
            _ => Reuse::Allowed,
        }
    }
}

/// Why no connection came about.
fn unconnected(error: &(dyn Error + 'static)) -> Fault {
    let mut found = Fault::Refused;
    for cause in causes(error) {
        if cause.is::<tokio::time::error::Elapsed>() {
            return Fault::ConnectTimeout;
        }
        if cause.is::<rustls::Error>() {
            return Fault::Tls;
        }
        // hyper-util names the step that failed only in words.
        if cause.to_string().starts_with("dns error") {
            found = Fault::Dns;
        }
    }
    found
}

/// Whether the peer said of an HTTP/2 stream that it did not begin with it.
fn reset_before_processing(error: &hyper::Error) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<h2::Error>())
        .any(|cause| {
            cause.reason() == Some(h2::Reason::REFUSED_STREAM)
                || (cause.is_go_away()
                    && cause.is_remote()
                    && cause.reason() == Some(h2::Reason::NO_ERROR))
        })
}

/// Whether the peer did answer, in no HTTP: then it has begun, and may be at work on the request.
fn is_unreadable(error: &hyper::Error) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_parse)
}

/// The chain of causes, outermost first. An I/O error hides the one it wraps from its own chain.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
