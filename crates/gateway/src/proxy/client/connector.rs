//! `Connector`: makes a connection ready for requests: name, socket, TLS, and the HTTP that both sides know.

use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::Uri;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service as _;

use super::line::{Line, Sender};
use crate::config::PoolSpec;

/// Most of an answer that is read before the caller takes it, and most of a head; an HTTP/2 stream may send a bit more.
const READ_AHEAD: usize = 32 << 10;
const STREAM_WINDOW: u32 = 256 << 10;
/// Enough for 256 streams that nobody reads: they must not hold up the others on their connection.
const CONNECTION_WINDOW: u32 = 256 * STREAM_WINDOW;
/// Between further questions to a silent peer, and how many.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// Makes connections.
pub(super) struct Connector {
    wire: HttpsConnector<HttpConnector>,
    settings: PoolSpec,
}

impl Connector {
    /// `authorities` are trusted beside the public ones.
    pub(super) fn new(
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
        let wire = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        Ok(Self { wire, settings })
    }

    /// A new connection to this URI's authority.
    pub(super) async fn connect(&self, target: Uri) -> Result<Line, Box<dyn Error + Send + Sync>> {
        let mut wire = self.wire.clone();
        poll_fn(|context| wire.poll_ready(context)).await?;
        let socket = wire.call(target).await?;
        let executor = TokioExecutor::new();
        let sender = if socket.connected().is_negotiated_h2() {
            let (sender, connection) = http2::Builder::new(executor.clone())
                .timer(TokioTimer::new())
                .keep_alive_interval(self.settings.keepalive)
                .keep_alive_timeout(self.settings.keepalive)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .handshake(socket)
                .await?;
            executor.execute(connection.map(ended));
            Sender::Http2(sender)
        } else {
            let (sender, connection) = http1::Builder::new()
                .max_buf_size(READ_AHEAD)
                .handshake(socket)
                .await?;
            executor.execute(connection.map(ended));
            Sender::Http1(sender)
        };
        Ok(Line::new(sender, self.settings.max_age))
    }
}

/// Whoever waits for an answer over it is told by the library.
fn ended(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::trace!(%error, "a provider's connection ended");
    }
}
