//! Callers by TLS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use rcgen::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::good;
use crate::raw::{read, rest, sent};
use crate::reload::Reloadable;
use crate::support::{CHAT, SOON, config, openai, route, until, within};
use crate::tls::certified;

/// A gateway with a certificate, in front of a provider, and who trusts it.
async fn secured(mock: &Mock, more: &str) -> (Gateway, TlsConnector) {
    let folder = tempfile::tempdir().unwrap();
    let shown = certified();
    let text = format!("{more}{}", written(folder.path(), &shown, mock));
    let gateway = Gateway::start(config(&text)).await.unwrap();
    (gateway, trusting(shown.cert.der()))
}

/// Puts a certificate and its key into a folder; gives the configuration that shows it.
fn written(folder: &Path, shown: &CertifiedKey<rcgen::KeyPair>, mock: &Mock) -> String {
    let (cert_file, key_file) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert_file, shown.cert.pem()).unwrap();
    std::fs::write(&key_file, shown.signing_key.serialize_pem()).unwrap();
    format!(
        "[listener]\ncert_file = {cert_file:?}\nkey_file = {key_file:?}\nhead_timeout = \"2s\"\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    )
}

fn trusting(certificate: &CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(tls))
}

async fn connect(gateway: &Gateway, tls: &TlsConnector) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(gateway.addr()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    tls.connect(name, socket).await.unwrap()
}

fn request(stream: bool) -> String {
    let body = format!("{{\"model\":\"m\",\"stream\":{stream}}}");
    let length = body.len();
    format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn calls_and_streams_come_through_tls_and_plain_http_does_not() {
    let mock = Mock::start(Reply::ok().events(200)).await.unwrap();
    let (gateway, tls) = secured(&mock, "").await;
    for stream in [false, true] {
        let mut caller = connect(&gateway, &tls).await;
        assert_eq!(caller.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        caller.write_all(request(stream).as_bytes()).await.unwrap();
        let answers = read(&rest(&mut caller).await).unwrap();
        assert_eq!((answers.len(), answers[0].status.as_u16()), (1, 200));
        assert!(!answers[0].is_cut);
        let is_done = answers[0].body.ends_with(b"data: [DONE]\n\n");
        assert_eq!(is_done, stream);
    }
    let hits = mock.hits();
    let plain = sent(gateway.addr(), request(false)).await;
    assert!(!plain.starts_with(b"HTTP"), "{plain:?}");
    // Heads that cannot be read have their reason here, too.
    let mut caller = connect(&gateway, &tls).await;
    caller.write_all(b"what?\r\n\r\n").await.unwrap();
    let answers = read(&rest(&mut caller).await).unwrap();
    assert_eq!(answers[0].json()["error"]["code"], "bad_request");
    assert_eq!(mock.hits(), hits);
}

#[tokio::test]
async fn who_leaves_a_stream_by_tls_closes_the_upstream_at_once() {
    let mock = Mock::start(Reply::ok().events(100).stall_after(3))
        .await
        .unwrap();
    let (gateway, tls) = secured(&mock, "").await;
    for left in 1..=2 {
        let mut caller = connect(&gateway, &tls).await;
        caller.write_all(request(true).as_bytes()).await.unwrap();
        let read = within(caller.read(&mut [0; 256])).await.unwrap();
        assert!(read > 0);
        if left == 2 {
            caller.shutdown().await.unwrap();
        }
        drop(caller);
        mock.wait_for_left(left, Duration::from_millis(700))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_handshake_that_is_not_finished_is_not_waited_for() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let (gateway, tls) = secured(&mock, "drain = \"9s\"\n").await;
    let began = tokio::time::Instant::now();
    assert_eq!(sent(gateway.addr(), [22, 3, 1]).await, b"");
    assert!(began.elapsed() < SOON / 2);
    let mut caller = connect(&gateway, &tls).await;
    caller.write_all(request(false).as_bytes()).await.unwrap();
    assert!(rest(&mut caller).await.starts_with(b"HTTP/1.1 200"));
    // Nor does a drain.
    let waiting = TcpStream::connect(gateway.addr()).await.unwrap();
    let addr = gateway.addr();
    let began = tokio::time::Instant::now();
    gateway.shutdown().await;
    assert!(began.elapsed() < SOON / 2, "{:?}", began.elapsed());
    until(async || TcpStream::connect(addr).await.is_err()).await;
    drop(waiting);
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_after_a_reload_and_half_of_one_changes_nothing() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (certified(), certified());
    let text = written(folder.path(), &old, &mock);
    let reloadable = Reloadable::start(&text).await;
    let (knows_old, knows_new) = (trusting(old.cert.der()), trusting(new.cert.der()));
    let mut before = connect(&reloadable.gateway, &knows_old).await;
    std::fs::write(folder.path().join("cert.pem"), new.cert.pem()).unwrap();
    let mistake = reloadable.mistake(&text).await;
    assert_eq!(mistake.key.as_deref(), Some("listener.key_file"));
    drop(connect(&reloadable.gateway, &knows_old).await);
    written(folder.path(), &new, &mock);
    let changed = reloadable.reload(&text).await.unwrap().changed;
    assert_eq!(changed, ["listener.cert_file", "listener.key_file"]);
    assert_eq!(reloadable.reload(&text).await.unwrap().changed, [""; 0]);
    drop(connect(&reloadable.gateway, &knows_new).await);
    before.write_all(request(false).as_bytes()).await.unwrap();
    let answer = rest(&mut before).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "a connection stays");
}

#[test]
fn the_guides_files_are_good() {
    let guide = include_str!("../../../../docs/guide/listener.md");
    let blocks: Vec<_> = guide
        .split("\n```")
        .skip(1)
        .step_by(2)
        .map(|part| part.strip_prefix("toml\n").unwrap())
        .collect();
    let [listener, pool] = blocks[..] else {
        panic!("{blocks:?}")
    };
    let files = listener
        .replace("FUSELINE_TOKEN", "KEY")
        .replace("\"cert.pem\"", "\"ca.pem\"")
        .replace("\"key.pem\"", "\"ca-key.pem\"");
    let config = good(&format!("{files}\n{pool}"));
    assert!(config.listener.identity.is_some());
    assert_eq!(config.pool, good("").pool, "the defaults");
}
