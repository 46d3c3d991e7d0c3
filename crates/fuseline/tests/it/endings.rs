//! Endings that are somebody's mistake: panics in a classifier or a body, polls after the end. Nothing stays taken.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Chain, Kind, Outcome, State};
use fuseline_mock::{Mock, Reply};
use futures_core::Stream as _;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

use crate::support::{breaker, due, items, next, patient};

/// A probe was cancelled: its slot is free, and nothing was counted.
fn was_cancelled(breaker: &Breaker, what: &str) {
    let seen = breaker.snapshot();
    assert_eq!(seen.state, State::HalfOpen, "{what}");
    assert_eq!((seen.in_flight, seen.live_probes), (0, 0), "{what}");
    assert!(breaker.is_available(), "{what}");
}

async fn panics(call: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = JoinSet::new();
    tasks.spawn(call);
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
}

fn bad<T, E>(_: &Result<T, E>, _: Duration) -> Outcome {
    panic!("the classifier's own")
}

#[tokio::test]
async fn a_classifier_that_panics_cancels_through_every_entrance() {
    let (probed, _) = due();
    let breaker = probed.with_classifier(bad::<(), ()>);
    panics(async move { drop(breaker.call(async { Ok(()) }).await) }).await;
    was_cancelled(&probed, "call");

    let (probed, _) = due();
    let breaker = probed.with_classifier(bad::<(), ()>);
    let call = || breaker.call_blocking(|| Ok(()));
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    was_cancelled(&probed, "call_blocking");

    let (probed, _) = due();
    let permit = probed.try_acquire_owned().unwrap();
    let mut stream = permit.guard_with(items([Ok(1)]), bad::<u32, Kind>);
    panics(async move { assert_eq!(next(&mut stream).await, None) }).await;
    was_cancelled(&probed, "a stream");

    let (probed, _) = due();
    let chain = Chain::builder()
        .target(probed.clone(), 1)
        .with_classifier(bad::<u32, Kind>);
    panics(async move { drop(chain.call(async |target| Ok(target)).await) }).await;
    was_cancelled(&probed, "a chain");

    let (probed, _) = due();
    let answer = || http::Response::new(Full::new(Bytes::from("yes")));
    let client = service_fn(move |(): ()| async move { Ok::<_, Infallible>(answer()) });
    let layer =
        BreakerLayer::with_classifier(probed.clone(), bad::<http::response::Parts, Infallible>);
    let client = layer.layer(client);
    panics(async move { drop(client.oneshot(()).await) }).await;
    was_cancelled(&probed, "tower");

    let (probed, _) = due();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let client = fuseline::reqwest::Client::with_classifier(
        probed.clone(),
        reqwest::Client::new(),
        bad::<reqwest::Response, reqwest::Error>,
    );
    panics(async move { drop(client.send(client.inner().get(mock.url())).await) }).await;
    was_cancelled(&probed, "reqwest");
}

/// A body that gives one frame, then panics.
struct Bad(bool);

impl Body for Bad {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(!std::mem::replace(&mut self.0, true), "the body's own");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from("half")))))
    }
}

#[tokio::test]
async fn a_body_that_panics_cancels() {
    let (probed, _) = due();
    let client = service_fn(async |()| Ok::<_, Infallible>(http::Response::new(Bad(false))));
    let client = BreakerLayer::new(probed.clone()).layer(client);
    panics(async move { drop(client.oneshot(()).await.unwrap().collect().await) }).await;
    was_cancelled(&probed, "a body");
}

#[test]
fn an_answer_that_is_polled_again_gives_no_other_and_settles_once() {
    let (breaker, _) = breaker(&patient());
    let client = service_fn(async |()| Err::<http::Response<Full<Bytes>>, _>("reset"));
    let mut client = BreakerLayer::new(breaker.clone()).layer(client);
    let mut cx = Context::from_waker(Waker::noop());
    let mut answer = pin!(client.call(()));
    assert!(answer.as_mut().poll(&mut cx).is_ready());
    assert!(answer.as_mut().poll(&mut cx).is_pending());
    assert_eq!(breaker.snapshot().kinds, [(Kind::Network, 1)]);

    breaker.force_open(None);
    let mut refused = pin!(client.call(()));
    assert!(refused.as_mut().poll(&mut cx).is_ready());
    assert!(refused.as_mut().poll(&mut cx).is_pending());
}

#[tokio::test]
async fn a_stream_or_a_body_that_is_polled_after_its_end_settles_once() {
    let (breaker, _) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    let mut stream = breaker.try_acquire().unwrap().guard(items([Ok(1)]));
    while next(&mut stream).await.is_some() {}
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    assert_eq!(next(&mut stream).await, None);
    assert_eq!(stream.size_hint(), (0, None));
    assert_eq!(breaker.snapshot().run, 1, "the end is one success, not two");

    let answer = || http::Response::new(Full::new(Bytes::from("yes")));
    let client = service_fn(async |()| Ok::<_, Infallible>(answer()));
    let client = BreakerLayer::new(breaker.clone()).layer(client);
    let mut body = client.oneshot(()).await.unwrap().into_body();
    let mut frame = async || poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
    while frame().await.is_some() {}
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    assert!(frame().await.is_none());
    let seen = breaker.snapshot();
    assert_eq!((seen.run, seen.in_flight), (1, 0));
}
