//! Every ending settles once, as what it is.

use std::time::Duration;

use fuseline::classify::{Dialect, StreamEnding, StreamTimers};
use fuseline::{
    Breaker, Kind, Outcome, Policy, PolicySpec, State, StreamError, StreamTerms, Tick, TripRule,
};

use super::world::{Guarded, World, at_once};
use crate::support::{breaker, due, patient};

const BEGIN: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A breaker with a run of one failure, and a chat under it that says this.
fn chat(
    script: impl IntoIterator<Item = (u64, Option<Result<&'static str, &'static str>>)>,
) -> (Breaker, World, Guarded) {
    let (breaker, clock) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::Network);
    let world = World::new(&clock);
    let provider = world.provider(script);
    let stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
    (breaker, world, stream)
}

#[test]
fn an_answer_is_a_success_at_its_end_marker_and_is_read_on_to_its_end() {
    let script = [(1, TEXT), (2, FINISH), (2_500, DONE)].map(|(at, text)| (at, Some(Ok(text))));
    let (breaker, world, mut stream) = chat(script.into_iter().chain([(2_501, None)]));
    assert_eq!(world.next(&mut stream), Some(Ok(TEXT.into())));
    assert_eq!((stream.is_settled(), breaker.snapshot().run), (false, 1));
    assert_eq!(world.next(&mut stream), Some(Ok(FINISH.into())));
    assert_eq!((stream.is_settled(), breaker.snapshot().run), (true, 0));
    assert_eq!(world.read(&mut stream), (DONE.into(), None));
    assert_eq!(world.now(), 2_501);
}

#[test]
fn what_happens_to_the_connection_after_the_end_marker_does_not_matter() {
    for last in [Some(Err("reset")), None] {
        let (breaker, world, mut stream) =
            chat([(1, Some(Ok(TEXT))), (2, Some(Ok(FINISH))), (3, last)]);
        assert_eq!(world.read(&mut stream).1, None);
        assert_eq!(breaker.snapshot().run, 0);
    }
    let (breaker, world, mut stream) = chat([(1, Some(Ok(TEXT))), (2, Some(Ok(FINISH)))]);
    assert_eq!(
        world.read(&mut stream).1,
        None,
        "a socket left open is closed"
    );
    assert_eq!((breaker.snapshot().run, world.now()), (0, 3_002));
}

#[test]
fn the_streams_own_error_comes_out_last_as_it_is() {
    let (breaker, world, mut stream) = chat([(1, Some(Ok(TEXT))), (2, Some(Err("reset")))]);
    let expected = (TEXT.into(), Some(StreamError::Inner("reset")));
    assert_eq!(world.read(&mut stream), expected);
    let kinds = [(Kind::Network, 1), (Kind::StreamTruncated, 1)];
    assert_eq!(breaker.snapshot().kinds, kinds);
}

#[test]
fn broken_framing_and_garbage_in_a_tool_call_end_the_stream() {
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}}]}\n\n";
    let garbage = "data: {oops\n\n";
    let (breaker, world, mut stream) = chat([(1, Some(Ok(call))), (2, Some(Ok(garbage)))]);
    let (out, error) = world.read(&mut stream);
    let (ending, kind) = (StreamEnding::Malformed, Kind::StreamTruncated);
    assert_eq!(
        (out, error),
        (call.into(), Some(StreamError::Incomplete { ending, kind }))
    );
    assert_eq!(breaker.snapshot().run, 2);

    let (_, world, mut stream) = chat([
        (1, Some(Ok(garbage))),
        (2, Some(Ok(TEXT))),
        (3, Some(Ok(FINISH))),
        (4, None),
    ]);
    assert_eq!(
        world.read(&mut stream),
        ([TEXT, FINISH].concat().into(), None)
    );
    assert_eq!(stream.left_out(), 1);

    let (breaker, clock) = breaker_of_one_failure();
    let world = World::new(&clock);
    let provider = world.provider(at_once([&b"HTTP/1.1 502 Bad Gateway"[..]]));
    let mut stream = world.guard(&breaker, provider, Dialect::Bedrock);
    let (ending, kind) = (StreamEnding::Corrupt, Kind::StreamTruncated);
    assert_eq!(
        world.read(&mut stream),
        (Vec::new(), Some(StreamError::Incomplete { ending, kind }))
    );
}

fn breaker_of_one_failure() -> (Breaker, fuseline::Clock) {
    let (breaker, clock) = breaker(&patient());
    breaker.try_acquire().unwrap().failure(Kind::Network);
    (breaker, clock)
}

#[test]
fn a_stream_that_is_dropped_says_nothing() {
    let script = || [(1, Some(Ok(BEGIN))), (2, Some(Ok(TEXT)))];
    for read in 0..3 {
        let (breaker, world, mut stream) = chat(script());
        for _ in 0..read {
            assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
        }
        drop(stream);
        let seen = breaker.snapshot();
        assert_eq!((seen.run, seen.in_flight), (1, 0), "after {read}");
    }
}

#[test]
fn a_stream_that_was_waited_on_in_vain_is_a_timeout_when_it_is_dropped() {
    for (waited, expected) in [(19_999, 0), (20_000, 1)] {
        let (breaker, world, mut stream) = chat([(1, Some(Ok(BEGIN)))]);
        assert!(world.next(&mut stream).is_some());
        world.silence(&mut stream, waited);
        drop(stream);
        let timeouts = breaker
            .snapshot()
            .kinds
            .iter()
            .filter(|(kind, _)| *kind == Kind::Timeout)
            .count();
        assert_eq!(timeouts, expected, "{waited}");
    }
}

#[test]
fn who_does_not_ask_has_not_waited() {
    let (breaker, world, stream) = chat([(1, Some(Ok(BEGIN)))]);
    world.wait(50_000);
    drop(stream);
    let (again, other, mut stream) = chat([(1, Some(Ok(BEGIN)))]);
    assert!(other.next(&mut stream).is_some());
    other.wait(50_000);
    drop(stream);
    assert_eq!((breaker.snapshot().run, again.snapshot().run), (1, 1));
}

#[test]
fn a_panic_while_a_stream_is_held_says_nothing() {
    let (breaker, world, mut stream) = chat([(1, Some(Ok(BEGIN)))]);
    assert!(world.next(&mut stream).is_some());
    world.silence(&mut stream, 50_000);
    let held = std::panic::AssertUnwindSafe(move || {
        let _held = stream;
        panic!("the caller's own");
    });
    assert!(std::panic::catch_unwind(held).is_err());
    assert_eq!(
        (breaker.snapshot().run, breaker.snapshot().in_flight),
        (1, 0)
    );
}

#[test]
fn content_proves_a_probe_and_keeps_its_lease_and_pings_do_neither() {
    let ping = ": still here\n\n";
    for (said, expected) in [(TEXT, State::Closed), (ping, State::Open)] {
        let (probed, clock) = due();
        let world = World::new(&clock);
        let script = (0..16).map(|n| (15_000 + 5_000 * n, Some(Ok(said))));
        let provider = world.provider(script);
        let mut stream = world.guard(&probed, provider, Dialect::OpenAiChat);
        assert_eq!(world.next(&mut stream), Some(Ok(said.into())));
        assert_eq!(probed.state(), State::HalfOpen);
        let out = world.next(&mut stream);
        assert_eq!(stream.is_settled(), said == TEXT, "after 5 s of it");
        assert_eq!(out, Some(Ok(said.into())));
        let (_, error) = world.read(&mut stream);
        assert!(error.is_some());
        assert_eq!(probed.state(), expected);
    }
}

#[test]
fn a_probe_that_is_dropped_frees_its_slot() {
    let (probed, clock) = due();
    let world = World::new(&clock);
    let provider = world.provider([(15_001, Some(Ok(TEXT)))]);
    let mut stream = world.guard(&probed, provider, Dialect::OpenAiChat);
    assert!(world.next(&mut stream).is_some());
    assert!(!probed.is_available());
    drop(stream);
    assert_eq!(
        (probed.is_available(), probed.state()),
        (true, State::HalfOpen)
    );
}

#[test]
fn a_wait_hint_in_the_stream_reaches_the_breaker() {
    let event = "data: {\"error\":{\"code\":429,\"message\":\"Rate limit reached. Please try again in 90s.\"}}\n\n";
    let (breaker, world, mut stream) = chat([(1, Some(Ok(event))), (2, None)]);
    let (out, error) = world.read(&mut stream);
    assert_eq!(out, event.as_bytes());
    let (ending, kind) = (StreamEnding::Error, Kind::RateLimit);
    assert_eq!(error, Some(StreamError::Incomplete { ending, kind }));
    let hint = stream.verdict().and_then(|verdict| verdict.retry_after);
    assert_eq!(hint.map(|hint| hint.as_secs()), Some(90));
    assert_eq!(breaker.state(), State::Open, "for as long as that");
}

#[test]
fn a_borrowed_permit_guards_as_well_and_success_is_timed_to_the_first_content() {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let script = [
        (700, Some(Ok(BEGIN))),
        (900, Some(Ok(TEXT))),
        (5_000, Some(Ok(FINISH))),
        (5_001, None),
    ];
    let provider = world.provider(script);
    let permit = breaker.try_acquire().unwrap();
    let sleep = |_| std::future::pending::<()>();
    let mut stream = permit.guard_bytes(provider, Dialect::OpenAiChat, sleep);
    while world.next(&mut stream).is_some() {}
    assert_eq!(
        stream.first_token(),
        Some(Tick::from_millis(900).since(Tick::ZERO))
    );
    assert!(stream.is_settled());
    breaker.try_acquire().unwrap().record(&Outcome::Neutral);
    assert_eq!(breaker.snapshot().in_flight, 0);
}

#[test]
fn content_keeps_the_lease_of_a_probe_that_is_not_proved_yet() {
    let (probed, clock) = due();
    let spec = PolicySpec {
        probe_proof: Some(Duration::from_secs(3_600)),
        ..patient()
    };
    probed.reconfigure(Policy::new(&spec).unwrap());
    let world = World::new(&clock);
    let script = (1..10).map(|n| (15_000 + 25_000 * n, Some(Ok(TEXT))));
    let provider = world.provider(script.chain([(241_000, Some(Ok(FINISH)))]));
    let mut stream = world.guard(&probed, provider, Dialect::OpenAiChat);
    for _ in 1..10 {
        assert_eq!(world.next(&mut stream), Some(Ok(TEXT.into())));
        assert_eq!(probed.state(), State::HalfOpen);
    }
    assert_eq!(world.next(&mut stream), Some(Ok(FINISH.into())));
    assert_eq!(probed.state(), State::Closed);
}

#[test]
fn pings_keep_no_lease_however_patient_the_limits() {
    let (probed, clock) = due();
    let world = World::new(&clock);
    let provider = world.provider((1..5).map(|n| (15_000 + 20_000 * n, Some(Ok(": x\n\n")))));
    let hour = Duration::from_secs(3_600);
    let terms = StreamTerms::new(Dialect::OpenAiChat).timers(StreamTimers {
        first_token: hour,
        idle: hour,
        ..StreamTimers::default()
    });
    let mut stream = world.guard(&probed, provider, terms);
    for _ in 1..3 {
        assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
        assert_eq!(probed.state(), State::HalfOpen);
    }
    assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
    assert_eq!(probed.state(), State::Open, "60 s after it began");
}

#[test]
fn an_error_event_that_was_whole_goes_before_the_break_that_followed_it() {
    let event = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n";
    let (_, world, mut stream) = chat([(1, Some(Ok(event))), (2, Some(Err("reset")))]);
    let (ending, kind) = (StreamEnding::Error, Kind::Overloaded);
    let expected = StreamError::Incomplete { ending, kind };
    assert_eq!(world.read(&mut stream), (event.into(), Some(expected)));
}

#[test]
fn slow_rules_judge_an_answer_by_its_first_content() {
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Slow {
            slower_than: Duration::from_secs(2),
            threshold: 1.0,
            window: Duration::from_secs(60),
            min_calls: 1,
        }]),
        ..patient()
    };
    for (first, expected) in [(1_900, State::Closed), (2_100, State::Open)] {
        let (breaker, clock) = breaker(&spec);
        let world = World::new(&clock);
        let provider = world.provider([
            (100, Some(Ok(BEGIN))),
            (first, Some(Ok(TEXT))),
            (20_000, Some(Ok(FINISH))),
            (20_001, None),
        ]);
        let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
        assert_eq!(world.read(&mut stream).1, None);
        assert_eq!(breaker.state(), expected, "{first}");
    }
}
