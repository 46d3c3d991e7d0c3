//! Limits: each passes at its time though nothing wakes the stream but its own timer, and the caller's time is his own.

use std::future::pending;
use std::time::Duration;

use fuseline::classify::{Dialect, StreamEnding, StreamTimers, Timer};
use fuseline::{Kind, State, StreamError, StreamTerms};

use super::world::{Reset, World};
use crate::support::{breaker, due, patient};

const BEGIN: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn timed_out(timer: Timer, seconds: u64, kind: Kind) -> Option<StreamError<Reset>> {
    let limit = Duration::from_secs(seconds);
    let ending = StreamEnding::TimedOut { timer, limit };
    Some(StreamError::Incomplete { ending, kind })
}

#[test]
fn a_timer_wakes_the_stream_when_a_limit_passes() {
    let total = StreamTimers {
        total: Some(Duration::from_secs(9)),
        ..StreamTimers::default()
    };
    let none: &[(u64, &str)] = &[];
    for (timers, said, at, timer, seconds) in [
        (StreamTimers::default(), none, 60_000, Timer::FirstToken, 60),
        (
            StreamTimers::default(),
            &[(1, BEGIN)],
            30_001,
            Timer::Idle,
            30,
        ),
        (
            StreamTimers::default(),
            &[(1, TEXT), (10, ": x\n\n")],
            30_001,
            Timer::Stall,
            30,
        ),
        (
            StreamTimers::default(),
            &[(50_000, TEXT), (70_000, TEXT)],
            100_000,
            Timer::Stall,
            30,
        ),
        (total, &[(1, TEXT)], 9_000, Timer::Total, 9),
    ] {
        let (breaker, clock) = breaker(&patient());
        let world = World::new(&clock);
        let provider = world.provider(said.iter().map(|(at, text)| (*at, Some(Ok(*text)))));
        let terms = StreamTerms::new(Dialect::OpenAiChat).timers(timers);
        let mut stream = world.guard(&breaker, provider, terms);
        let (_, error) = world.read(&mut stream);
        let kind = match timer {
            Timer::Total => Kind::Timeout,
            _ => Kind::StreamStall,
        };
        assert_eq!(error, timed_out(timer, seconds, kind));
        assert_eq!(world.now(), at, "{timer:?}");
        assert_eq!(breaker.snapshot().kinds, [(kind, 1)]);
    }
}

#[test]
fn without_a_timer_limits_are_looked_at_when_the_stream_is_polled() {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider =
        world.provider([(1, TEXT), (45_000, TEXT)].map(|(at, text)| (at, Some(Ok(text)))));
    let permit = breaker.try_acquire_owned().unwrap();
    let mut stream = permit.guard_bytes(provider, Dialect::OpenAiChat, |_| pending::<()>());
    let (out, error) = world.read(&mut stream);
    assert_eq!(out, TEXT.as_bytes(), "what comes too late comes too late");
    assert_eq!(error, timed_out(Timer::Stall, 30, Kind::StreamStall));
    assert_eq!(world.now(), 45_000);
}

#[test]
fn the_time_in_which_nobody_asks_is_not_the_providers() {
    let script = [(1, BEGIN), (2, TEXT), (3, TEXT), (4, FINISH)];
    let script = script.map(|(at, text)| (at, Some(Ok(text))));
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider = world.provider(script.into_iter().chain([(5, None)]));
    let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
    for _ in 0..4 {
        world.wait(300_000);
        assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
    }
    world.wait(300_000);
    assert_eq!(world.next(&mut stream), None);
    assert_eq!(stream.ending(), Some(StreamEnding::Complete));
    assert_eq!(breaker.snapshot().run, 0);
}

#[test]
fn a_caller_who_comes_late_waits_for_as_long_as_another() {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider = world.provider([(1, Some(Ok(BEGIN)))]);
    let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
    world.wait(100_000);
    assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
    world.wait(100_000);
    let (_, error) = world.read(&mut stream);
    assert_eq!(error, timed_out(Timer::Idle, 30, Kind::StreamStall));
    assert_eq!(world.now(), 230_000);
}

#[test]
fn a_silent_probe_fails_at_its_limit() {
    let (probed, clock) = due();
    let world = World::new(&clock);
    let provider = world.provider([(15_000, Some(Ok(TEXT)))]);
    let mut stream = world.guard(&probed, provider, Dialect::OpenAiChat);
    let (_, error) = world.read(&mut stream);
    assert_eq!(error, timed_out(Timer::Stall, 30, Kind::StreamStall));
    assert_eq!((probed.state(), world.now()), (State::Open, 45_000));
}

#[tokio::test(start_paused = true)]
async fn tokios_timer_wakes_a_stream() {
    use std::future::poll_fn;
    use std::pin::Pin;

    use futures_core::Stream as _;

    let (breaker, clock) = breaker(&patient());
    let provider = World::new(&clock).provider([(1_000_000, Some(Ok(TEXT)))]);
    let permit = breaker.try_acquire_owned().unwrap();
    let by = clock.clone();
    let sleep = move |length| {
        let (clock, sleep) = (by.clone(), tokio::time::sleep(length));
        async move {
            sleep.await;
            clock.advance(length);
        }
    };
    let mut stream = permit.guard_bytes(provider, Dialect::OpenAiChat, sleep);
    let item = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await;
    assert_eq!(
        item.and_then(Result::err),
        timed_out(Timer::FirstToken, 60, Kind::StreamStall)
    );
    assert_eq!(clock.now().as_millis(), 60_000);
}
