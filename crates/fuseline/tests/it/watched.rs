//! Streamed answers of models through `reqwest`: what their events say settles the call, and only a whole one ends well.

use std::error::Error as _;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fuseline::classify::{Dialect, StreamEnding, StreamTimers, Timer};
use fuseline::reqwest::Client;
use fuseline::{Breaker, Kind, Outcome, Policy, State, StreamError};
use fuseline_mock::{Mock, Reply, Script};
use futures_core::Stream;
use http::Method;

use crate::support::{breaker, due, patient};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const CHAT: &str = "/v1/chat/completions";

fn events(body: impl Into<Bytes>) -> Reply {
    Reply::ok()
        .header("content-type", "text/event-stream")
        .body(body)
}

async fn answered(breaker: &Breaker, path: &str, script: impl Into<Script>) -> reqwest::Response {
    let mock = Mock::start(script).await.unwrap();
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    let body = r#"{"model": "m", "stream": true, "messages": []}"#;
    let request = client.inner().post(mock.url() + path).body(body);
    client.send(request).await.unwrap()
}

/// What stands behind reqwest's error.
fn ending(error: &reqwest::Error) -> Option<StreamEnding> {
    let mut cause = error.source();
    while let Some(error) = cause {
        match error.downcast_ref::<StreamError<reqwest::Error>>() {
            Some(StreamError::Incomplete { ending, .. }) => return Some(*ending),
            _ => cause = error.source(),
        }
    }
    None
}

#[tokio::test]
async fn the_end_marker_is_a_success_and_the_bytes_are_the_providers() {
    let (probed, _) = due();
    let said = [TEXT, FINISH, "data: [DONE]\n\n"];
    let reply = Reply::ok()
        .header("content-type", "text/event-stream")
        .chunks(said);
    let mut answer = answered(&probed, CHAT, reply).await;
    assert_eq!(probed.state(), State::HalfOpen);
    let mut came = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        came.extend_from_slice(&chunk);
        let is_finished = came.starts_with([TEXT, FINISH].concat().as_bytes());
        assert_eq!(probed.state() == State::Closed, is_finished);
    }
    assert_eq!(came, said.concat().as_bytes());
}

#[tokio::test]
async fn report_56_a_tidy_end_without_a_marker_is_an_error_and_counts() {
    let (breaker, _) = breaker(&patient());
    let answer = answered(&breaker, CHAT, events(TEXT)).await;
    let error = answer.bytes().await.unwrap_err();
    assert_eq!(ending(&error), Some(StreamEnding::Truncated));
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamTruncated, 1)]);
}

#[tokio::test]
async fn report_51_an_error_after_content_has_the_kind_that_it_names() {
    let (breaker, _) = breaker(&patient());
    let error = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let mut answer = answered(&breaker, CHAT, events([TEXT, error].concat())).await;
    let mut came = Vec::new();
    let failed = loop {
        match answer.chunk().await {
            Ok(chunk) => came.extend_from_slice(&chunk.expect("an error is the last")),
            Err(error) => break error,
        }
    };
    assert_eq!(
        came,
        [TEXT, error].concat().as_bytes(),
        "the provider's own words"
    );
    assert_eq!(ending(&failed), Some(StreamEnding::Error));
    assert_eq!(breaker.snapshot().kinds, [(Kind::Overloaded, 1)]);
}

#[tokio::test]
async fn report_43_a_silent_stream_is_given_up_at_the_clients_limit() {
    let (breaker, limit) = (
        Breaker::new("openai", Policy::default()),
        Duration::from_millis(20),
    );
    let mock = Mock::start(Reply::ok().events(5).stall_after(0))
        .await
        .unwrap();
    let timers = StreamTimers {
        first_token: limit,
        ..StreamTimers::default()
    };
    let client = Client::new(breaker.clone(), reqwest::Client::new()).stream_timers(timers);
    let body = r#"{"model": "m", "stream": true, "messages": []}"#;
    let request = client.inner().post(mock.url() + CHAT).body(body);
    let error = client
        .send(request)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap_err();
    let timer = Timer::FirstToken;
    assert_eq!(
        ending(&error),
        Some(StreamEnding::TimedOut { timer, limit })
    );
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamStall, 1)]);
}

#[tokio::test]
async fn a_read_timeout_of_reqwest_itself_is_a_stall() {
    let breaker = Breaker::new("openai", Policy::default());
    let mock = Mock::start(Reply::ok().events(5).stall_after(2))
        .await
        .unwrap();
    let limited = reqwest::Client::builder().read_timeout(Duration::from_millis(20));
    let client = Client::new(breaker.clone(), limited.build().unwrap());
    let body = r#"{"model": "m", "stream": true, "messages": []}"#;
    let request = client.inner().post(mock.url() + CHAT).body(body);
    let answer = client.send(request).await.unwrap();
    let error = answer.bytes().await.unwrap_err();
    assert_eq!(ending(&error), None, "reqwest's own");
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamStall, 1)]);
}

#[tokio::test]
async fn each_path_has_its_dialect() {
    let anthropic = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hi\"}}\n\n\
                     data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    let responses = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n\
                     data: {\"type\":\"response.completed\"}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    let chat = [TEXT, FINISH].concat();
    for (path, said) in [
        (CHAT, chat.as_str()),
        ("/v1/messages", anthropic),
        ("/v1/responses", responses),
        ("/v1beta/models/m:streamGenerateContent", gemini),
    ] {
        let (breaker, _) = breaker(&patient());
        breaker.try_acquire().unwrap().failure(Kind::Network);
        let answer = answered(&breaker, path, events(said.to_owned())).await;
        assert_eq!(answer.bytes().await.unwrap(), said, "{path}");
        assert_eq!(breaker.snapshot().run, 0, "{path}");
        let other = answered(&breaker, path, events("data: {\"x\":1}\n\n")).await;
        let error = other.bytes().await.unwrap_err();
        assert_eq!(ending(&error), Some(StreamEnding::Truncated), "{path}");
        assert_eq!(breaker.snapshot().run, 1, "{path}");
    }
}

#[tokio::test]
async fn what_is_no_stream_of_a_model_is_not_watched() {
    let (breaker, _) = breaker(&patient());
    let said = "data: not JSON at all\n\n";
    let mock = Mock::start(events(said)).await.unwrap();
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    for (method, path) in [(Method::POST, "/events"), (Method::GET, CHAT)] {
        let request = client.inner().request(method, mock.url() + path);
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.bytes().await.unwrap(), said);
    }
    mock.set(Reply::ok().body("{}")).await.unwrap();
    let request = client.inner().post(mock.url() + CHAT);
    assert_eq!(
        client.send(request).await.unwrap().bytes().await.unwrap(),
        "{}"
    );
    assert_eq!(breaker.snapshot().run, 0);
}

#[tokio::test]
async fn a_failure_that_is_streamed_is_a_failure_by_its_status() {
    let (breaker, _) = breaker(&patient());
    let reply = Reply::status(503)
        .header("content-type", "text/event-stream")
        .body(TEXT);
    let answer = answered(&breaker, CHAT, reply).await;
    assert_eq!(breaker.snapshot().kinds, [(Kind::ServerError, 1)]);
    assert_eq!(answer.bytes().await.unwrap(), TEXT);
    assert_eq!(breaker.snapshot().run, 1, "once");
}

#[tokio::test]
async fn a_model_that_thinks_keeps_its_probes_lease_for_as_long() {
    for (model, lease) in [("o3", 301), ("small", 61)] {
        let (probed, clock) = due();
        let mock = Mock::start(Reply::ok().events(3)).await.unwrap();
        let client = Client::new(probed.clone(), reqwest::Client::new());
        let body = format!(r#"{{"model": "{model}", "stream": true, "messages": []}}"#);
        let request = client.inner().post(mock.url() + CHAT).body(body);
        let unread = client.send(request).await.unwrap();
        clock.advance(Duration::from_millis(lease * 1_000 - 1));
        assert_eq!(probed.state(), State::HalfOpen, "{model}");
        clock.advance(Duration::from_millis(1));
        assert_eq!(probed.state(), State::Open, "{model}");
        drop(unread);
    }
}

/// A stream that is never opened.
struct Never;

impl Stream for Never {
    type Item = Result<Bytes, &'static str>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}

#[tokio::test]
async fn an_error_instead_of_a_stream_of_bytes_is_a_failure() {
    let (breaker, _) = breaker(&patient());
    let sleep = |_| pending::<()>();
    let refused = async { Err::<Never, _>("refused") };
    let failed = breaker.call_bytes(refused, Dialect::OpenAiChat, sleep);
    assert_eq!(failed.await.unwrap_err().into_inner(), Some("refused"));
    let network = |_: &Result<Bytes, &str>, _: Duration| Outcome::failure(Kind::Network);
    let judged = breaker.with_classifier(network);
    let refused = async { Err::<Never, _>("refused") };
    let failed = judged.call_bytes(refused, Dialect::OpenAiChat, sleep);
    assert!(failed.await.is_err());
    let opened = breaker.call_bytes(async { Ok(Never) }, Dialect::OpenAiChat, sleep);
    let collected = opened.await.unwrap().collect().await;
    assert_eq!(collected.unwrap_err().kind, Some(Kind::EmptyResponse));
    let kinds = [Kind::ServerError, Kind::Network, Kind::EmptyResponse];
    let mut seen = breaker.snapshot().kinds;
    seen.sort_by_key(|(kind, _)| kinds.iter().position(|other| other == kind));
    assert_eq!(seen, kinds.map(|kind| (kind, 1)));
}
