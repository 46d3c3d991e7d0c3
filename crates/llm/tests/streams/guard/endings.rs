//! Every ending in every dialect: before commitment and after, with and without hold-back.

use std::time::Duration;

use fuseline_llm::{Scanner, StreamEnding, StreamTimers, Timer};

use super::run::{Run, timed_out};
use super::speech::Speech;

/// How a stream ends after what it has said so far.
type End = fn(&mut Run, &Speech);

/// What happens, and what it is called after content.
type Case = (&'static str, End, fn() -> StreamEnding);

/// Endings that are failures, in each dialect alike.
const FAILURES: [Case; 9] = [
    (
        "the end without an end marker",
        |run, _| {
            run.end();
        },
        || StreamEnding::Truncated,
    ),
    (
        "a reset",
        |run, _| {
            run.broke();
        },
        || StreamEnding::Broken(fuseline_llm::Fault::Reset),
    ),
    (
        "silence",
        |run, _| {
            run.silence();
        },
        || timed_out(Timer::Stall, 30),
    ),
    (
        "an error",
        |run, speech| {
            run.at(2_000, &speech.error);
        },
        || StreamEnding::Error,
    ),
    (
        "pings and nothing else",
        |run, speech| ping(run, speech),
        || timed_out(Timer::Stall, 30),
    ),
    (
        "half an event, and the end",
        |run, speech| {
            let (half, _) = speech.text.split_at(speech.text.len() / 2);
            run.at(2_000, half).end();
        },
        || StreamEnding::Truncated,
    ),
    (
        "half an event, and a reset",
        |run, speech| {
            let (half, _) = speech.text.split_at(speech.text.len() / 2);
            run.at(2_000, half).broke();
        },
        || StreamEnding::Broken(fuseline_llm::Fault::Reset),
    ),
    (
        "half an event, and silence",
        |run, speech| {
            let (half, _) = speech.text.split_at(speech.text.len() / 2);
            run.at(2_000, half).silence();
        },
        || timed_out(Timer::Stall, 30),
    ),
    (
        "half an event, and the gateway's own end",
        |run, speech| {
            let (half, _) = speech.text.split_at(speech.text.len() / 2);
            run.at(2_000, half).stopped();
        },
        || StreamEnding::Stopped,
    ),
];

fn ping(run: &mut Run, speech: &Speech) {
    for second in 2..200 {
        run.at(second * 1_000, &speech.ping);
    }
}

fn run(speech: &Speech, hold_back: Duration) -> Run {
    Run::with(
        speech.dialect,
        speech.framing,
        StreamTimers::default(),
        hold_back,
    )
}

#[test]
fn a_stream_that_fails_before_its_first_content_leaves_no_trace() {
    for speech in Speech::all() {
        for (what, end, _) in FAILURES {
            let mut run = run(&speech, Duration::ZERO);
            run.at(500, &speech.begin);
            end(&mut run, &speech);
            // Half an event may end in a byte of content: it does not count before it is whole.
            let told = format!("{:?} {:?}: {what}", speech.dialect, speech.framing);
            assert!(run.guard.is_over() && !run.guard.is_committed(), "{told}");
            assert_eq!(run.text(), "", "{told}");
            assert_eq!(run.guard.first_token(), None, "{told}");
            assert!(run.ending() != StreamEnding::Complete, "{told}");
        }
    }
}

#[test]
fn a_stream_that_fails_after_content_ends_in_an_error_event() {
    for speech in Speech::all() {
        for (what, end, expected) in FAILURES {
            let mut run = run(&speech, Duration::ZERO);
            run.at(500, &speech.begin).at(1_000, &speech.text);
            end(&mut run, &speech);
            let told = format!("{:?} {:?}: {what}", speech.dialect, speech.framing);
            assert_eq!(run.ending(), expected(), "{told}");
            let said = [&speech.begin[..], &speech.text].concat();
            assert!(run.out.starts_with(&said), "{told}: {}", run.text());
            let rest = &run.out[said.len()..];
            if run.ending() == StreamEnding::Error {
                // An array's closing bracket stands after the error.
                assert!(
                    speech.error.starts_with(rest) && !rest.is_empty(),
                    "{told}: {}",
                    run.text()
                );
            } else {
                assert!(rest.len() > 20, "{told}: {}", run.text());
            }
            let mut more = run.out.clone();
            run.at(300_000, &speech.finish).end().broke();
            more.truncate(run.out.len());
            assert_eq!(run.out, more, "{told}: nothing comes after it");
            assert_eq!(run.ending(), expected(), "{told}: and the ending stands");
        }
    }
}

#[test]
fn a_stream_that_is_held_back_fails_without_a_trace() {
    for speech in Speech::all() {
        for (what, end, expected) in FAILURES {
            let mut run = run(&speech, Duration::from_secs(2));
            run.at(500, &speech.begin)
                .at(600, &speech.text)
                .at(1_000, &speech.text);
            end(&mut run, &speech);
            let told = format!("{:?} {:?}: {what}", speech.dialect, speech.framing);
            assert_eq!(run.ending(), expected(), "{told}");
            assert!(!run.guard.is_committed(), "{told}");
            assert_eq!(run.text(), "", "{told}");
        }
    }
}

#[test]
fn a_complete_stream_is_passed_on_whole_however_its_connection_ends() {
    for speech in Speech::all() {
        let whole = [
            &speech.begin[..],
            &speech.text,
            &speech.ping,
            &speech.finish,
        ]
        .concat();
        for hold_back in [Duration::ZERO, Duration::from_secs(5)] {
            let ends: [fn(&mut Run); 4] = [
                |run| {
                    run.end();
                },
                |run| {
                    run.broke();
                },
                |run| {
                    run.silence();
                },
                |run| {
                    run.left(1_500);
                },
            ];
            for end in ends {
                let mut run = run(&speech, hold_back);
                run.at(500, &speech.begin)
                    .at(600, &speech.text)
                    .at(700, &speech.ping);
                run.at(1_000, &speech.finish);
                assert_eq!(
                    run.ending(),
                    StreamEnding::Complete,
                    "at its end marker, not at its end"
                );
                assert!(!run.guard.is_over());
                assert_eq!(run.out, whole);
                end(&mut run);
                assert_eq!(run.ending(), StreamEnding::Complete, "{:?}", speech.dialect);
                assert_eq!(run.out, whole);
            }
        }
    }
}

#[test]
fn a_finish_without_its_delimiter_counts_where_it_can_be_whole() {
    for speech in Speech::all() {
        let cut = speech.finish.trim_ascii_end();
        let mut run = run(&speech, Duration::ZERO);
        run.at(100, &speech.begin)
            .at(200, &speech.text)
            .at(300, cut)
            .broke();
        assert_eq!(run.ending(), StreamEnding::Complete, "{:?}", speech.dialect);
        assert_eq!(run.out, [&speech.begin[..], &speech.text, cut].concat());
    }
}

#[test]
fn a_stream_that_says_nothing_is_empty() {
    for speech in Speech::all() {
        let mut nothing = run(&speech, Duration::ZERO);
        nothing.end();
        assert_eq!(
            nothing.ending(),
            StreamEnding::Empty,
            "{:?}",
            speech.dialect
        );
        let mut begun = run(&speech, Duration::ZERO);
        begun.at(1, &speech.begin).end();
        assert_eq!(
            begun.ending(),
            StreamEnding::Truncated,
            "{:?}",
            speech.dialect
        );
    }
    let mut done = Run::new(
        fuseline_llm::Dialect::OpenAiChat,
        fuseline_llm::Framing::Sse,
    );
    done.at(1, "data: [DONE]\n\n").end();
    assert_eq!(
        (done.ending(), done.text()),
        (StreamEnding::Empty, String::new())
    );
    done.guard.commit();
    assert_eq!(
        done.guard.forward().unwrap(),
        "data: [DONE]\n\n",
        "for want of another target"
    );
}

#[test]
fn who_has_nowhere_else_to_go_passes_on_what_there_is_and_that_it_failed() {
    for speech in Speech::all() {
        let mut run = run(&speech, Duration::from_secs(5));
        run.at(500, &speech.begin).at(600, &speech.text).broke();
        assert_eq!(run.text(), "");
        run.guard.commit();
        run.wait(700);
        let said = [&speech.begin[..], &speech.text].concat();
        assert!(
            run.out.len() > said.len() + 20 && run.out.starts_with(&said),
            "{}",
            run.text()
        );
    }
}

#[test]
fn garbage_is_left_out_of_text_and_fails_a_tool_call() {
    for speech in Speech::all() {
        let Some(garbage) = &speech.garbage else {
            let mut run = run(&speech, Duration::ZERO);
            run.at(1, &speech.begin)
                .at(2, &speech.text)
                .at(3, ",{oops}");
            assert_eq!(
                run.ending(),
                StreamEnding::Malformed,
                "an array cannot do without an element"
            );
            continue;
        };
        let mut text = run(&speech, Duration::ZERO);
        text.at(1, &speech.begin)
            .at(2, &speech.text)
            .at(3, garbage)
            .at(4, &speech.finish);
        let expected = [&speech.begin[..], &speech.text, &speech.finish].concat();
        assert_eq!(
            (text.out, text.guard.left_out()),
            (expected, 1),
            "{:?}",
            speech.dialect
        );
        if let Some(tool_call) = &speech.tool_call {
            let mut call = run(&speech, Duration::ZERO);
            call.at(1, &speech.begin).at(2, tool_call).at(3, garbage);
            assert_eq!(
                call.ending(),
                StreamEnding::Malformed,
                "{:?}",
                speech.dialect
            );
            let said = [&speech.begin[..], tool_call].concat();
            assert!(call.out.starts_with(&said) && call.out.len() > said.len() + 20);
        }
    }
}

#[test]
fn garbage_in_pieces_among_good_events_is_left_out_alone() {
    let speech = Speech::chat();
    let garbage = speech.garbage.as_ref().unwrap();
    let mut run = run(&speech, Duration::ZERO);
    let (first, second) = garbage.split_at(4);
    run.at(1, [&speech.text[..], first].concat());
    run.at(2, [second, &speech.text, garbage, &speech.finish].concat());
    let expected = [&speech.text[..], &speech.text, &speech.finish].concat();
    assert_eq!((run.out, run.guard.left_out()), (expected, 2));
}

#[test]
fn a_caller_who_leaves_early_proves_nothing_and_one_who_waited_in_vain_does() {
    for speech in Speech::all() {
        for (at, expected) in [
            (19_999, StreamEnding::Cancelled),
            (20_000, StreamEnding::Unserved),
        ] {
            let mut run = run(&speech, Duration::ZERO);
            run.at(500, &speech.begin).left(at);
            assert_eq!(run.ending(), expected, "{:?}", speech.dialect);
        }
        let mut served = run(&speech, Duration::ZERO);
        served
            .at(500, &speech.begin)
            .at(900, &speech.text)
            .left(25_000);
        assert_eq!(
            served.ending(),
            StreamEnding::Cancelled,
            "{:?}",
            speech.dialect
        );
        assert_eq!(
            served.out,
            [speech.begin, speech.text].concat(),
            "nobody is there to be told"
        );
    }
}

#[test]
fn a_broken_frame_is_corrupt() {
    let speech = Speech::all()
        .into_iter()
        .find(|speech| speech.framing == fuseline_llm::Framing::EventStream)
        .unwrap();
    let mut run = run(&speech, Duration::ZERO);
    let mut spoiled = speech.text.clone();
    *spoiled.last_mut().unwrap() ^= 1;
    run.at(1, &speech.text).at(2, &spoiled);
    assert_eq!(run.ending(), StreamEnding::Corrupt);
    assert!(run.out.len() > speech.text.len() + 20 && !run.text().contains("oops"));
    assert!(run.sees_broken());
}

#[test]
fn an_event_beyond_the_limit_ends_the_stream() {
    for speech in Speech::all() {
        if speech.framing == fuseline_llm::Framing::EventStream {
            continue;
        }
        let mut run = run(&speech, Duration::ZERO);
        run.at(1, &speech.begin).at(2, &speech.text);
        let before = run.out.len();
        run.at(
            3,
            if speech.framing == fuseline_llm::Framing::JsonArray {
                ",{\"a\":\""
            } else {
                "data: {\"a\":\""
            },
        );
        for _ in 0..200 {
            run.at(4, vec![b'x'; 10_000]);
        }
        assert_eq!(
            run.ending(),
            StreamEnding::Oversized,
            "{:?}",
            speech.dialect
        );
        assert!(run.out.len() < before + 600, "{:?}", speech.dialect);
        assert!(run.most_held <= Scanner::EVENT_LIMIT, "{}", run.most_held);
        assert_eq!(run.guard.held(), 0);
    }
}
