//! Bodies that take their time, on a clock that is moved by hand: signs of life, proof, and what `slow` rules see.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fuseline::tower::{BreakerBody, BreakerLayer};
use fuseline::{Breaker, PolicySpec, State, TripRule};
use fuseline_mock::{Mock, Reply};
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{breaker, due, patient};

/// So many frames, then the end.
struct Frames(u32);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = self.0.checked_sub(1);
        Poll::Ready(left.map(|left| {
            self.0 = left;
            Ok(Frame::data(Bytes::from("data: x\n\n")))
        }))
    }
}

const STREAM: &str = "text/event-stream";
const PLAIN: &str = "application/json";

/// The body of an answer of this media type.
async fn answered(breaker: &Breaker, media: &'static str, frames: u32) -> BreakerBody<Frames> {
    let client = service_fn(async |()| {
        let answer = http::Response::builder().header(CONTENT_TYPE, media);
        Ok::<_, Infallible>(answer.body(Frames(frames)).unwrap())
    });
    let client = BreakerLayer::new(breaker.clone()).layer(client);
    client.oneshot(()).await.unwrap().into_body()
}

async fn frame(body: &mut BreakerBody<Frames>) -> bool {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
    frame.is_some()
}

#[tokio::test]
async fn frames_keep_a_probes_lease() {
    let (probed, clock) = due();
    let mut body = answered(&probed, PLAIN, 3).await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(50));
        assert!(frame(&mut body).await);
        assert_eq!(probed.state(), State::HalfOpen);
    }
    assert!(!frame(&mut body).await);
    assert_eq!(probed.state(), State::Closed);
}

#[tokio::test]
async fn five_seconds_of_an_event_stream_prove_a_probe_and_of_a_plain_body_do_not() {
    for (media, proved) in [(STREAM, State::Closed), (PLAIN, State::HalfOpen)] {
        let (probed, clock) = due();
        let mut body = answered(&probed, media, 9).await;
        clock.advance(Duration::from_secs(9));
        assert!(frame(&mut body).await);
        clock.advance(Duration::from_millis(4_999));
        assert!(frame(&mut body).await);
        assert_eq!(probed.state(), State::HalfOpen, "{media}");
        clock.advance(Duration::from_millis(1));
        assert!(frame(&mut body).await);
        assert_eq!(probed.state(), proved, "{media}");
    }
}

#[tokio::test]
async fn slow_rules_judge_a_stream_by_its_first_frame_and_a_plain_answer_by_all() {
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Slow {
            slower_than: Duration::from_secs(2),
            threshold: 1.0,
            window: Duration::from_secs(60),
            min_calls: 1,
        }]),
        ..patient()
    };
    for (media, first, rest, opens) in [
        (STREAM, 1, 30, false),
        (STREAM, 3, 0, true),
        (PLAIN, 1, 0, false),
        (PLAIN, 1, 2, true),
    ] {
        let (breaker, clock) = breaker(&spec);
        let mut body = answered(&breaker, media, 2).await;
        clock.advance(Duration::from_secs(first));
        assert!(frame(&mut body).await);
        clock.advance(Duration::from_secs(rest));
        while frame(&mut body).await {}
        let what = format!("{media}, {first} s and {rest} s");
        assert_eq!(breaker.state() == State::Open, opens, "{what}");
    }
}

#[tokio::test]
async fn a_lease_outlives_the_requests_own_timeout_by_a_second() {
    let (probed, clock) = due();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let client = fuseline::reqwest::Client::new(probed.clone(), reqwest::Client::new());
    let request = client.inner().get(mock.url());
    let unread = client.send(request.timeout(Duration::from_secs(90))).await;
    clock.advance(Duration::from_millis(90_999));
    assert_eq!(probed.state(), State::HalfOpen);
    clock.advance(Duration::from_millis(1));
    assert_eq!(probed.state(), State::Open);
    drop(unread);
}
