//! Good answers and errors in both dialects, plain and streamed, and what can be changed about them.

use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, post, request};

const PLAIN: &str = r#"{"model": "m-1"}"#;
const STREAM: &str = r#"{"model": "m-1", "stream": true}"#;
const TEXT: &str = "Hello from the mock provider.";

/// Follows keys and positions into a JSON value.
fn at(value: &Value, pointer: &str) -> Value {
    value
        .pointer(pointer)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
        .clone()
}

fn texts(events: &[Value], pointer: &str) -> String {
    events
        .iter()
        .filter_map(|event| event.pointer(pointer)?.as_str())
        .collect()
}

#[tokio::test]
async fn openai_answers_plain() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    for (path, object, text) in [
        (
            "/v1/chat/completions",
            "chat.completion",
            "/choices/0/message/content",
        ),
        ("/v1/completions", "text_completion", "/choices/0/text"),
        (
            "/some/prefix/v1/responses?a=b",
            "response",
            "/output/0/content/0/text",
        ),
    ] {
        let got = post(&mock, path, PLAIN).await;
        let body = got.json();
        assert_eq!((got.status, got.terminated), (200, true), "{path}");
        assert!(
            got.head.contains("content-type: application/json"),
            "{}",
            got.head
        );
        assert!(got.head.contains("x-request-id: req_"), "{}", got.head);
        assert_eq!(
            (at(&body, "/object"), at(&body, "/model"), at(&body, text)),
            (json!(object), json!("m-1"), json!(TEXT))
        );
        assert_eq!(at(&body, "/usage/total_tokens"), 14);
    }
    let body = post(
        &mock,
        "/v1/embeddings",
        r#"{"model": "e", "input": ["a", "b"], "stream": true}"#,
    )
    .await
    .json();
    assert_eq!(
        (
            at(&body, "/data/1/index"),
            body["data"].as_array().unwrap().len()
        ),
        (json!(1), 2)
    );
    for input in [r#""one""#, "[1, 2, 3]", "[[1, 2]]"] {
        let body = post(&mock, "/v1/embeddings", &format!(r#"{{"input": {input}}}"#))
            .await
            .json();
        assert_eq!(body["data"].as_array().unwrap().len(), 1, "{input}");
    }
    assert_eq!(
        post(&mock, "/v1/models", "").await.json()["data"],
        json!([])
    );
}

#[tokio::test]
async fn openai_answers_streamed() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    for (path, text) in [
        ("/v1/chat/completions", "/choices/0/delta/content"),
        ("/v1/completions", "/choices/0/text"),
        ("/v1/responses", "/delta"),
    ] {
        let got = post(&mock, path, STREAM).await;
        assert_eq!((got.status, got.terminated), (200, true), "{path}");
        assert!(
            got.head.contains("content-type: text/event-stream"),
            "{}",
            got.head
        );
        assert_eq!(texts(&got.json_events(), text), TEXT, "{path}");
    }
    let got = post(&mock, "/v1/chat/completions", STREAM).await;
    assert_eq!(got.events().last().unwrap().1, "[DONE]");
    let events = got.json_events();
    assert_eq!(at(&events[0], "/choices/0/delta/role"), "assistant");
    assert_eq!(
        at(&events[events.len() - 1], "/choices/0/finish_reason"),
        "stop"
    );
    assert!(events.iter().all(|event| event.get("usage").is_none()));

    let with_usage = r#"{"stream": true, "stream_options": {"include_usage": true}}"#;
    let events = post(&mock, "/v1/chat/completions", with_usage)
        .await
        .json_events();
    assert_eq!(
        (
            at(&events[0], "/usage"),
            at(&events[events.len() - 1], "/usage/total_tokens")
        ),
        (json!(null), json!(14))
    );

    let got = post(&mock, "/v1/responses", STREAM).await;
    for (number, ((name, data), event)) in
        got.events().into_iter().zip(got.json_events()).enumerate()
    {
        assert_eq!(
            (at(&event, "/sequence_number"), at(&event, "/type")),
            (json!(number), json!(name)),
            "{data}"
        );
    }
    assert_eq!(
        at(got.json_events().last().unwrap(), "/response/status"),
        "completed"
    );
}

#[tokio::test]
async fn anthropic_answers_plain_and_streamed() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let got = post(&mock, "/v1/messages", PLAIN).await;
    let body = got.json();
    assert!(got.head.contains("\nrequest-id: req_"), "{}", got.head);
    assert_eq!(
        (at(&body, "/type"), at(&body, "/model")),
        (json!("message"), json!("m-1"))
    );
    assert_eq!(
        (at(&body, "/content/0/text"), at(&body, "/stop_reason")),
        (json!(TEXT), json!("end_turn"))
    );

    let got = post(&mock, "/v1/messages", STREAM).await;
    let names: Vec<_> = got
        .events()
        .into_iter()
        .map(|(name, _)| name.unwrap())
        .collect();
    let opening = ["message_start", "content_block_start", "ping"];
    let closing = ["content_block_stop", "message_delta", "message_stop"];
    assert_eq!(
        [&opening[..], &["content_block_delta"; 5], &closing].concat(),
        names
    );
    for (name, event) in names.iter().zip(got.json_events()) {
        assert_eq!(at(&event, "/type"), json!(name));
    }
    assert_eq!(texts(&got.json_events(), "/delta/text"), TEXT);
    assert!(got.terminated);
}

#[tokio::test]
async fn errors_speak_the_callers_dialect() {
    let mock = Mock::start(Reply::status(429).retry_after(2))
        .await
        .unwrap();
    let got = post(&mock, "/v1/chat/completions", STREAM).await;
    assert_eq!(got.status, 429);
    assert!(got.head.contains("retry-after: 2"), "{}", got.head);
    assert_eq!(at(&got.json(), "/error/code"), "rate_limit_exceeded");
    assert_eq!(at(&got.json(), "/error/param"), json!(null));
    let body = post(&mock, "/v1/messages", PLAIN).await.json();
    assert_eq!(
        (at(&body, "/type"), at(&body, "/error/type")),
        (json!("error"), json!("rate_limit_error"))
    );
    assert!(at(&body, "/request_id").is_string());

    for (status, openai, anthropic) in [
        (400, "invalid_request_error", "invalid_request_error"),
        (401, "invalid_request_error", "authentication_error"),
        (403, "invalid_request_error", "permission_error"),
        (404, "invalid_request_error", "not_found_error"),
        (413, "invalid_request_error", "request_too_large"),
        (500, "server_error", "api_error"),
        (529, "server_error", "overloaded_error"),
    ] {
        mock.set(Reply::status(status)).await.unwrap();
        let got = post(&mock, "/v1/responses", PLAIN).await;
        assert_eq!(
            (got.status, at(&got.json(), "/error/type")),
            (status, json!(openai))
        );
        assert_eq!(
            at(
                &post(&mock, "/v1/messages", PLAIN).await.json(),
                "/error/type"
            ),
            anthropic
        );
    }
}

#[tokio::test]
async fn an_errors_parts_can_be_set() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let quota = Reply::status(429)
        .error_type("insufficient_quota")
        .error_code("q")
        .error_message("Spent.");
    mock.set(quota).await.unwrap();
    let error = at(&post(&mock, "/v1/responses", PLAIN).await.json(), "/error");
    assert_eq!(
        error,
        json!({"message": "Spent.", "type": "insufficient_quota", "param": null, "code": "q"})
    );
    let mut client = Client::connect(&mock).await.unwrap();
    client
        .send(&request(
            "/v1/files",
            "",
            "anthropic-version: 2023-06-01\r\n",
        ))
        .await;
    assert_eq!(
        at(&client.read().await.json(), "/error/type"),
        "insufficient_quota"
    );
}

#[tokio::test]
async fn status_headers_body_and_chunks_are_as_scripted() {
    let reply = Reply::status(201)
        .header("Content-Type", "text/plain")
        .header("set-cookie", "a")
        .header("set-cookie", "b");
    let mock = Mock::start(reply.body("as it is")).await.unwrap();
    let got = post(&mock, "/v1/messages", STREAM).await;
    assert_eq!(
        (got.status, got.body.as_str(), got.terminated),
        (201, "as it is", true)
    );
    assert!(
        got.head.contains("set-cookie: a\r\nset-cookie: b"),
        "{}",
        got.head
    );
    assert!(
        got.head.contains("content-type: text/plain") && !got.head.contains("json"),
        "{}",
        got.head
    );

    mock.set(Reply::ok().chunks(["data: {not json}\r\n", "\r\n", ": ping\n\n"]))
        .await
        .unwrap();
    let got = post(&mock, "/anything", "").await;
    assert_eq!(
        (got.body.as_str(), got.terminated),
        ("data: {not json}\r\n\r\n: ping\n\n", true)
    );
    assert!(
        got.head.contains("content-type: text/event-stream"),
        "{}",
        got.head
    );

    mock.set(Reply::status(204)).await.unwrap();
    let got = post(&mock, "/anything", "").await;
    assert_eq!((got.status, got.body.as_str()), (204, ""));
    mock.set(Reply::ok().text("")).await.unwrap();
    assert_eq!(
        at(
            &post(&mock, "/v1/chat/completions", PLAIN).await.json(),
            "/choices/0/message/content"
        ),
        ""
    );
    mock.set(Reply::ok().body(vec![b'x'; 300_000]))
        .await
        .unwrap();
    let got = post(&mock, "/anything", "").await;
    assert_eq!((got.body.len(), got.terminated), (300_000, true));
    let mut client = Client::connect(&mock).await.unwrap();
    client
        .send("HEAD / HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(client.read().await.status, 200);
    assert_eq!((mock.left(), mock.in_flight()), (0, 0));
}

#[tokio::test]
async fn delays_and_gaps_take_their_time() {
    let ms = Duration::from_millis;
    let mock = Mock::start(Reply::ok().delay(ms(60))).await.unwrap();
    let start = Instant::now();
    let mut client = Client::asking(&mock, "/v1/messages", PLAIN).await;
    assert!(client.is_silent_for(ms(30)).await);
    assert_eq!((mock.hits(), mock.in_flight()), (1, 1));
    client.read_until("HTTP/1.1 200").await;
    assert!(start.elapsed() >= ms(60));

    mock.set(Reply::ok().events(3).first_gap(ms(40)).gap(ms(30)))
        .await
        .unwrap();
    let start = Instant::now();
    let mut client = Client::asking(&mock, "/v1/messages", STREAM).await;
    client.read_until("ping").await;
    assert!(start.elapsed() < ms(40), "the opening events came late");
    client.read_until("Hello").await;
    assert!(start.elapsed() >= ms(40));
    client.read_until("message_stop").await;
    assert!(start.elapsed() >= ms(100));

    mock.set(Reply::ok().body("onetwo").gap(ms(30)))
        .await
        .unwrap();
    let start = Instant::now();
    let got = post(&mock, "/", "").await;
    assert_eq!((got.body.as_str(), got.terminated), ("onetwo", true));
    assert!(start.elapsed() >= ms(30));
}
