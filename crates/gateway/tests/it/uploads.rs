//! Long bodies either way, and bodies that are longer than they look.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use bytes::Bytes;
use fuseline_mock::{Mock, Reply};
use http::Request;
use http_body_util::Full;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::logs::{Lines, json_log};
use crate::raw::{find, read, rest};
use crate::support::{CHAT, Program, chat, gateway, get, openai, post, route, send, spawn};

const MIB: usize = 1 << 20;

/// A call with a picture, so long in all.
fn picture(bytes: usize) -> Vec<u8> {
    let head = br#"{"model":"m","messages":[{"role":"user","content":""#;
    let tail = br#""}]}"#;
    let mut body = head.to_vec();
    body.resize(bytes - tail.len(), b'A');
    body.extend(tail);
    body
}

async fn chunked(addr: SocketAddr, coding: &str, body: &[u8]) -> u16 {
    let mut caller = TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-encoding: {coding}\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    caller.write_all(head.as_bytes()).await.unwrap();
    for piece in body.chunks(700_001) {
        let size = format!("{:x}\r\n", piece.len());
        caller.write_all(size.as_bytes()).await.unwrap();
        caller.write_all(piece).await.unwrap();
        caller.write_all(b"\r\n").await.unwrap();
    }
    caller.write_all(b"0\r\n\r\n").await.unwrap();
    read(&rest(&mut caller).await).unwrap()[0].status.as_u16()
}

/// A provider that tells of each body how long it is and what it is.
async fn digesting() -> (String, mpsc::Receiver<(usize, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, digests) = mpsc::channel(64);
    spawn(async move {
        while let Ok((mut caller, _)) = listener.accept().await {
            let told = told.clone();
            spawn(async move {
                let mut seen = Vec::new();
                while find(&seen, b"\r\n\r\n").is_none() {
                    caller.read_buf(&mut seen).await.unwrap();
                }
                let end = find(&seen, b"\r\n\r\n").unwrap() + 4;
                let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
                let (_, length) = head.split_once("content-length: ").unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                let mut digest = Sha256::new_with_prefix(&seen[end..]);
                let (mut come, mut bytes) = (seen.len() - end, vec![0; 256 << 10]);
                while come < length {
                    let read = caller.read(&mut bytes).await.unwrap();
                    digest.update(&bytes[..read]);
                    come += read;
                }
                told.send((come, digest.finalize().to_vec())).await.unwrap();
                let answer =
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nok";
                caller.write_all(answer.as_bytes()).await.unwrap();
            });
        }
    });
    (url, digests)
}

#[tokio::test]
async fn report_115_what_providers_accept_arrives_whole_by_default() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));
    let (url, mut digests) = digesting().await;
    let gateway = gateway(&format!("{}{}", openai("a", &url), route(&["a"]))).await;
    for bytes in [2 * MIB - 1, 2 * MIB + 1, 10 * MIB, 32 * MIB] {
        let body = Bytes::from(picture(bytes));
        let digest = Sha256::digest(&body).to_vec();
        let answer = send(gateway.addr(), post(CHAT, body.clone())).await;
        assert_eq!(answer.status, 200, "{bytes}");
        assert_eq!(
            chunked(gateway.addr(), "identity", &body).await,
            200,
            "{bytes}"
        );
        for _ in 0..2 {
            let (length, seen) = digests.recv().await.unwrap();
            assert!(length == bytes && seen == digest, "{bytes}: {length}");
        }
    }
    let long = send(gateway.addr(), post(CHAT, picture(32 * MIB + 1))).await;
    assert_eq!(long.status, 413);
    let told = long.json()["error"]["message"].to_string();
    assert!(told.contains("max_body"), "{told}");
    assert!(digests.try_recv().is_err());
    let page = send(gateway.admin_addr(), get("/metrics")).await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let counted = page.lines().find(|line| {
        line.starts_with("calls_total{") && line.contains("rejected") && line.contains("local")
    });
    assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{page}");
    let calls = lines.of("call");
    let logged = calls.iter().find(|call| call["status"] == 413);
    assert!(
        logged.is_some_and(|call| call["why"].is_string()),
        "{calls:?}"
    );
}

async fn all(mut coder: impl AsyncRead + Unpin) -> Bytes {
    let mut bytes = Vec::new();
    coder.read_to_end(&mut bytes).await.unwrap();
    bytes.into()
}

fn coded(path: &str, coding: &str, body: &Bytes) -> Request<Full<Bytes>> {
    let mut request = post(path, body.clone());
    let headers = request.headers_mut();
    headers.insert("content-encoding", coding.parse().unwrap());
    request
}

/// The program in front of a provider, with one call behind it, so that what grows from now on is not the usual.
async fn measured() -> (Mock, Program, SocketAddr) {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}{}", openai("a", &mock.url()), route(&["a"])).unwrap();
    let program = Program::serve(file.path().to_str().unwrap());
    let addr = program.listen.parse().unwrap();
    assert_eq!(send(addr, chat()).await.status, 200);
    (mock, program, addr)
}

#[tokio::test]
async fn report_148_what_would_blow_up_in_memory_is_never_decoded() {
    let (mock, program, addr) = measured().await;
    let plain = vec![b' '; 64 * MIB];
    let gzip = all(GzipEncoder::new(plain.as_slice())).await;
    let twice = all(GzipEncoder::new(&gzip[..])).await;
    let bombs = [
        ("gzip", gzip.clone()),
        ("gzip, gzip", twice),
        (
            "br",
            all(BrotliEncoder::with_quality(
                plain.as_slice(),
                async_compression::Level::Fastest,
            ))
            .await,
        ),
        ("zstd", all(ZstdEncoder::new(plain.as_slice())).await),
        ("deflate", all(ZlibEncoder::new(plain.as_slice())).await),
        ("compress", Bytes::from_static(b"?")),
    ];
    drop(plain);
    let before = program.resident_kib();
    for (coding, bomb) in &bombs {
        let began = Instant::now();
        let answer = send(addr, coded(CHAT, coding, bomb)).await;
        assert_eq!(answer.status, 415, "{coding}");
        assert_eq!(answer.json()["error"]["code"], "unsupported_encoding");
        assert_eq!(chunked(addr, coding, bomb).await, 415, "{coding}");
        assert!(began.elapsed() < Duration::from_secs(2), "{coding}");
    }
    assert_eq!(mock.hits(), 1);
    // What no route reads passes as it is.
    for (coding, bomb) in &bombs {
        let answer = send(addr, coded("/v1/files", coding, bomb)).await;
        assert_eq!(answer.status, 200, "{coding}");
        let seen = mock.requests().pop().unwrap();
        assert_eq!(seen.header("content-encoding"), Some(*coding));
        assert!(seen.body == *bomb, "{coding}");
    }
    // And an answer that would is read for its meaning to a bound.
    let reply = Reply::status(400)
        .header("content-encoding", "gzip")
        .body(gzip.clone());
    mock.set(reply).await.unwrap();
    let answer = send(addr, chat()).await;
    assert_eq!((answer.status.as_u16(), &answer.body), (400, &gzip));
    let grown = program.resident_kib().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more");
}

#[tokio::test]
async fn an_answer_beyond_what_is_looked_into_arrives_whole_in_bounded_memory() {
    const LONG: usize = 96 * MIB;
    let mut long = br#"{"choices":[{"finish_reason":"stop","message":{"content":""#.to_vec();
    long.resize(LONG, b'x');
    long.extend(br#""}}]}"#);
    let long = Bytes::from(long);
    let (mock, program, addr) = measured().await;
    let before = program.peak_kib();
    // One that is good, and one that is not.
    for status in [200, 500] {
        mock.set(Reply::status(status).body(long.clone()))
            .await
            .unwrap();
        let answer = send(addr, chat()).await;
        assert_eq!(answer.status, status);
        assert!(answer.body == long, "{} bytes", answer.body.len());
    }
    let grown = program.peak_kib() - before;
    assert!(grown < 32 << 10, "{grown} KiB more");
}
