//! Answers at the edges of HTTP: without a body, with less or more than one head, with hints; bodies that nobody reads.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fuseline::reqwest::Client;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Cause, Kind, State};
use fuseline_mock::{Mock, Reply, Script};
use http::{Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use tokio::io::AsyncReadExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{breaker, due, patient};

fn guarded(breaker: &Breaker) -> Client {
    Client::new(breaker.clone(), reqwest::Client::new())
}

/// One call's answer, its body unread.
async fn head(breaker: &Breaker, method: Method, script: impl Into<Script>) -> reqwest::Response {
    let mock = Mock::start(script).await.unwrap();
    let client = guarded(breaker);
    let request = client.inner().request(method, mock.url() + "/v1/models");
    client.send(request).await.unwrap()
}

#[tokio::test]
async fn an_answer_without_a_body_is_a_success_at_its_head() {
    let answers = [
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
        ),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
        (Method::GET, "HTTP/1.1 304 Not Modified\r\n\r\n"),
        (Method::GET, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ];
    for (method, answer) in answers {
        let (probed, _) = due();
        let unread = head(&probed, method, Reply::raw(answer)).await;
        assert_eq!(probed.state(), State::Closed, "{answer}");
        assert_eq!(probed.snapshot().in_flight, 0, "{answer}");
        drop(unread);
    }
}

#[tokio::test]
async fn early_hints_are_no_answer_and_trailers_are_no_end() {
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
    let trailers = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n\
                    3\r\nyes\r\n0\r\nx: y\r\n\r\n";
    for answer in [hints, trailers] {
        let (probed, _) = due();
        let answer = head(&probed, Method::GET, Reply::raw(answer)).await;
        assert_eq!(probed.state(), State::HalfOpen, "its body is still to come");
        assert_eq!(answer.bytes().await.unwrap(), "yes");
        assert_eq!(probed.state(), State::Closed);
    }
}

#[tokio::test]
async fn an_upgrade_is_a_success_and_still_the_callers() {
    let (probed, _) = due();
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello";
    let mock = Mock::start(Reply::raw(switch)).await.unwrap();
    let client = guarded(&probed);
    let request = client.inner().get(mock.url());
    let request = request
        .header("connection", "upgrade")
        .header("upgrade", "x");
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(probed.state(), State::Closed);
    let mut upgraded = answer.upgrade().await.unwrap();
    let mut said = [0; 5];
    upgraded.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"hello");
}

/// A body that says that it is empty by its size alone.
struct Empty;

impl Body for Empty {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}

#[tokio::test]
async fn a_body_of_size_zero_is_not_waited_for() {
    let (probed, _) = due();
    let client = service_fn(async |()| Ok::<_, Infallible>(http::Response::new(Empty)));
    let client = BreakerLayer::new(probed.clone()).layer(client);
    let answer = client.oneshot(()).await.unwrap();
    assert_eq!(probed.state(), State::Closed);
    drop(answer);
}

#[tokio::test]
async fn a_probes_body_that_nobody_reads_fails_when_its_lease_ends() {
    let (probed, clock) = due();
    let unread = head(&probed, Method::GET, Reply::ok()).await;
    clock.advance(Duration::from_secs(59));
    assert_eq!(
        (probed.state(), probed.is_available()),
        (State::HalfOpen, false)
    );
    clock.advance(Duration::from_secs(2));
    assert_eq!(probed.state(), State::Open);
    let refused = probed.try_acquire().unwrap_err();
    assert_eq!(
        refused.retry_after,
        Duration::from_secs(29),
        "30 s from the lease's end"
    );
    assert_eq!(probed.history(0).pop().unwrap().why.cause, Cause::Lease);
    assert!(unread.bytes().await.is_ok());
    let seen = probed.snapshot();
    assert_eq!((seen.state, seen.late, seen.in_flight), (State::Open, 1, 0));
}

#[tokio::test]
async fn what_the_caller_gets_is_the_clients_own_answer() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::ok().header("x-served-by", "a").body("yes"))
        .await
        .unwrap();
    let client = guarded(&breaker);
    let answer = client.send(client.inner().get(mock.url())).await.unwrap();
    assert_eq!(answer.remote_addr(), Some(mock.addr()));
    assert_eq!(answer.content_length(), Some(3));
    assert_eq!(answer.version(), http::Version::HTTP_11);
    assert_eq!(answer.headers()["x-served-by"], "a");
    assert_eq!(answer.url().as_str(), mock.url() + "/");
}

#[tokio::test]
async fn the_hint_of_the_answer_that_opens_lengthens_the_cooldown() {
    for status in [503, 529, 429] {
        let (breaker, _) = breaker(&patient());
        for _ in 0..99 {
            breaker.try_acquire().unwrap().failure(Kind::ServerError);
        }
        head(&breaker, Method::GET, Reply::status(status).retry_after(25)).await;
        let refused = breaker.try_acquire().unwrap_err();
        assert_eq!(refused.retry_after, Duration::from_secs(25), "{status}");
    }
}

#[tokio::test]
async fn hints_come_through_tower_as_well() {
    let (breaker, _) = breaker(&patient());
    let client = service_fn(async |()| {
        let answer = http::Response::builder()
            .status(429)
            .header("retry-after-ms", "90500");
        Ok::<_, Infallible>(answer.body(Full::new(Bytes::new())).unwrap())
    });
    let client = BreakerLayer::new(breaker.clone()).layer(client);
    client.oneshot(()).await.unwrap();
    let refused = breaker.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_millis(90_500));
}

#[tokio::test]
async fn report_36_a_server_that_asks_for_a_day_is_left_alone_for_an_hour_at_most() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::status(429).retry_after(86_400))
        .await
        .unwrap();
    let client = guarded(&breaker);
    let ask = async || client.send(client.inner().get(mock.url())).await;
    let answer = ask().await.unwrap();
    assert_eq!(
        answer.headers()["retry-after"],
        "86400",
        "told to the caller, slept on by nobody"
    );
    assert_eq!(
        ask().await.unwrap_err().retry_after(),
        Some(Duration::from_secs(3_600))
    );
    assert_eq!(mock.hits(), 1);
}

#[tokio::test]
async fn the_media_type_of_a_stream_is_known_in_any_case() {
    let (breaker, _) = breaker(&patient());
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\n\
               transfer-encoding: chunked\r\n\r\n3\r\nda";
    let answer = head(&breaker, Method::GET, Reply::raw(cut)).await;
    assert!(answer.bytes().await.is_err());
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamTruncated, 1)]);
}

#[tokio::test]
async fn report_33_and_126_fifty_callers_who_stop_their_streams_leave_no_trace() {
    let (breaker, _) = breaker(&patient());
    let mock = Mock::start(Reply::ok().events(9).stall_after(2))
        .await
        .unwrap();
    let client = guarded(&breaker);
    let body = r#"{"model": "m", "stream": true, "messages": []}"#;
    for _ in 0..50 {
        let request = client.inner().post(mock.url() + "/v1/chat/completions");
        let mut answer = client.send(request.body(body)).await.unwrap();
        assert!(answer.chunk().await.unwrap().is_some());
        assert_eq!(breaker.snapshot().in_flight, 1);
    }
    let seen = breaker.snapshot();
    assert_eq!(
        (seen.state, seen.run, seen.in_flight),
        (State::Closed, 0, 0)
    );
    mock.set(Reply::ok()).await.unwrap();
    let whole = client.send(client.inner().get(mock.url())).await.unwrap();
    assert!(whole.bytes().await.is_ok());
}

#[tokio::test]
async fn trailers_pass_through_tower() {
    let (probed, _) = due();
    let client = service_fn(async |()| {
        let trailers = async {
            Some(Ok(http::HeaderMap::from_iter([(
                http::header::ETAG,
                "x".parse().unwrap(),
            )])))
        };
        let body = Full::new(Bytes::from("yes")).with_trailers(trailers);
        Ok::<_, Infallible>(http::Response::new(body))
    });
    let client = BreakerLayer::new(probed.clone()).layer(client);
    let whole = client
        .oneshot(())
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(whole.trailers().unwrap()["etag"], "x");
    assert_eq!(probed.state(), State::Closed);
}
