//! The servers under measurement: one fast upstream, and a bare streaming reverse proxy in each candidate HTTP stack.
//!
//! A bare proxy does the least a proxy must: new authority, hop-by-hop `connection` dropped, bodies streamed both ways.

use std::convert::Infallible;
use std::env;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Wake, Poll};

use anyhow::{Context as _, Result, bail};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self as client_conn, SendRequest};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};

/// Answers with one event of content and then silence.
pub(crate) async fn upstream() -> Result<()> {
    accept(|stream| async move {
        let service = service_fn(|_: Request<Incoming>| async move {
            let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n";
            Response::builder()
                .header(CONTENT_TYPE, "text/event-stream")
                .body(FirstThenSilence(Some(Bytes::from_static(event))))
        });
        drop(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await,
        );
    })
    .await
}

/// Serves the bare proxy of this name in front of the address in `UPSTREAM`.
pub(crate) async fn bare_proxy(name: &str) -> Result<()> {
    let authority =
        env::var("UPSTREAM").context("UPSTREAM is not set; it names the upstream's host:port")?;
    match name {
        "axum + client" => serve_axum(authority).await,
        "hyper auto + client" => serve_auto(authority).await,
        "hyper http1 + client" => serve_http1(authority).await,
        "hyper auto + own pool" => serve_pooled(authority).await,
        _ => bail!("no bare proxy is called `{name}`"),
    }
}

/// The candidates by name.
pub(crate) const CANDIDATES: [&str; 4] = [
    "axum + client",
    "hyper auto + client",
    "hyper http1 + client",
    "hyper auto + own pool",
];

async fn serve_axum(authority: String) -> Result<()> {
    let client = client::<axum::body::Body>();
    let app = axum::Router::new().fallback(move |mut request: Request<axum::body::Body>| {
        let client = client.clone();
        redirect(&mut request, &authority);
        async move {
            client
                .request(request)
                .await
                .map_err(|_| hyper::StatusCode::BAD_GATEWAY)
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?);
    axum::serve(listener.tap_io(|io| drop(io.set_nodelay(true))), app).await?;
    Ok(())
}

async fn serve_auto(authority: String) -> Result<()> {
    let (client, authority) = (client(), Arc::<str>::from(authority));
    accept(move |stream| {
        let (client, authority) = (client.clone(), Arc::clone(&authority));
        async move {
            let service = service_fn(move |mut request| {
                redirect(&mut request, &authority);
                client.request(request)
            });
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        }
    })
    .await
}

async fn serve_http1(authority: String) -> Result<()> {
    let (client, authority) = (client(), Arc::<str>::from(authority));
    accept(move |stream| {
        let (client, authority) = (client.clone(), Arc::clone(&authority));
        async move {
            let service = service_fn(move |mut request| {
                redirect(&mut request, &authority);
                client.request(request)
            });
            drop(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        }
    })
    .await
}

async fn serve_pooled(authority: String) -> Result<()> {
    let pool = Arc::new(Pool {
        authority,
        idle: Mutex::default(),
    });
    accept(move |stream| {
        let pool = Arc::clone(&pool);
        async move {
            let service = service_fn(move |mut request| {
                let pool = Arc::clone(&pool);
                redirect(&mut request, &pool.authority);
                async move { pool.send(request).await }
            });
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        }
    })
    .await
}

/// Connections kept by hand: a busy one goes back at once and is passed over until it is ready again.
struct Pool {
    authority: String,
    idle: Mutex<Vec<SendRequest<Incoming>>>,
}

impl Pool {
    async fn send(&self, mut request: Request<Incoming>) -> Result<Response<Incoming>> {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .parse()?;
        *request.uri_mut() = path;
        request.headers_mut().insert(HOST, self.authority.parse()?);
        let mut sender = match self.take() {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let answer = sender.send_request(request).await?;
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        Ok(answer)
    }

    fn take(&self) -> Option<SendRequest<Incoming>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }

    async fn connect(&self) -> Result<SendRequest<Incoming>> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = client_conn::handshake(TokioIo::new(stream)).await?;
        spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

fn client<B>() -> Client<HttpConnector, B>
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

fn redirect<B>(request: &mut Request<B>, authority: &str) {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    if let Ok(uri) = Uri::builder()
        .scheme("http")
        .authority(authority)
        .path_and_query(path)
        .build()
    {
        *request.uri_mut() = uri;
    }
    request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
}

async fn accept<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F,
) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn(serve(stream));
    }
}

/// The first line on stdout tells the measurement where to find us.
#[expect(
    clippy::print_stdout,
    reason = "read by the process that started this one"
)]
fn announce(address: SocketAddr) {
    println!("{address}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "these servers never drain: they are killed"
)]
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(future);
}

struct FirstThenSilence(Option<Bytes>);

impl Body for FirstThenSilence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Wake<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |first| {
            Poll::Ready(Some(Ok(Frame::data(first))))
        })
    }
}
