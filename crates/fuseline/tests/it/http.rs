//! `tower` and `reqwest` by what comes over the wire: statuses, hints, bodies that end, break off or are left.

use std::time::Duration;

use fuseline::reqwest::Client;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Kind, Outcome, State};
use fuseline_mock::{Mock, Reply};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::rt::TokioExecutor;
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{breaker, due, patient};

/// A chat request, streamed.
const STREAM: &str = r#"{"model": "m", "stream": true, "messages": []}"#;

/// Asks through reqwest and reads the body, if there is an answer.
async fn ask(breaker: &Breaker, mock: &Mock, body: &'static str) -> Option<reqwest::Result<usize>> {
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    let url = mock.url() + "/v1/chat/completions";
    let answer = client
        .send(client.inner().post(&url).body(body))
        .await
        .ok()?;
    assert_eq!(answer.url().as_str(), url, "it is the client's own answer");
    Some(answer.bytes().await.map(|bytes| bytes.len()))
}

#[tokio::test]
async fn a_status_is_a_failure_of_its_kind() {
    let statuses = [
        (503, Some(Kind::ServerError)),
        (529, Some(Kind::Overloaded)),
        (429, Some(Kind::RateLimit)),
        (408, Some(Kind::Timeout)),
        (400, None),
        (401, None),
        (404, None),
        (200, None),
    ];
    for (status, counted) in statuses {
        let mock = Mock::start(Reply::status(status)).await.unwrap();
        let (breaker, _) = breaker(&patient());
        assert!(ask(&breaker, &mock, "{}").await.unwrap().is_ok());
        let kinds: Vec<_> = breaker
            .snapshot()
            .kinds
            .iter()
            .map(|(kind, _)| *kind)
            .collect();
        assert_eq!(kinds, Vec::from_iter(counted), "{status}");
        assert_eq!(breaker.snapshot().in_flight, 0, "{status}");
    }
}

#[tokio::test]
async fn a_spent_quota_opens_at_once_for_ten_minutes_and_a_redirect_does_not_count() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::status(304)).await.unwrap();
    ask(&breaker, &mock, "{}").await;
    assert_eq!(
        breaker.snapshot().kinds,
        [],
        "it is what the caller asked for"
    );
    mock.set(Reply::status(307)).await.unwrap();
    ask(&breaker, &mock, "{}").await;
    assert_eq!(
        breaker.snapshot().kinds,
        [],
        "the address is wrong, nobody is ill"
    );
    mock.set(Reply::status(402)).await.unwrap();
    ask(&breaker, &mock, "{}").await;
    let refused = breaker.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_secs(600));
}

#[tokio::test]
async fn a_callers_own_mistake_neither_resets_a_run_nor_decides_a_probe() {
    for status in [400, 401, 403, 404, 413, 422] {
        let mock = Mock::start(Reply::status(status)).await.unwrap();
        let (closed, _) = breaker(&patient());
        closed.try_acquire().unwrap().failure(Kind::ServerError);
        ask(&closed, &mock, "{}").await;
        assert_eq!(closed.snapshot().run, 1, "{status}");

        let (probed, _) = due();
        ask(&probed, &mock, "{}").await;
        assert_eq!(probed.state(), State::HalfOpen, "{status}");
        assert!(probed.is_available(), "{status}");
    }
}

#[tokio::test]
async fn a_long_hint_opens_for_as_long_and_a_short_one_only_counts() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::status(429).retry_after(30))
        .await
        .unwrap();
    ask(&breaker, &mock, "{}").await;
    assert_eq!(
        (breaker.state(), breaker.snapshot().run),
        (State::Closed, 1)
    );
    mock.set(Reply::status(429).retry_after(90)).await.unwrap();
    ask(&breaker, &mock, "{}").await;
    let refused = breaker.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_secs(90));
    assert_eq!(refused.to_string(), "circuit open, retry in 90 s");
}

#[tokio::test]
async fn nobody_who_listens_is_a_failure_of_the_network() {
    let mock = Mock::start(fuseline_mock::Script::refuse()).await.unwrap();
    let (breaker, _) = breaker(&patient());
    assert!(ask(&breaker, &mock, "{}").await.is_none());
    assert_eq!(breaker.snapshot().kinds, [(Kind::Network, 1)]);
}

#[tokio::test]
async fn what_is_the_requests_or_the_clients_own_fault_counts_for_nothing() {
    let (breaker, _) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    let round_and_round = Reply::status(302).header("location", "/v1/chat/completions");
    let mock = Mock::start(round_and_round).await.unwrap();
    assert!(ask(&breaker, &mock, "{}").await.is_none());
    assert!(mock.hits() > 1, "it was followed");
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    for nowhere in ["no address", "ftp://127.0.0.1/"] {
        let failed = client.send(client.inner().get(nowhere)).await;
        assert!(failed.unwrap_err().into_inner().unwrap().is_builder());
    }
    let seen = breaker.snapshot();
    assert_eq!((seen.run, seen.in_flight), (1, 0));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_truncated_and_a_whole_one_a_success() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::ok().events(9).cut_after(3))
        .await
        .unwrap();
    assert!(ask(&breaker, &mock, STREAM).await.unwrap().is_err());
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamTruncated, 1)]);
    mock.set(Reply::ok().events(9)).await.unwrap();
    assert!(ask(&breaker, &mock, STREAM).await.unwrap().is_ok());
    assert_eq!(breaker.snapshot().run, 0);
}

#[tokio::test]
async fn a_body_that_is_left_says_nothing() {
    let (breaker, _) = due();
    let mock = Mock::start(Reply::ok().events(9).stall_after(2))
        .await
        .unwrap();
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    let request = client.inner().post(mock.url() + "/v1/chat/completions");
    let mut answer = client.send(request.body(STREAM)).await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    assert!(!breaker.is_available(), "the probe is under way");
    drop(answer);
    assert!(breaker.is_available());
    assert_eq!(breaker.state(), State::HalfOpen);
}

#[tokio::test]
async fn a_body_that_falls_silent_beyond_the_clients_limit_is_stalled() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::ok().events(9).stall_after(2))
        .await
        .unwrap();
    let client = Client::new(breaker.clone(), reqwest::Client::new());
    let request = client.inner().post(mock.url() + "/v1/chat/completions");
    let request = request.body(STREAM).timeout(Duration::from_millis(300));
    let answer = client.send(request).await.unwrap();
    assert!(answer.bytes().await.is_err());
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamStall, 1)]);
}

#[tokio::test]
async fn tower_guards_a_real_client_and_its_bodies() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::ok().events(9).cut_after(3))
        .await
        .unwrap();
    let hyper = Hyper::builder(TokioExecutor::new()).build_http();
    let mut client = BreakerLayer::new(breaker.clone()).layer(hyper);
    let mut ask = async || {
        let request = http::Request::post(mock.url() + "/v1/chat/completions");
        let request = request.body(Full::new(bytes::Bytes::from(STREAM))).unwrap();
        let answer = client.ready().await.unwrap().call(request).await.unwrap();
        answer.into_body().collect().await.is_ok()
    };
    assert!(!ask().await);
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamTruncated, 1)]);
    mock.set(Reply::ok()).await.unwrap();
    assert!(ask().await);
    assert_eq!(breaker.snapshot().run, 0);
}

#[tokio::test]
async fn an_own_classifier_sees_head_and_error() {
    let (breaker, _) = breaker(&patient());
    let classify = |result: &reqwest::Result<reqwest::Response>, took: Duration| match result {
        Ok(answer) if answer.status() == 404 => Outcome::failure(Kind::ServerError),
        _ => Outcome::success(took),
    };
    let client = Client::with_classifier(breaker.clone(), reqwest::Client::new(), classify);
    let mock = Mock::start(Reply::status(404)).await.unwrap();
    client.send(client.inner().get(mock.url())).await.unwrap();
    assert_eq!(breaker.snapshot().run, 1);
}
