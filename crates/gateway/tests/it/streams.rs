//! Streams through the gateway, and callers who leave.

use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{
    CHAT, SOON, breaker, chat, gateway, open, openai, route, send, stream, until, within,
};

const AT_ONCE: Duration = Duration::from_millis(500);

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

#[tokio::test]
async fn events_are_passed_on_as_they_come_and_unchanged() {
    let chunks = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"So\"}}]}\n\n",
        ": ping\n\n",
        "data:{\"x\":\"\u{20ac}\"}\r\n\r\n",
        "data: [DONE]\n\n",
    ];
    let mock = Mock::start(Reply::ok().chunks(chunks).gap(Duration::from_millis(100)))
        .await
        .unwrap();
    let gateway = in_front_of(&mock).await;
    let mut answer = open(gateway.addr(), stream()).await;
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    let first = within(answer.body_mut().frame())
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert_eq!(first, chunks[0]);
    assert_eq!(
        mock.in_flight(),
        1,
        "the first event is here while the upstream still works on the rest"
    );
    let rest = within(answer.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    assert_eq!(rest, chunks[1..].concat());
    until(async || breaker(&gateway, "a/m").await["rules"][1]["calls"] == 1).await;
}

/// A caller who has sent his request and read this much of the answer.
async fn caller(gateway: &Gateway, body: &str, seen: usize) -> TcpStream {
    let mut caller = TcpStream::connect(gateway.addr()).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    caller
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    let mut bytes = vec![0; seen];
    within(caller.read_exact(&mut bytes)).await.unwrap();
    caller
}

#[tokio::test]
async fn a_caller_who_leaves_closes_the_upstream_and_counts_for_nothing() {
    let long = Duration::from_secs(60);
    for (name, reply, body, seen) in [
        (
            "before the head",
            Reply::stall(),
            r#"{"model":"m","stream":true}"#,
            0,
        ),
        (
            "in a stream",
            Reply::ok().events(100).stall_after(3),
            r#"{"model":"m","stream":true}"#,
            200,
        ),
        (
            "in a steady stream",
            Reply::ok().events(10_000).gap(Duration::from_millis(5)),
            r#"{"model":"m","stream":true}"#,
            900,
        ),
        (
            "waiting for a plain answer",
            Reply::ok().delay(long),
            r#"{"model":"m"}"#,
            0,
        ),
        (
            "in a plain answer",
            Reply::ok().gap(long),
            r#"{"model":"m"}"#,
            0,
        ),
    ] {
        let mock = Mock::start(reply).await.unwrap();
        let gateway = in_front_of(&mock).await;
        let caller = caller(&gateway, body, seen).await;
        mock.wait_for_hits(1, SOON).await.unwrap();
        drop(caller);
        assert!(mock.wait_for_left(1, AT_ONCE).await.is_ok(), "{name}");
        assert_eq!(breaker(&gateway, "a").await["run"], 0, "{name}");
        assert!(
            breaker(&gateway, "a/m").await.is_null(),
            "no outcome made a breaker: {name}"
        );
    }
}

#[tokio::test]
async fn a_plain_answer_that_breaks_falls_over_unseen() {
    for reply in [
        Reply::ok().cut_after(1),
        Reply::ok().reset_after(1),
        Reply::close(),
        Reply::reset(),
        Reply::raw("what?"),
    ] {
        let (a, b) = (
            Mock::start(reply).await.unwrap(),
            Mock::start(Reply::ok().body("good")).await.unwrap(),
        );
        let text = format!(
            "{}{}{}",
            openai("a", &a.url()),
            openai("b", &b.url()),
            route(&["a", "b"])
        );
        let gateway = gateway(&text).await;
        let answer = send(gateway.addr(), chat()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, &b"good"[..])
        );
        assert_eq!((a.hits(), b.hits()), (1, 1));
    }
}

#[tokio::test]
async fn silence_before_a_streams_head_falls_over_after_its_limit() {
    let (a, b) = (
        Mock::start(Reply::stall()).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let text = format!(
        "{}{}{}[timeouts]\nfirst_token = \"100ms\"\n",
        openai("a", &a.url()),
        openai("b", &b.url()),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "b/m")
    );
    assert_eq!(breaker(&gateway, "a/m").await["kinds"]["timeout"], 1);
    within(a.wait_for_left(1, AT_ONCE)).await.unwrap();
}
