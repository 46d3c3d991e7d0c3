//! The limits: which one passes, when, and what moves it.

use std::time::Duration;

use fuseline_core::Tick;
use fuseline_llm::{
    Dialect, Framing, StreamEnding, StreamGuard, StreamTimers, Timer, reasoning_first_token,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::run::{Run, timed_out};
use super::speech::Speech;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn chat(timers: StreamTimers) -> Run {
    Run::with(Dialect::OpenAiChat, Framing::Sse, timers, Duration::ZERO)
}

#[test]
fn each_limit_runs_from_its_own_beginning() {
    let speech = Speech::chat();
    let (begin, text, ping) = (&speech.begin, &speech.text, &speech.ping);
    for (what, events, timer, limit, at) in [
        (
            "nothing after the head",
            &[][..],
            Timer::FirstToken,
            60,
            60_000,
        ),
        ("one ping", &[(1_000, ping)], Timer::Idle, 30, 31_000),
        (
            "a beginning",
            &[(1_000, begin), (30_500, ping)],
            Timer::FirstToken,
            60,
            60_000,
        ),
        (
            "content",
            &[(1_000, begin), (2_000, text)],
            Timer::Stall,
            30,
            32_000,
        ),
        (
            "content twice",
            &[(2_000, text), (31_000, text)],
            Timer::Stall,
            30,
            61_000,
        ),
        (
            "content, ping",
            &[(2_000, text), (31_000, ping)],
            Timer::Stall,
            30,
            32_000,
        ),
    ] {
        let mut run = chat(StreamTimers::default());
        for (at, bytes) in events {
            run.at(*at, bytes);
        }
        assert_eq!(
            run.guard.deadline(),
            Some((Tick::from_millis(at), timer)),
            "{what}"
        );
        run.silence();
        assert_eq!(
            (run.ending(), run.now),
            (timed_out(timer, limit), Tick::from_millis(at)),
            "{what}"
        );
    }
}

#[test]
fn after_the_end_marker_only_the_end_is_waited_for() {
    let speech = Speech::chat();
    let mut run = chat(StreamTimers {
        stall: secs(5),
        ..StreamTimers::default()
    });
    run.at(1_000, &speech.text).at(2_000, &speech.finish);
    assert_eq!(
        run.guard.deadline(),
        Some((Tick::from_millis(5_000), Timer::Idle)),
        "and that not for long"
    );
    run.silence();
    assert_eq!(run.ending(), StreamEnding::Complete);
}

#[test]
fn half_an_event_is_no_content() {
    let speech = Speech::chat();
    let mut run = chat(StreamTimers::default());
    let (half, rest) = speech.text.split_at(20);
    run.at(1_000, half).at(30_000, rest);
    assert_eq!(
        run.guard.first_token(),
        Some(secs(30)),
        "it has come when its last byte is there"
    );
    assert_eq!(run.out, speech.text);
}

#[test]
fn a_total_limit_holds_where_it_is_set() {
    let speech = Speech::chat();
    let mut run = chat(StreamTimers {
        total: Some(secs(3)),
        ..StreamTimers::default()
    });
    for second in 1..10 {
        run.at(second * 1_000 - 500, &speech.text);
    }
    assert_eq!(
        (run.ending(), run.now),
        (timed_out(Timer::Total, 3), Tick::from_millis(3_000))
    );
    assert!(
        run.text().contains("was not complete for 3s (limit total)"),
        "{}",
        run.text()
    );
}

#[test]
fn the_head_is_waited_for_as_long_as_the_first_token() {
    let timers = StreamTimers::default();
    let sent = Tick::from_millis(500);
    assert_eq!(
        timers.head_deadline(sent),
        (Tick::from_millis(60_500), Timer::FirstToken)
    );
    let timers = StreamTimers {
        total: Some(secs(7)),
        ..timers
    };
    assert_eq!(
        timers.head_deadline(sent),
        (Tick::from_millis(7_500), Timer::Total)
    );
}

#[test]
fn a_callers_read_timeout_shortens_and_never_lengthens() {
    let usual = StreamTimers::default();
    for (said, first_token, stall) in [
        ("10", 10_000, 10_000),
        (" 2.5 ", 2_500, 2_500),
        ("45", 45_000, 30_000),
        ("600", 60_000, 30_000),
        ("1e300", 60_000, 30_000),
        ("0", 60_000, 30_000),
        ("-5", 60_000, 30_000),
        ("NaN", 60_000, 30_000),
        ("inf", 60_000, 30_000),
        ("not given", 60_000, 30_000),
        ("", 60_000, 30_000),
    ] {
        let timers = usual.clone().for_read_timeout(said);
        let expected = StreamTimers {
            first_token: Duration::from_millis(first_token),
            stall: Duration::from_millis(stall),
            idle: Duration::from_millis(stall),
            ..usual.clone()
        };
        assert_eq!(timers, expected, "{said:?}");
    }
}

#[test]
fn known_reasoning_models_may_think_longer() {
    for (model, seconds) in [
        ("o3", Some(300)),
        ("o3-mini-2025-01-31", Some(300)),
        ("openai/o1", Some(300)),
        ("o3-pro", Some(900)),
        ("o3-deep-research", Some(1800)),
        ("GPT-5", Some(180)),
        ("gpt-5-pro", Some(900)),
        ("deepseek-ai/DeepSeek-R1", Some(300)),
        ("deepseek-r1:70b", Some(300)),
        ("gpt-50", None),
        ("o30", None),
        ("gpt-4o", None),
        ("claude-sonnet-4", None),
        ("", None),
    ] {
        assert_eq!(reasoning_first_token(model), seconds.map(secs), "{model}");
    }
}

#[test]
fn of_a_stream_that_is_pulled_only_the_time_counts_in_which_it_is_asked_for() {
    let at = Tick::from_millis;
    let timers = StreamTimers::default();
    let guard = StreamGuard::new(
        Dialect::OpenAiChat,
        Framing::Sse,
        timers,
        Duration::ZERO,
        Tick::ZERO,
    );
    let mut guard = guard.pulled(at(5_000));
    guard.resumed(at(105_000));
    let first = Some((at(160_000), Timer::FirstToken));
    assert_eq!(guard.deadline(), first, "60 s, 5 of which had passed");

    let speech = Speech::chat();
    guard.bytes(speech.begin.clone().into(), at(106_000));
    assert_eq!(guard.forward(), Some(speech.begin.into()), "at once");
    guard.resumed(at(206_000));
    guard.bytes(speech.ping.into(), at(235_000));
    guard.resumed(at(235_000));
    let first = Some((at(260_000), Timer::FirstToken));
    assert_eq!(guard.deadline(), first);
    while guard.forward().is_some() {}
    guard.timeout(at(260_000));
    assert!(guard.ending().is_some() && guard.is_over());
    assert_eq!(guard.forward(), None, "failures are told by other means");
}

#[test]
fn whoever_leaves_has_waited_for_as_long_as_he_asked() {
    let at = Tick::from_millis;
    for (asks_for, expected) in [
        (19_999, StreamEnding::Cancelled),
        (20_000, StreamEnding::Unserved),
    ] {
        let mut run = chat(StreamTimers::default());
        run.guard.bytes(Speech::chat().begin.into(), at(1_000));
        run.guard.resumed(at(101_000));
        let left = at(100_000 + asks_for);
        run.guard.left(left);
        assert_eq!(run.ending(), expected);
    }
    let mut run = chat(StreamTimers::default());
    run.guard.bytes(Speech::chat().begin.into(), at(1_000));
    run.guard.left(at(101_000));
    assert_eq!(run.ending(), StreamEnding::Cancelled, "he did not ask");
}

#[test]
fn a_slow_caller_is_not_the_providers_fault() {
    let speech = Speech::chat();
    let timers = StreamTimers {
        min_tokens_per_second: 0.1,
        ..StreamTimers::default()
    };
    let mut run = chat(timers);
    run.at(1_000, &speech.text);
    run.guard
        .bytes(speech.text.clone().into(), Tick::from_millis(2_000));
    // It lies unread for two minutes.
    run.guard.resumed(Tick::from_millis(122_000));
    assert_eq!(
        run.guard.deadline(),
        Some((Tick::from_millis(132_000), Timer::Rate))
    );
    run.guard.resumed(Tick::from_millis(125_000));
    assert_eq!(
        run.guard.deadline(),
        Some((Tick::from_millis(132_000), Timer::Rate)),
        "asked for once"
    );
    let timers = StreamTimers::default();
    let mut run = chat(timers);
    run.at(1_000, &speech.text);
    run.guard
        .bytes(speech.text.clone().into(), Tick::from_millis(2_000));
    run.guard.resumed(Tick::from_millis(122_000));
    assert_eq!(
        run.guard.deadline(),
        Some((Tick::from_millis(152_000), Timer::Stall))
    );
}

#[test]
fn tokens_that_come_together_count_together() {
    let long = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "word ".repeat(40)
    );
    let mut run = chat(StreamTimers {
        min_tokens_per_second: 5.0,
        ..StreamTimers::default()
    });
    run.at(1_000, Speech::chat().text);
    for at in (10_000..200_000).step_by(9_000) {
        run.at(at, &long);
        assert!(
            !run.guard.is_over(),
            "fifty tokens in nine seconds, at {at}"
        );
    }
    run.silence();
    assert_eq!(run.ending(), timed_out(Timer::Rate, 10));
}

#[test]
fn absurd_rates_never_panic() {
    for rate in [f64::NAN, f64::INFINITY, f64::MAX, -1.0, f64::NEG_INFINITY] {
        let mut run = chat(StreamTimers {
            min_tokens_per_second: rate,
            ..StreamTimers::default()
        });
        run.at(1, Speech::chat().text).silence();
        assert!(run.guard.is_over());
    }
}

#[test]
fn a_probe_is_proven_by_content_and_by_nothing_else() {
    let speech = Speech::anthropic();
    let mut run = Run::new(speech.dialect, speech.framing);
    run.at(1_000, &speech.begin).at(9_000, &speech.ping);
    assert_eq!(
        (run.guard.last_content(), run.guard.delivered_for()),
        (None, None)
    );
    run.at(10_000, &speech.text)
        .at(14_000, &speech.ping)
        .at(14_500, &speech.text);
    assert_eq!(run.guard.last_content(), Some(Tick::from_millis(14_500)));
    run.at(20_000, &speech.ping);
    assert_eq!(
        run.guard.delivered_for(),
        Some(Duration::from_millis(4_500))
    );
    run.at(21_000, &speech.text);
    assert_eq!(run.guard.delivered_for(), Some(secs(11)));
    assert_eq!(run.guard.first_token(), Some(secs(10)));
}

#[derive(Clone, Copy, Debug)]
enum Say {
    Begin,
    Text,
    Ping,
    Half,
    Finish,
}

proptest! {
    /// No limit is ever moved to an earlier time, whatever comes, but the one between bytes when all is said; nor is a stream
    /// without one before it is over.
    #[test]
    fn limits_only_move_ahead(
        events in vec((0_u64..40_000, select(&[Say::Begin, Say::Text, Say::Text, Say::Ping, Say::Half, Say::Finish][..])), 0..30),
        which in 0_usize..8,
        rate in select(&[0.0, 0.5][..]),
    ) {
        let speech = Speech::all().swap_remove(which);
        let timers = StreamTimers { total: Some(secs(600)), min_tokens_per_second: rate, ..StreamTimers::default() };
        let mut run = Run::with(speech.dialect, speech.framing, timers, Duration::ZERO);
        let mut now = 0;
        let mut known: Vec<(Timer, Tick)> = Vec::new();
        for (pause, say) in events {
            now += pause;
            let bytes = match say {
                Say::Begin => &speech.begin[..],
                Say::Text => &speech.text,
                Say::Ping => &speech.ping,
                Say::Half => &speech.text[..5],
                Say::Finish => &speech.finish,
            };
            // The run itself checks that nothing passes early, and all in time.
            run.at(now, bytes);
            let Some((at, timer)) = run.guard.deadline() else { break };
            if run.guard.ending().is_some() {
                known.clear();
            }
            match known.iter_mut().find(|(name, _)| *name == timer) {
                Some((_, before)) => {
                    prop_assert!(at >= *before, "{timer:?} moved from {before:?} to {at:?}");
                    *before = at;
                }
                None => known.push((timer, at)),
            }
        }
        run.silence();
        prop_assert!(run.guard.is_over() && run.now <= Tick::from_millis(600_000));
    }
}
