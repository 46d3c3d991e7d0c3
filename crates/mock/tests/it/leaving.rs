//! Callers who leave: before the head, in the body, while they upload.

use std::time::Duration;

use fuseline_mock::{Mock, Reply, Script, Stage};
use tokio::time::Instant;

use crate::client::{Client, SOON, post, request};

const STREAM: &str = r#"{"stream": true}"#;
const PROMPT: Duration = Duration::from_millis(100);

/// Drops the client and checks what the mock noticed.
async fn leave(mock: &Mock, client: Client, stage: Stage) {
    let before = mock.left();
    let leaving = Instant::now();
    drop(client);
    mock.wait_for_left(before + 1, SOON).await.unwrap();
    let departure = mock.departures().pop().unwrap();
    assert_eq!((departure.stage, departure.number), (stage, mock.hits()));
    assert!(
        departure.at - leaving < PROMPT,
        "seen after {:?}",
        departure.at - leaving
    );
    assert_eq!(mock.in_flight(), 0);
}

#[tokio::test]
async fn before_the_head() {
    let long = Duration::from_secs(600);
    for reply in [
        Reply::stall(),
        Reply::ok().delay(long),
        Reply::reset().delay(long),
    ] {
        let mock = Mock::start(reply).await.unwrap();
        let client = Client::asking(&mock, "/v1/messages", STREAM).await;
        mock.wait_for_hits(1, SOON).await.unwrap();
        leave(&mock, client, Stage::BeforeHead).await;
    }
}

#[tokio::test]
async fn in_the_body() {
    let long = Duration::from_secs(600);
    let replies = [
        Reply::ok().stall_after(0),
        Reply::ok().first_gap(long),
        Reply::ok().gap(long),
        Reply::ok().stall_after(4),
    ];
    for reply in replies {
        let mock = Mock::start(reply).await.unwrap();
        let mut client = Client::asking(&mock, "/v1/messages", STREAM).await;
        client.read_until("ping").await;
        leave(&mock, client, Stage::InBody).await;
    }
    let mock = Mock::start(Reply::ok().gap(Duration::from_millis(1)).events(100_000))
        .await
        .unwrap();
    let mut client = Client::asking(&mock, "/v1/messages", STREAM).await;
    client.read_until("Hello").await;
    leave(&mock, client, Stage::InBody).await;

    let mock = Mock::start(Reply::ok().body("123456").stall_after(1))
        .await
        .unwrap();
    let mut client = Client::asking(&mock, "/", "").await;
    client.read_until("123").await;
    leave(&mock, client, Stage::InBody).await;
}

#[tokio::test]
async fn without_reading_a_large_body() {
    let mock = Mock::start(Reply::ok().body(vec![b'x'; 64 << 20]))
        .await
        .unwrap();
    let mut client = Client::asking(&mock, "/", "").await;
    client.read_until("xxx").await;
    leave(&mock, client, Stage::InBody).await;
}

#[tokio::test]
async fn while_uploading() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut client = Client::connect(&mock).await.unwrap();
    client
        .send("POST / HTTP/1.1\r\nhost: mock\r\ncontent-length: 100\r\n\r\nhalf")
        .await;
    mock.wait_for_hits(1, SOON).await.unwrap();
    assert_eq!(mock.requests()[0].body_len, None);
    leave(&mock, client, Stage::BeforeHead).await;
}

#[tokio::test]
async fn nobody_has_left_who_got_his_answer() {
    let mock = Mock::start(Script::cycle([Reply::ok(), Reply::status(500)]))
        .await
        .unwrap();
    for body in ["{}", STREAM] {
        for path in ["/v1/messages", "/v1/chat/completions"] {
            assert!(post(&mock, path, body).await.terminated);
        }
    }
    // A connection kept alive and then closed while idle.
    let mut client = Client::connect(&mock).await.unwrap();
    client
        .send(&request("/v1/messages", STREAM, "").replace("connection: close\r\n", ""))
        .await;
    client.read_until("0\r\n\r\n").await;
    drop(client);
    mock.wait_until(SOON, |counts| counts.in_flight == 0)
        .await
        .unwrap();
    assert_eq!((mock.hits(), mock.left()), (5, 0));
}

#[tokio::test]
async fn what_does_not_come_is_said() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let error = mock
        .wait_for_hits(1, Duration::from_millis(5))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("waited 5ms in vain; so far Counts"),
        "{error}"
    );
}
