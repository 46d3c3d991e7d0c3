//! What bounds the callers' side: connections, calls, time, memory.

use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::raw::{read, rest, sent};
use crate::support::{
    CHAT, SOON, chat, gateway, get, open, openai, post, route, send, stream, until, within,
};

fn bounded(listener: &str, mock: &Mock) -> String {
    format!(
        "[listener]\n{listener}\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    )
}

#[tokio::test]
async fn a_caller_beyond_the_connections_allowed_waits_for_one_to_end() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&bounded("max_connections = 2", &mock)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut caller = TcpStream::connect(gateway.addr()).await.unwrap();
        caller
            .write_all(b"GET / HTTP/1.1\r\nhost: g\r\n\r\n")
            .await
            .unwrap();
        let read = within(caller.read(&mut [0; 1024])).await.unwrap();
        assert!(read > 0);
        held.push(caller);
    }
    let mut third = TcpStream::connect(gateway.addr()).await.unwrap();
    third
        .write_all(b"GET / HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), third.readable()).await;
    assert!(early.is_err(), "nobody answers yet");
    held.pop();
    assert!(rest(&mut third).await.starts_with(b"HTTP/1.1 200 OK"));
    let health = send(gateway.admin_addr(), get("/healthz")).await;
    assert_eq!(health.status, 200, "operators have a listener of their own");
}

#[tokio::test]
async fn a_call_beyond_those_allowed_is_refused_and_told_when_to_come_back() {
    let endless = || Reply::ok().events(100).stall_after(2);
    let mock = Mock::start(endless()).await.unwrap();
    let gateway = gateway(&bounded("max_calls = 1", &mock)).await;
    let addr = gateway.addr();
    for _ in 0..2 {
        mock.set(endless()).await.unwrap();
        let first = open(addr, stream()).await;
        assert_eq!(first.status(), 200);
        let hits = mock.hits();
        let second = send(addr, chat()).await;
        assert_eq!(second.status, 503);
        assert_eq!(second.json()["error"]["code"], "gateway_busy");
        assert_eq!(second.header("retry-after"), "1");
        assert_eq!(second.header("x-should-retry"), "true");
        assert_eq!(send(addr, get("/")).await.status, 200, "it is no call");
        assert_eq!(mock.hits(), hits);
        mock.set(Reply::ok()).await.unwrap();
        drop(first);
        until(async || send(addr, chat()).await.status == 200).await;
        assert_eq!(
            send(addr, chat()).await.status,
            200,
            "a whole answer gives its place back"
        );
    }
}

#[tokio::test]
async fn who_says_nothing_or_little_is_not_waited_for() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&bounded("head_timeout = \"200ms\"", &mock)).await;
    let idle = "GET / HTTP/1.1\r\nhost: g\r\n\r\n";
    for said in [
        "",
        "POST /v1/chat/comple",
        "POST / HTTP/1.1\r\nhost: g\r\nx: ",
        idle,
    ] {
        let began = Instant::now();
        let came = sent(gateway.addr(), said).await;
        let took = began.elapsed();
        assert!(
            took > Duration::from_millis(150) && took < SOON / 2,
            "{said}: {took:?}"
        );
        assert_eq!(came.is_empty(), said != idle);
    }
    // One byte now and then does not help: the limit is for all of the head.
    let mut drip = TcpStream::connect(gateway.addr()).await.unwrap();
    let began = Instant::now();
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    for byte in std::iter::once(b'G').chain(std::iter::repeat(b'x')) {
        if drip.write_all(&[byte]).await.is_err() {
            break;
        }
        pause.tick().await;
        assert!(began.elapsed() < SOON / 2);
    }
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn an_upload_that_pauses_or_never_ends_is_given_up() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let limits = "upload_idle = \"300ms\"\nupload_timeout = \"900ms\"";
    let gateway = gateway(&bounded(limits, &mock)).await;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: 1000\r\n\r\n");
    let paused = read(&sent(gateway.addr(), format!("{head}{{")).await).unwrap();
    assert_eq!(paused[0].status, 408);
    assert_eq!(paused[0].json()["error"]["code"], "request_timeout");
    let (mut receive, mut drip) = TcpStream::connect(gateway.addr())
        .await
        .unwrap()
        .into_split();
    drip.write_all(head.as_bytes()).await.unwrap();
    let began = Instant::now();
    let dripping = async {
        let mut pause = tokio::time::interval(Duration::from_millis(50));
        loop {
            pause.tick().await;
            if drip.write_all(b" ").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let came = tokio::select! {
        came = rest(&mut receive) => came,
        () = dripping => unreachable!(),
    };
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(800) && took < SOON / 2,
        "{took:?}"
    );
    assert_eq!(read(&came).unwrap()[0].status, 408);
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn all_uploads_together_have_one_bound_and_it_comes_back() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&bounded("body_memory = \"100KiB\"", &mock)).await;
    let addr = gateway.addr();
    let padded = |bytes: usize| {
        let body = format!(r#"{{"model":"m","user":"{}"}}"#, "x".repeat(bytes));
        post(CHAT, body)
    };
    assert_eq!(send(addr, padded(90 << 10)).await.status, 200);
    // One who has sent most of his body, and stops.
    let mut slow = TcpStream::connect(addr).await.unwrap();
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: 90000\r\n\r\n");
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&vec![b' '; 80 << 10]).await.unwrap();
    until(async || send(addr, padded(60 << 10)).await.status == 503).await;
    let refused = send(addr, padded(60 << 10)).await;
    assert_eq!(refused.json()["error"]["code"], "gateway_busy");
    assert!(
        refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("body_memory")
    );
    assert_eq!(
        send(addr, chat()).await.status,
        200,
        "a small one finds room"
    );
    drop(slow);
    until(async || send(addr, padded(60 << 10)).await.status == 200).await;
    // What is longer than all of it is told so, too, and takes nothing from the others.
    assert_eq!(send(addr, padded(200 << 10)).await.status, 503);
    assert_eq!(send(addr, padded(90 << 10)).await.status, 200);
}
