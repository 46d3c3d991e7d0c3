//! Connections that break, before the head and in the middle.

use std::io::ErrorKind;
use std::time::Duration;

use fuseline_mock::{Mock, Reply};

use crate::client::{Client, Got, post};

const STREAM: &str = r#"{"stream": true}"#;
const PATHS: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
];
/// What tells a content event in each dialect.
const MARKS: [&str; 4] = [
    r#""delta":{"content""#,
    r#""finish_reason":null"#,
    "event: response.output_text.delta",
    "event: content_block_delta",
];

/// Content events in a stream; the role of a chat is none.
fn contents(got: &Got, mark: &str) -> usize {
    got.body
        .split("\n\n")
        .filter(|event| event.contains(mark) && !event.contains("role"))
        .count()
}

#[tokio::test]
async fn a_cut_comes_after_so_many_content_events() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    for (path, mark) in PATHS.into_iter().zip(MARKS) {
        for sent in [0, 1, 5, 20] {
            mock.set(Reply::ok().events(20).cut_after(sent))
                .await
                .unwrap();
            let got = post(&mock, path, STREAM).await;
            assert_eq!(
                (got.status, got.terminated, got.error),
                (200, false, None),
                "{path} {sent}"
            );
            assert_eq!(contents(&got, mark), sent, "{path}: {}", got.body);
            assert!(
                !got.body.contains("[DONE]") && !got.body.contains("stop\""),
                "{path} {sent}: {}",
                got.body
            );
        }
    }
    assert_eq!(mock.left(), 0);
}

#[tokio::test]
async fn a_reset_comes_after_so_many_content_events() {
    let gap = Duration::from_millis(2);
    let mock = Mock::start(Reply::ok().events(20).gap(gap).reset_after(3))
        .await
        .unwrap();
    for (path, mark) in PATHS.into_iter().zip(MARKS) {
        let got = post(&mock, path, STREAM).await;
        assert_eq!(
            (got.terminated, got.error),
            (false, Some(ErrorKind::ConnectionReset)),
            "{path}"
        );
        assert_eq!(contents(&got, mark), 3, "{path}: {}", got.body);
    }
    assert_eq!(mock.left(), 0);
}

#[tokio::test]
async fn a_stall_keeps_the_connection_open() {
    let mock = Mock::start(Reply::ok().text("one two three").stall_after(2))
        .await
        .unwrap();
    let mut client = Client::asking(&mock, "/v1/chat/completions", STREAM).await;
    client.read_until("two").await;
    assert!(client.is_silent_for(Duration::from_millis(50)).await);
    assert_eq!((mock.in_flight(), mock.left()), (1, 0));

    mock.set(Reply::stall()).await.unwrap();
    let mut client = Client::asking(&mock, "/v1/chat/completions", STREAM).await;
    assert!(client.is_silent_for(Duration::from_millis(50)).await);
}

#[tokio::test]
async fn plain_bodies_break_in_the_middle() {
    let mock = Mock::start(Reply::ok().body("123456").cut_after(0))
        .await
        .unwrap();
    let got = post(&mock, "/", "").await;
    assert_eq!(
        (got.status, got.body.as_str(), got.terminated),
        (200, "", false)
    );
    assert!(got.head.contains("content-length: 6"), "{}", got.head);
    mock.set(Reply::ok().body("123456").cut_after(7))
        .await
        .unwrap();
    assert_eq!(post(&mock, "/", "").await.body, "123");
    mock.set(Reply::status(500).reset_after(1)).await.unwrap();
    let got = post(&mock, "/", "").await;
    assert_eq!(
        (got.status, got.error),
        (500, Some(ErrorKind::ConnectionReset))
    );
    mock.set(Reply::ok().body("123456").stall_after(1))
        .await
        .unwrap();
    let mut client = Client::asking(&mock, "/", "").await;
    client.read_until("123").await;
    assert!(client.is_silent_for(Duration::from_millis(50)).await);
}

#[tokio::test]
async fn connections_break_before_the_head() {
    let mock = Mock::start(Reply::close()).await.unwrap();
    assert_eq!(
        Client::asking(&mock, "/", "").await.read_raw().await,
        (String::new(), None)
    );
    mock.set(Reply::reset().delay(Duration::from_millis(5)))
        .await
        .unwrap();
    let ended = Client::asking(&mock, "/", "").await.read_raw().await;
    assert_eq!(ended, (String::new(), Some(ErrorKind::ConnectionReset)));
    mock.set(Reply::raw("SSH-2.0-garbage\r\n")).await.unwrap();
    assert_eq!(
        Client::asking(&mock, "/", "").await.read_raw().await,
        ("SSH-2.0-garbage\r\n".to_owned(), None)
    );
    assert_eq!((mock.hits(), mock.left(), mock.in_flight()), (3, 0, 0));
}
