//! What a connection can do wrong before an answer comes over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fuseline_mock::{Mock, Reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use crate::support::{breaker, chat, gateway, openai, route, send, spawn};

/// Serves each connection once in a way of its own and tells how many there were.
async fn server<F: Future<Output = ()> + Send>(
    serve: impl Fn(TcpStream, usize) -> F + Send + 'static,
) -> (String, tokio::sync::watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (count, counted) = tokio::sync::watch::channel(0);
    spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            number += 1;
            count.send_replace(number);
            serve(stream, number).await;
        }
    });
    (address, counted)
}

async fn read_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.unwrap() > 0 {}
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced_and_nobody_is_blamed() {
    let (address, connections) = server(|mut stream, _| async move {
        read_request(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        // The next request on it is read and never answered.
        read_request(&mut stream).await;
    })
    .await;
    let gateway = gateway(&format!(
        "{}{}",
        openai("a", &format!("http://{address}")),
        route(&["a"])
    ))
    .await;
    for _ in 0..3 {
        assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    }
    assert_eq!(*connections.borrow(), 3);
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn report_83_a_kept_connection_that_died_is_not_replaced_by_another_that_did() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let both = Arc::new(Barrier::new(2));
    let counted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&counted);
    spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let both = Arc::clone(&both);
            let number = count.fetch_add(1, Ordering::Relaxed);
            spawn(async move {
                read_request(&mut stream).await;
                // Two are under way at once, so that two connections are kept.
                if number < 2 {
                    both.wait().await;
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).await.unwrap();
                // The next request on either is read and never answered.
                read_request(&mut stream).await;
            });
        }
    });
    let gateway = gateway(&format!(
        "{}{}",
        openai("a", &format!("http://{address}")),
        route(&["a"])
    ))
    .await;
    let addr = gateway.addr();
    let (one, other) = tokio::join!(send(addr, chat()), send(addr, chat()));
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (200, 200));
    let answer = send(addr, chat()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-fuseline-attempts"), "1");
    assert_eq!(counted.load(Ordering::Relaxed), 3);
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn a_kept_connection_that_answers_in_no_http_has_answered() {
    let (address, connections) = server(|mut stream, _| async move {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "what?\r\n\r\n",
        ] {
            read_request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let gateway = gateway(&format!(
        "{}{}",
        openai("a", &format!("http://{address}")),
        route(&["a"])
    ))
    .await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(answer.header("x-fuseline-why"), "a/m: network (reset)");
    assert_eq!((*connections.borrow(), answer.status.as_u16()), (1, 504));
}

#[tokio::test]
async fn a_first_connection_that_hangs_up_is_the_providers_fault() {
    let (address, connections) =
        server(|mut stream, _| async move { read_request(&mut stream).await }).await;
    let gateway = gateway(&format!(
        "{}{}",
        openai("a", &format!("http://{address}")),
        route(&["a"])
    ))
    .await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 504);
    assert_eq!(*connections.borrow(), 1);
    assert_eq!(breaker(&gateway, "a").await["kinds"]["network"], 1);
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_a_connect_timeout_of_the_provider() {
    let (address, _connections) = server(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let spare = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "{}{}{}[timeouts]\nconnect = \"100ms\"\n",
        openai("a", &format!("https://{address}")),
        openai("b", &spare.url()),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "b/m")
    );
    assert!(
        answer.header("x-fuseline-why").contains("connect_timeout"),
        "{answer:?}"
    );
    assert_eq!(breaker(&gateway, "a").await["kinds"]["timeout"], 1);
}

#[tokio::test]
async fn a_failed_handshake_is_told_as_one() {
    let (address, _connections) = server(|mut stream, _| async move {
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        drop(stream.read_buf(&mut Vec::new()).await);
    })
    .await;
    let gateway = gateway(&format!(
        "{}{}",
        openai("a", &format!("https://{address}")),
        route(&["a"])
    ))
    .await;
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(answer.status, 504);
    assert!(
        answer.header("x-fuseline-why").contains("network (tls)"),
        "{answer:?}"
    );
}
