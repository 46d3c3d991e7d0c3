//! Guarded streams: the same items come out, and every ending settles once.

use std::time::Duration;

use fuseline::{Kind, Outcome, PolicySpec, State, TripRule};

use crate::support::{breaker, by_kind, due, items, next, patient};

#[tokio::test]
async fn the_same_items_come_out_and_the_end_is_a_success() {
    let (breaker, _) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    let mut stream = breaker.try_acquire().unwrap().guard(items([Ok(1), Ok(2)]));
    assert_eq!(next(&mut stream).await, Some(Ok(1)));
    assert_eq!(next(&mut stream).await, Some(Ok(2)));
    assert_eq!(breaker.snapshot().run, 1, "not before the end");
    assert_eq!(next(&mut stream).await, None);
    assert!(stream.is_settled());
    assert_eq!(
        (breaker.snapshot().run, breaker.snapshot().in_flight),
        (0, 0)
    );
}

#[tokio::test]
async fn an_error_is_a_failure_once_and_what_follows_passes_through() {
    let (breaker, _) = breaker(&patient());
    let script = [Ok(1), Err(Kind::StreamStall), Err(Kind::Network), Ok(2)];
    let guarded = breaker.with_classifier(by_kind::<u32>);
    let mut stream = guarded
        .call_stream(async { Ok(items(script)) })
        .await
        .unwrap();
    for item in script {
        assert_eq!(next(&mut stream).await, Some(item));
    }
    assert_eq!(next(&mut stream).await, None);
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamStall, 1)]);
}

#[tokio::test]
async fn an_item_can_be_a_failure_though_it_is_ok() {
    let (breaker, _) = breaker(&patient());
    let classify = |item: &Result<u32, Kind>, took: Duration| match item {
        Ok(0) => Outcome::failure(Kind::Overloaded),
        _ => Outcome::success(took),
    };
    let permit = breaker.try_acquire().unwrap();
    let mut stream = permit.guard_with(items([Ok(1), Ok(0), Ok(2)]), classify);
    while next(&mut stream).await.is_some() {}
    assert_eq!(breaker.snapshot().kinds, [(Kind::Overloaded, 1)]);
}

#[tokio::test]
async fn an_error_instead_of_a_stream_is_judged_by_the_same_classifier() {
    let (breaker, _) = breaker(&patient());
    let guarded = breaker.with_classifier(by_kind::<u32>);
    let none = async { Err::<crate::support::Items, _>(Kind::Network) };
    let error = guarded.call_stream(none).await.unwrap_err();
    assert_eq!(error.into_inner(), Some(Kind::Network));
    assert_eq!(breaker.snapshot().kinds, [(Kind::Network, 1)]);
}

#[tokio::test]
async fn a_dropped_stream_says_nothing_and_frees_the_probes_slot() {
    let (breaker, _) = due();
    let mut stream = breaker.try_acquire().unwrap().guard(items([Ok(1), Ok(2)]));
    assert_eq!(next(&mut stream).await, Some(Ok(1)));
    assert!(!breaker.is_available());
    drop(stream);
    assert!(breaker.is_available());
    assert_eq!(breaker.state(), State::HalfOpen);
}

#[tokio::test]
async fn items_keep_a_probes_lease_and_five_seconds_of_them_prove_it() {
    let (breaker, clock) = due();
    let mut stream = breaker
        .try_acquire()
        .unwrap()
        .guard(items([Ok(1), Ok(2), Ok(3)]));
    clock.advance(Duration::from_secs(58));
    assert_eq!(next(&mut stream).await, Some(Ok(1)));
    assert_eq!(breaker.state(), State::HalfOpen);
    clock.advance(Duration::from_millis(4_999));
    assert_eq!(next(&mut stream).await, Some(Ok(2)));
    assert_eq!(breaker.state(), State::HalfOpen);
    clock.advance(Duration::from_millis(1));
    assert_eq!(next(&mut stream).await, Some(Ok(3)));
    assert_eq!(breaker.state(), State::Closed, "its end is not waited for");
    assert!(stream.is_settled());
}

#[tokio::test]
async fn a_lease_that_ends_between_items_has_failed() {
    let (breaker, clock) = due();
    let mut stream = breaker.try_acquire().unwrap().guard(items([Ok(1)]));
    clock.advance(Duration::from_secs(61));
    assert_eq!(breaker.state(), State::Open);
    while next(&mut stream).await.is_some() {}
    assert_eq!((breaker.state(), breaker.snapshot().late), (State::Open, 1));
}

#[tokio::test]
async fn slow_rules_judge_a_stream_by_its_first_item() {
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Slow {
            slower_than: Duration::from_secs(2),
            threshold: 1.0,
            window: Duration::from_secs(60),
            min_calls: 1,
        }]),
        ..patient()
    };
    for (first, whole, opens) in [(1, 100, false), (3, 0, true)] {
        let (breaker, clock) = breaker(&spec);
        let mut stream = breaker.try_acquire().unwrap().guard(items([Ok(1)]));
        clock.advance(Duration::from_secs(first));
        next(&mut stream).await;
        clock.advance(Duration::from_secs(whole));
        next(&mut stream).await;
        assert_eq!(breaker.state() == State::Open, opens);
    }
}

#[tokio::test]
async fn report_158_a_failure_comes_out_once_and_an_unread_stream_is_no_success() {
    let (breaker, _) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    drop(breaker.try_acquire().unwrap().guard(items([])));
    assert_eq!(breaker.snapshot().run, 1, "unread");

    let cut = items([Ok(1), Err(Kind::Network)]);
    let mut stream = breaker.try_acquire().unwrap().guard(cut);
    let mut errors = 0;
    while let Some(item) = next(&mut stream).await {
        errors += u32::from(item.is_err());
    }
    assert_eq!((errors, breaker.snapshot().run), (1, 2));
}

#[tokio::test]
async fn a_neutral_error_settles_as_nothing_and_a_neutral_item_does_not_settle() {
    let (breaker, _) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::ServerError);
    let neutral = |_: &Result<u32, Kind>, _: Duration| Outcome::Neutral;
    let guard = |script| {
        breaker
            .try_acquire()
            .unwrap()
            .guard_with(items(script), neutral)
    };

    let mut stream = guard([Ok(1), Err(Kind::BadRequest)]);
    assert_eq!(next(&mut stream).await, Some(Ok(1)));
    assert!(!stream.is_settled());
    assert!(next(&mut stream).await.is_some_and(|item| item.is_err()));
    assert!(stream.is_settled());
    assert_eq!(breaker.snapshot().run, 1, "no success after all");

    let mut stream = guard([Ok(1), Ok(2)]);
    while next(&mut stream).await.is_some() {}
    assert_eq!(breaker.snapshot().run, 0, "its end is a success");
}

#[tokio::test]
async fn only_a_probe_is_proved_by_time() {
    let (breaker, clock) = breaker(&patient());
    let script = [Ok(1), Ok(2), Err(Kind::StreamStall)];
    let guarded = breaker.with_classifier(by_kind::<u32>);
    let stream = guarded.call_stream(async { Ok(items(script)) });
    let mut stream = stream.await.unwrap();
    while next(&mut stream).await.is_some() {
        clock.advance(Duration::from_secs(60));
    }
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamStall, 1)]);
}

#[tokio::test]
async fn a_marker_in_the_stream_is_an_end_where_the_caller_says_so() {
    let (probed, _) = due();
    let mut stream = probed.try_acquire().unwrap().guard(items([Ok(1), Ok(0)]));
    while next(&mut stream).await != Some(Ok(0)) {}
    assert_eq!(probed.state(), State::HalfOpen, "it may go on");
    stream.success();
    assert!(stream.is_settled());
    assert_eq!(probed.state(), State::Closed);
    probed.try_acquire().unwrap().failure(Kind::ServerError);
    stream.success();
    assert_eq!(probed.snapshot().run, 1, "once");
}
