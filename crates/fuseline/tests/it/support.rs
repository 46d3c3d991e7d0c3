//! What the tests share: breakers on a clock that is moved by hand, and scripted streams.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fuseline::{Breaker, Clock, Failure, Kind, Outcome, Policy, PolicySpec, State, TripRule};
use futures_core::Stream;

/// Never opens by counting, closes after one good probe, counts who is in flight.
pub(crate) fn patient() -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 100 }]),
        successes_to_close: Some(1),
        max_in_flight: Some(1_000),
        jitter: Some(0.0),
        ..PolicySpec::default()
    }
}

pub(crate) fn breaker(spec: &PolicySpec) -> (Breaker, Clock) {
    let clock = Clock::manual();
    let policy = Policy::new(spec).unwrap();
    (Breaker::with_clock("openai", policy, clock.clone()), clock)
}

/// Opens a breaker.
pub(crate) fn open(breaker: &Breaker) {
    let failure = Failure::new(Kind::ServerError).open_now();
    breaker
        .try_acquire()
        .unwrap()
        .record(&Outcome::Failure(failure));
    assert_eq!(breaker.state(), State::Open);
}

/// A breaker whose next call is a probe.
pub(crate) fn due() -> (Breaker, Clock) {
    let (breaker, clock) = breaker(&patient());
    open(&breaker);
    clock.advance(Duration::from_secs(15));
    (breaker, clock)
}

/// Gives its items, then its end.
pub(crate) struct Items(VecDeque<Result<u32, Kind>>);

pub(crate) fn items(items: impl IntoIterator<Item = Result<u32, Kind>>) -> Items {
    Items(items.into_iter().collect())
}

impl Stream for Items {
    type Item = Result<u32, Kind>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// Judges by the kind that the call's error is.
pub(crate) fn by_kind<T>(result: &Result<T, Kind>, took: Duration) -> Outcome {
    match result {
        Ok(_) => Outcome::success(took),
        Err(kind) => Outcome::failure(*kind),
    }
}
