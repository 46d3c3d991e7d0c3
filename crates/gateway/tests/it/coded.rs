//! Coded bodies: read for what they mean, passed on as they came.

use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::Method;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::support::{
    breaker, chat, gateway, get, open, openai, route, send, stream, until, within,
};

async fn all(mut coder: impl AsyncRead + Unpin) -> Bytes {
    let mut bytes = Vec::new();
    coder.read_to_end(&mut bytes).await.unwrap();
    bytes.into()
}

/// One text in each coding.
async fn codings(text: &str) -> [(&'static str, Bytes); 4] {
    let text = text.as_bytes();
    [
        ("gzip", all(GzipEncoder::new(text)).await),
        ("br", all(BrotliEncoder::new(text)).await),
        ("zstd", all(ZstdEncoder::new(text)).await),
        ("deflate", all(ZlibEncoder::new(text)).await),
    ]
}

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

fn coded(reply: Reply, coding: &str, body: &Bytes) -> Reply {
    reply.body(body.clone()).header("content-encoding", coding)
}

#[tokio::test]
async fn report_119_a_coded_answer_arrives_with_its_label_and_its_length() {
    let text = format!(
        "{{\"choices\":[{{\"message\":{{\"content\":\"{}\"}}}}]}}",
        "so ".repeat(400)
    );
    let unknown = ("x-unheard-of", Bytes::from("whatever"));
    for (coding, body) in codings(&text).await.into_iter().chain([unknown]) {
        let mock = Mock::start(coded(Reply::ok(), coding, &body))
            .await
            .unwrap();
        let gateway = in_front_of(&mock).await;
        let mut request = chat();
        let accepts = coding.parse().unwrap();
        request.headers_mut().insert("accept-encoding", accepts);
        let answer = send(gateway.addr(), request).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-encoding"), coding);
        assert_eq!(answer.header("content-length"), body.len().to_string());
        assert_eq!(answer.body, body, "{coding}");
        assert_eq!(breaker(&gateway, "a").await["run"], 0);
    }
}

#[tokio::test]
async fn report_119_answers_without_a_body_stay_without() {
    let mock = Mock::start(Reply::status(204).header("content-encoding", "gzip"))
        .await
        .unwrap();
    let gateway = in_front_of(&mock).await;
    for method in [Method::GET, Method::HEAD] {
        let mut request = get("/v1/files/x");
        *request.method_mut() = method;
        let answer = send(gateway.addr(), request).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
        assert_eq!(answer.header("content-encoding"), "gzip");
    }
    // The length is that of a body which nobody sends.
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 379\r\n\r\n";
    mock.set(Reply::raw(head)).await.unwrap();
    let mut request = get("/v1/files/x");
    *request.method_mut() = Method::HEAD;
    let answer = send(gateway.addr(), request).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert_eq!(answer.header("content-length"), "379");
}

#[tokio::test]
async fn what_a_coded_body_says_decides() {
    let spent = r#"{"error":{"type":"insufficient_quota","message":"spent"}}"#;
    for (coding, body) in codings(spent).await {
        let mock = Mock::start(coded(Reply::status(429), coding, &body))
            .await
            .unwrap();
        let gateway = in_front_of(&mock).await;
        let answer = send(gateway.addr(), chat()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body),
            (429, &body),
            "{coding}"
        );
        let why = answer.header("x-fuseline-why");
        assert!(why.contains("quota_exhausted"), "{coding}: {why}");
    }
    for (coding, body) in codings(r#"{"choices":[]}"#).await {
        let mock = Mock::start(coded(Reply::ok(), coding, &body))
            .await
            .unwrap();
        let gateway = in_front_of(&mock).await;
        send(gateway.addr(), chat()).await;
        until(async || breaker(&gateway, "a/m").await["kinds"]["empty_response"] == 1).await;
    }
}

#[tokio::test]
async fn report_118_small_events_are_never_held_back_to_be_coded() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n";
    for content_type in ["text/event-stream", "Text/Event-Stream; charset=utf-8"] {
        let reply = Reply::ok()
            .chunks([token, token])
            .header("content-type", content_type)
            .stall_after(1);
        let mock = Mock::start(reply).await.unwrap();
        let gateway = in_front_of(&mock).await;
        let mut request = stream();
        let accepts = "gzip, br".parse().unwrap();
        request.headers_mut().insert("accept-encoding", accepts);
        let mut answer = open(gateway.addr(), request).await;
        assert_eq!(answer.headers().get("content-encoding"), None);
        assert_eq!(answer.headers()["content-type"], content_type);
        let first = within(answer.body_mut().frame()).await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), token);
    }
}
