//! Report 81: a second attempt carries the whole request.

use bytes::Bytes;
use fuseline_mock::Reply;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Scene, again, by, targets};
use crate::support::{CHAT, gateway, openai, post, send, spawn, within};

/// A request of about so many bytes, no two stretches of which are alike.
fn body(bytes: usize) -> Bytes {
    let mut text = String::from(r#"{"model":"m","messages":[{"role":"user","content":""#);
    let mut number = 0_u32;
    while text.len() < bytes {
        text += &format!("{number} ");
        number += 1;
    }
    (text + "\"}]}").into()
}

#[tokio::test]
async fn report_81_every_attempt_carries_the_whole_body() {
    let text = targets(&["a", "b"]) + "retries = 2\n";
    for bytes in [1_000, (1 << 20) - 100] {
        let sent = body(bytes);
        let scene = Scene::of([again(503), Reply::ok()], &text).await;
        let answer = send(scene.gateway.addr(), post(CHAT, sent.clone())).await;
        assert_eq!((by(&answer), scene.hits()), ("b/m", vec![3, 1]));
        let requests = scene.mocks.iter().flat_map(fuseline_mock::Mock::requests);
        for request in requests {
            assert!(request.body == sent, "{bytes}");
            let length = sent.len().to_string();
            assert_eq!(request.header("content-length"), Some(&*length));
        }
    }
}

#[tokio::test]
async fn report_81_a_chunked_body_is_carried_whole_too() {
    let text = targets(&["a", "b"]) + "retries = 0\n";
    let scene = Scene::of([Reply::reset(), Reply::ok()], &text).await;
    let sent = body(100_000);
    let mut caller = TcpStream::connect(scene.gateway.addr()).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    caller.write_all(head.as_bytes()).await.unwrap();
    for piece in sent.chunks(7_001) {
        let size = format!("{:x}\r\n", piece.len());
        caller.write_all(size.as_bytes()).await.unwrap();
        caller.write_all(piece).await.unwrap();
        caller.write_all(b"\r\n").await.unwrap();
    }
    caller.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    within(caller.read_to_end(&mut answer)).await.unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    for mock in &scene.mocks {
        assert!(mock.requests()[0].body == sent);
    }
}

#[tokio::test]
async fn report_81_an_answer_in_the_middle_of_the_upload_leaves_the_next_one_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut half = vec![0; 512 << 10];
        stream.read_exact(&mut half).await.unwrap();
        let answer = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // Reads on, so that the answer is not lost in a reset.
        while stream.read(&mut half).await.is_ok_and(|read| read > 0) {}
    });
    let spare = fuseline_mock::Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "{}{}[[routes]]\nmodel = \"*\"\nretries = 0\n{}",
        openai("a", &format!("http://{address}")),
        openai("b", &spare.url()),
        targets(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    let sent = body((1 << 20) - 100);
    let answer = send(gateway.addr(), post(CHAT, sent.clone())).await;
    assert_eq!((answer.status.as_u16(), by(&answer)), (200, "b/m"));
    assert!(spare.requests()[0].body == sent);
}

#[tokio::test]
async fn report_81_what_is_too_long_to_be_kept_is_sent_once_and_the_answer_says_so() {
    let text = targets(&["a", "b"]) + "retries = 2\n";
    let scene = Scene::of([again(503), Reply::ok()], &text).await;
    let answer = send(scene.gateway.addr(), post(CHAT, body(10 << 20))).await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (503, vec![1, 0]));
    let why = answer.header("x-fuseline-why");
    assert!(why.contains("replay_limit"), "{why}");
}
