//! Providers behind TLS, by HTTP/1.1 and HTTP/2: connections that end rudely, streams that are reset or refused.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fuseline_gateway::Gateway;
use h2::{Reason, RecvStream, server};
use http::{Request, Response};
use rcgen::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

use crate::reload::Reloadable;
use crate::support::{CHAT, breaker, config, get, openai, route, send, spawn, stream, until};

const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

pub(crate) type Secured = TlsStream<TcpStream>;

/// A certificate that vouches for itself, for hosts on loopback.
pub(crate) fn certified() -> CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap()
}

/// A provider that speaks TLS and this protocol; `serve` is told of each connection.
async fn secured<F>(
    alpn: &str,
    serve: impl Fn(Secured) -> F + Send + 'static,
) -> (Gateway, SocketAddr)
where
    F: Future<Output = ()> + Send + 'static,
{
    secured_under("", alpn, serve).await
}

/// The same with a section of the gateway's file.
pub(crate) async fn secured_under<F>(
    section: &str,
    alpn: &str,
    serve: impl Fn(Secured) -> F + Send + 'static,
) -> (Gateway, SocketAddr)
where
    F: Future<Output = ()> + Send + 'static,
{
    let shown = certified();
    let address = shown_by(&shown, alpn, serve).await;
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), shown.cert.pem()).unwrap();
    let text = format!(
        "ca_file = {:?}\n{section}{}{}",
        ca.path(),
        openai("a", &format!("https://{address}")),
        route(&["a"])
    );
    (Gateway::start(config(&text)).await.unwrap(), address)
}

/// A provider that shows this certificate.
async fn shown_by<F>(
    shown: &CertifiedKey<rcgen::KeyPair>,
    alpn: &str,
    serve: impl Fn(Secured) -> F + Send + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let CertifiedKey { cert, signing_key } = shown;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            if let Ok(connection) = acceptor.accept(socket).await {
                spawn(serve(connection));
            }
        }
    });
    address
}

#[tokio::test]
async fn another_authority_in_its_file_is_trusted_after_a_reload_and_named_in_it() {
    let shown = certified();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let address = shown_by(&shown, "http/1.1", async |mut connection: Secured| {
        let read = connection.read(&mut [0; 4096]).await.unwrap_or(0);
        if read > 0 {
            connection.write_all(answer).await.unwrap();
            connection.shutdown().await.unwrap();
        }
    })
    .await;
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), certified().cert.pem()).unwrap();
    let text = format!(
        "ca_file = {:?}\n{}{}",
        ca.path(),
        openai("a", &format!("https://{address}")),
        route(&["a"])
    );
    let reloadable = Reloadable::start(&text).await;
    let file = || send(reloadable.gateway.addr(), get("/v1/files/x"));
    assert_eq!(file().await.status, 504);
    std::fs::write(ca.path(), shown.cert.pem()).unwrap();
    assert_eq!(reloadable.reload(&text).await.unwrap().changed, ["ca_file"]);
    let config = send(reloadable.gateway.admin_addr(), get("/config")).await;
    let path = format!("{:?}", ca.path());
    assert!(
        String::from_utf8_lossy(&config.body).contains(&path),
        "it is shown by its path"
    );
    assert_eq!(file().await.status, 200);
}

#[tokio::test]
async fn an_authority_that_nobody_trusts_is_a_fault_of_tls() {
    let (_gateway, address) = secured("http/1.1", |_| async {}).await;
    let text = format!(
        "{}{}",
        openai("a", &format!("https://{address}")),
        route(&["a"])
    );
    let distrustful = Gateway::start(config(&text)).await.unwrap();
    let answer = send(distrustful.addr(), stream()).await;
    assert_eq!(answer.status, 504);
    let why = answer.header("x-fuseline-why");
    assert!(why.contains("network (tls)"), "{why}");
}

#[tokio::test]
async fn a_rude_end_of_tls_after_the_end_marker_is_a_finish_and_before_it_a_cut() {
    for (events, is_whole) in [([TOKEN, STOP].concat(), true), (TOKEN.to_owned(), false)] {
        let sent = events.clone();
        let (gateway, _) = secured("http/1.1", move |mut connection| {
            let sent = sent.clone();
            async move {
                let mut request = [0; 2048];
                let _ = connection.read(&mut request).await.unwrap();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                connection.write_all(head.as_bytes()).await.unwrap();
                connection.write_all(sent.as_bytes()).await.unwrap();
                connection.flush().await.unwrap();
                // No close_notify: the socket goes, and that is all.
                drop(connection.into_inner().0);
            }
        })
        .await;
        let answer = send(gateway.addr(), stream()).await;
        let told = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(told == events, is_whole, "{told}");
        assert_eq!(told.contains("upstream_disconnect"), !is_whole, "{told}");
        let cuts = &breaker(&gateway, "a/m").await["kinds"]["stream_truncated"];
        assert_eq!(*cuts == 1, !is_whole, "{cuts}");
    }
}

/// Answers each request of an HTTP/2 connection by `answer`.
async fn by_http2<F>(
    connection: Secured,
    answer: impl Fn(Request<RecvStream>, server::SendResponse<Bytes>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connection = server::handshake(connection).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        spawn(answer(request, respond));
    }
}

fn event_stream() -> Response<()> {
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(())
        .unwrap()
}

#[tokio::test]
async fn a_stream_comes_by_http2_as_it_is() {
    let (gateway, _) = secured("h2", |connection| {
        by_http2(connection, |_, mut respond| async move {
            let mut body = respond.send_response(event_stream(), false).unwrap();
            body.send_data(TOKEN.into(), false).unwrap();
            body.send_data(STOP.into(), true).unwrap();
        })
    })
    .await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(answer.body, [TOKEN, STOP].concat());
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn report_53_a_stream_that_http2_resets_is_a_cut() {
    let (gateway, _) = secured("h2", |connection| {
        by_http2(connection, |_, mut respond| async move {
            let mut body = respond.send_response(event_stream(), false).unwrap();
            body.send_data(TOKEN.into(), false).unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            body.send_reset(Reason::CANCEL);
        })
    })
    .await;
    let answer = send(gateway.addr(), stream()).await;
    let told = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(
        told.starts_with(TOKEN) && told.contains("upstream_disconnect"),
        "{told}"
    );
    until(async || breaker(&gateway, "a/m").await["kinds"]["stream_truncated"] == 1).await;
}

#[tokio::test]
async fn report_122_a_caller_who_leaves_resets_the_stream_and_not_its_connection() {
    let (connections, resets) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (opened, seen) = (Arc::clone(&connections), Arc::clone(&resets));
    let (gateway, _) = secured("h2", move |connection| {
        opened.fetch_add(1, Ordering::Relaxed);
        let seen = Arc::clone(&seen);
        by_http2(connection, move |_, mut respond| {
            let seen = Arc::clone(&seen);
            async move {
                let mut body = respond.send_response(event_stream(), false).unwrap();
                body.send_data(TOKEN.into(), false).unwrap();
                let reset = std::future::poll_fn(|context| body.poll_reset(context)).await;
                assert_eq!(reset.unwrap(), Reason::CANCEL);
                seen.fetch_add(1, Ordering::Relaxed);
            }
        })
    })
    .await;
    for call in 1..=3 {
        let answer = crate::support::open(gateway.addr(), stream()).await;
        drop(answer);
        until(async || resets.load(Ordering::Relaxed) == call).await;
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn report_84_a_refused_stream_is_sent_again_once_and_is_nobodys_failure() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let (gateway, _) = secured("h2", move |connection| {
        let count = Arc::clone(&count);
        by_http2(connection, move |_, mut respond| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            async move {
                if number == 0 {
                    return respond.send_reset(Reason::REFUSED_STREAM);
                }
                let mut body = respond.send_response(event_stream(), false).unwrap();
                body.send_data([TOKEN, STOP].concat().into(), true).unwrap();
            }
        })
    })
    .await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(answer.body, [TOKEN, STOP].concat());
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn report_84_a_crowd_beyond_the_streams_allowed_is_served_and_each_once() {
    const CROWD: usize = 200;
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let (gateway, _) = secured("h2", move |connection| {
        let count = Arc::clone(&count);
        async move {
            let mut builder = server::Builder::new();
            let handshake = builder.max_concurrent_streams(10).handshake(connection);
            let mut connection: server::Connection<_, Bytes> = handshake.await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                spawn(async move {
                    tokio::task::yield_now().await;
                    let mut body = respond.send_response(event_stream(), false).unwrap();
                    body.send_data([TOKEN, STOP].concat().into(), true).unwrap();
                });
            }
        }
    })
    .await;
    let addr = gateway.addr();
    let crowd: Vec<_> = (0..CROWD).map(|_| spawn(send(addr, stream()))).collect();
    for call in crowd {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(handled.load(Ordering::Relaxed), CROWD);
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

/// Serves ten at once and refuses whoever is beyond them, each caller once: who comes again is served.
async fn overrun(connection: Secured, handled: Arc<AtomicUsize>) {
    let mut connection = server::handshake(connection).await.unwrap();
    let mut known = HashSet::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        if known.insert(request.uri().to_string()) && known.len() > 10 {
            respond.send_reset(Reason::REFUSED_STREAM);
            continue;
        }
        handled.fetch_add(1, Ordering::Relaxed);
        let mut body = respond.send_response(event_stream(), false).unwrap();
        body.send_data([TOKEN, STOP].concat().into(), true).unwrap();
    }
}

#[tokio::test]
async fn report_84_a_crowd_of_which_most_are_refused_once_is_served_and_each_once() {
    const CROWD: usize = 200;
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let (gateway, _) = secured("h2", move |connection| {
        overrun(connection, Arc::clone(&count))
    })
    .await;
    let addr = gateway.addr();
    let numbered = |number| {
        let mut request = stream();
        *request.uri_mut() = format!("{CHAT}?n={number}").parse().unwrap();
        request
    };
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| spawn(send(addr, numbered(number))))
        .collect();
    for call in crowd {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("x-fuseline-attempts"), "1");
    }
    assert_eq!(handled.load(Ordering::Relaxed), CROWD);
    let view = breaker(&gateway, "a").await;
    assert_eq!(
        (&view["run"], &view["kinds"]),
        (&serde_json::json!(0), &serde_json::json!({}))
    );
}

#[tokio::test]
async fn report_84_a_second_refusal_and_any_other_reset_are_failures() {
    for (reason, sent) in [(Reason::REFUSED_STREAM, 2), (Reason::INTERNAL_ERROR, 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let (gateway, _) = secured("h2", move |connection| {
            let count = Arc::clone(&count);
            by_http2(connection, move |_, mut respond| {
                count.fetch_add(1, Ordering::Relaxed);
                async move { respond.send_reset(reason) }
            })
        })
        .await;
        let answer = send(gateway.addr(), stream()).await;
        assert_eq!(answer.status, 504);
        assert_eq!(answer.header("x-fuseline-attempts"), "1", "{reason:?}");
        assert_eq!(asked.load(Ordering::Relaxed), sent, "{reason:?}");
        assert_eq!(breaker(&gateway, "a").await["kinds"]["network"], 1);
    }
}
