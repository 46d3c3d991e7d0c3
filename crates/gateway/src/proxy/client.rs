//! The HTTP client: one pool for each connect timeout, TLS included in the time.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::Fault;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::tracked::{Mark, Tracked};
use crate::config::PoolSpec;

/// A client for requests whose body is at hand.
pub(crate) type Pool = Client<Timed, Full<Bytes>>;

/// The pools, by connect timeout; as many as the configuration has different ones, and as many that keep nothing.
pub(crate) struct Clients {
    connector: HttpsConnector<HttpConnector>,
    settings: PoolSpec,
    pools: Mutex<BTreeMap<(Duration, Reuse), Pool>>,
}

/// Whether a request may go over a connection that stands already, and leaves its own for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reuse {
    #[default]
    Allowed,
    Refused,
}

/// Most of an answer that is read before the caller takes it, and most of a head; an HTTP/2 stream may send a bit more.
const READ_AHEAD: usize = 32 << 10;
const STREAM_WINDOW: u32 = 256 << 10;
/// Enough for 256 streams that nobody reads: they must not hold up the others on their connection.
const CONNECTION_WINDOW: u32 = 256 * STREAM_WINDOW;
/// Between further questions to a silent peer, and how many.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

impl Clients {
    /// `authorities` are trusted beside the public ones.
    pub(crate) fn new(
        crypto: Arc<CryptoProvider>,
        authorities: &[CertificateDer<'static>],
        settings: PoolSpec,
    ) -> Result<Self, rustls::Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(settings.keepalive));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        for authority in authorities {
            roots.add(authority.clone())?;
        }
        let tls = ClientConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        Ok(Self {
            connector,
            settings,
            pools: Mutex::default(),
        })
    }

    /// The pool whose connections must stand within `limit`.
    pub(crate) fn with_connect_timeout(&self, limit: Duration, reuse: Reuse) -> Pool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry((limit, reuse)).or_insert_with(|| {
            let mut builder = Client::builder(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(self.settings.idle_timeout)
                .http2_keep_alive_interval(self.settings.keepalive)
                .http2_keep_alive_timeout(self.settings.keepalive)
                .http1_max_buf_size(READ_AHEAD)
                .http2_initial_stream_window_size(STREAM_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW);
            if reuse == Reuse::Refused {
                builder.pool_max_idle_per_host(0);
            }
            builder.build(Timed {
                inner: self.connector.clone(),
                limit,
                max_age: self.settings.max_age,
            })
        });
        pool.clone()
    }
}

/// A connector that gives up: name, socket and TLS together get `limit`.
#[derive(Clone)]
pub(crate) struct Timed {
    inner: HttpsConnector<HttpConnector>,
    limit: Duration,
    max_age: Duration,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Timed {
    type Response = Tracked;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Tracked, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let (limit, max_age) = (self.limit, self.max_age);
        Box::pin(async move {
            let inner = tokio::time::timeout(limit, connecting).await??;
            Ok(Tracked::new(inner, max_age))
        })
    }
}

/// Sends a request, and gives the answer's head. The connection under it is noted to work, and is not used again where
/// it has come of age.
pub(crate) async fn send(
    pool: &Pool,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError> {
    let connection = capture_connection(&mut request);
    let response = pool.request(request).await?;
    if Mark::note(&response)
        && let Some(connected) = connection.connection_metadata().as_ref()
    {
        connected.poison();
    }
    Ok(response)
}

/// What an error before the head means.
pub(crate) fn fault(error: &ClientError) -> Fault {
    if !error.is_connect() {
        return match reset_before_processing(error) {
            true => Fault::NotProcessed,
            false if Mark::was_proven(error) && !is_unreadable(error) => Fault::Stale,
            false => Fault::Reset,
        };
    }
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

/// Where one connection of the pool has died unnoticed, so may have others of its age. By HTTP/2 there is but one, and
/// all of its calls find the next one.
pub(crate) fn reuse_after(fault: Fault, error: &ClientError) -> Reuse {
    let is_one_of_many = error
        .connect_info()
        .is_some_and(|connected| !connected.is_negotiated_h2());
    if fault == Fault::Stale && is_one_of_many {
        Reuse::Refused
    } else {
        Reuse::Allowed
    }
}

/// Whether the peer said of an HTTP/2 stream that it did not begin with it.
fn reset_before_processing(error: &ClientError) -> bool {
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
fn is_unreadable(error: &ClientError) -> bool {
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
