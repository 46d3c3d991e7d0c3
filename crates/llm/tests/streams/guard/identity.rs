//! The bytes that go on are those that came, in every division into chunks; what is kept is bounded.

use std::time::Duration;

use fuseline_core::Kind;
use fuseline_llm::{
    Answer, Body, Classifier, Dialect, Framing, Head, Operation, StreamEnding, StreamTimers,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::run::Run;
use super::speech::Speech;
use crate::support::{Recorded, divide};

const HOLD_BACKS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(3)];

/// All of a stream, a millisecond a chunk, and its end.
pub(crate) fn run(
    (dialect, framing): (Dialect, Framing),
    hold_back: Duration,
    chunks: &[&[u8]],
) -> Run {
    let mut run = Run::with(dialect, framing, StreamTimers::default(), hold_back);
    for (at, chunk) in (1..).zip(chunks) {
        run.at(at, chunk);
    }
    run.end();
    run
}

/// That a division gives what the whole gives, and both what came.
fn check(of: (Dialect, Framing), stream: &[u8], chunks: &[&[u8]]) {
    let whole = run(of, Duration::ZERO, &[stream]);
    for hold_back in HOLD_BACKS {
        let divided = run(of, hold_back, chunks);
        let told = || format!("{of:?}, {hold_back:?}: {}", divided.text());
        assert_eq!(divided.ending(), whole.ending(), "{}", told());
        if divided.guard.is_committed() {
            assert_eq!(divided.out, whole.out, "{}", told());
        } else {
            assert!(divided.out.is_empty(), "{}", told());
        }
        if divided.ending() == StreamEnding::Complete {
            assert!(divided.guard.is_committed());
            assert_eq!(divided.out, stream, "{}", told());
        }
        assert!(divided.most_held <= stream.len() + 512);
    }
}

#[test]
fn recorded_streams_cut_anywhere() {
    for recorded in Recorded::all() {
        let (of, stream) = ((recorded.dialect(), recorded.framing()), recorded.bytes());
        for cut in 0..stream.len() {
            check(of, &stream, &divide(&stream, &[cut]));
        }
        for size in [1, 2, 3, 7, 64] {
            check(of, &stream, &stream.chunks(size).collect::<Vec<_>>());
        }
    }
}

#[test]
fn recorded_streams_with_an_event_of_garbage_anywhere_lose_that_and_nothing_else() {
    let mut left_out = 0;
    for recorded in Recorded::all() {
        let (of, chunks) = ((recorded.dialect(), recorded.framing()), recorded.chunks());
        let speech = Speech::all()
            .into_iter()
            .find(|speech| speech.framing == of.1);
        let Some(garbage) = speech.and_then(|speech| speech.garbage) else {
            continue;
        };
        let stream = recorded.bytes();
        let expected = run(of, Duration::ZERO, &[&stream]);
        for place in 0..=chunks.len() {
            let (before, after) = chunks.split_at(place);
            let spoiled = [&before.concat()[..], &garbage, &after.concat()].concat();
            for size in [1, 10, spoiled.len()] {
                let pieces: Vec<_> = spoiled.chunks(size).collect();
                let run = run(of, Duration::ZERO, &pieces);
                if run.ending() == StreamEnding::Malformed {
                    continue;
                }
                assert_eq!(run.out, expected.out, "{} at {place}", recorded.id);
                left_out += run.guard.left_out();
            }
        }
    }
    assert!(left_out > 300, "{left_out}");
}

#[test]
fn the_classifier_judges_every_recorded_stream_by_what_the_guard_saw() {
    for recorded in Recorded::all() {
        let mut run = Run::new(recorded.dialect(), recorded.framing());
        for (at, chunk) in (1..).zip(recorded.chunks()) {
            run.at(at * 100, chunk);
        }
        match recorded.transport.as_str() {
            "eof" => run.end(),
            "reset" => run.broke(),
            "idle_timeout" => run.silence(),
            "client_abort" => run.left(10_000),
            other => panic!("{other} is no ending"),
        };
        let headers: &[(&str, &str)] = &[];
        let transcript = run.guard.transcript();
        let answer = Answer {
            provider: recorded.id.split('-').next().unwrap(),
            operation: Operation::Create,
            head: Some(Head::new(200, &headers)),
            body: Body::Stream(&transcript),
            ending: run.ending().for_classifier(),
        };
        let verdict = Classifier::builtin().classify(&answer, std::time::SystemTime::UNIX_EPOCH);
        let kind = verdict.kind.map_or("success", Kind::as_str);
        let expected = match recorded.id.as_str() {
            // He is neither a success nor a failure.
            "net-stream-client-abort" => "cancelled",
            _ => &recorded.kind,
        };
        assert_eq!(kind, expected, "{}: {:?}", recorded.id, run.ending());
    }
}

#[test]
fn slices_of_a_chunk_go_on_uncopied() {
    let speech = Speech::chat();
    let mut run = Run::new(speech.dialect, speech.framing);
    run.at(1, &speech.text);
    let (half, rest) = speech.text.split_at(20);
    let chunk = bytes::Bytes::from([&speech.text[..], &speech.text, half].concat());
    run.guard.bytes(chunk.clone(), run.now);
    let first = run.guard.forward().unwrap();
    assert_eq!(
        (first.as_ptr(), first.len()),
        (chunk.as_ptr(), 2 * speech.text.len()),
        "as one"
    );
    assert_eq!(run.guard.forward(), None);
    run.guard
        .bytes(bytes::Bytes::copy_from_slice(rest), run.now);
    run.wait(2);
    assert_eq!(run.out, [&speech.text[..], &speech.text].concat());
}

#[test]
fn what_is_held_back_is_bounded() {
    for speech in Speech::all() {
        let hold_back = Duration::from_secs(3_600);
        let mut run = Run::with(
            speech.dialect,
            speech.framing,
            StreamTimers::default(),
            hold_back,
        );
        run.at(1, &speech.begin);
        let mut came = speech.begin.len();
        while !run.guard.is_committed() {
            run.at(2, &speech.text);
            came += speech.text.len();
            assert!(
                came <= (64 << 10) + speech.text.len(),
                "{:?}",
                speech.dialect
            );
        }
        assert!(came > 64 << 10 && run.out.len() == came);
        assert!(run.most_held <= (64 << 10) + speech.text.len());
    }
}

#[test]
fn a_beginning_larger_than_what_may_be_held_is_passed_on() {
    let mut run = Run::new(Dialect::OpenAiResponses, Framing::Sse);
    let echoed = format!(
        "data: {{\"type\":\"response.created\",\"instructions\":\"{}\"}}\n\n",
        "x".repeat(70_000)
    );
    run.at(1, &echoed);
    assert!(run.guard.is_committed() && run.out == echoed.as_bytes());
    run.end();
    assert!(run.text().contains("stream_truncated"));
}

/// What a stream is made of: everything that matters, whole or not.
pub(crate) fn parts() -> impl Strategy<Value = Vec<u8>> {
    let pick = (0_usize..8, 0_usize..9, any::<prop::sample::Index>());
    pick.prop_map(|(which, part, cut)| {
        let speech = Speech::all().swap_remove(which);
        match part {
            0 => speech.begin,
            1..=3 => speech.text,
            4 => speech.ping,
            5 => speech.finish,
            6 => speech.error,
            7 => speech.tool_call.or(speech.garbage).unwrap_or_default(),
            _ => speech.text[..cut.index(speech.text.len())].to_vec(),
        }
    })
}

proptest! {
    /// Whatever is said in whatever language: in order, nothing added but one error event, nothing out of what has
    /// failed before commitment, and the same in every division.
    #[test]
    fn any_stream_in_any_division(
        parts in vec(parts(), 0..12),
        which in 0_usize..8,
        cuts in vec(any::<usize>(), 0..8),
        hold_back in 0_u64..8,
    ) {
        let speech = Speech::all().swap_remove(which);
        let of = (speech.dialect, speech.framing);
        let stream = parts.concat();
        let whole = run(of, Duration::ZERO, &[&stream]);
        let divided = run(of, Duration::from_millis(hold_back), &divide(&stream, &cuts));
        prop_assert_eq!(divided.ending(), whole.ending());
        prop_assert_eq!(divided.guard.left_out(), whole.guard.left_out());
        prop_assert_eq!(divided.guard.transcript().is_complete(), whole.guard.transcript().is_complete());
        if divided.guard.is_committed() {
            prop_assert!(whole.guard.is_committed());
            let apart = |run: &Run| run.out.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect::<Vec<_>>();
            prop_assert_eq!(apart(&divided), apart(&whole));
        } else {
            prop_assert!(divided.out.is_empty());
        }
        // Our own event is short.
        prop_assert!(divided.most_held <= stream.len() + 512);
        if whole.ending() == StreamEnding::Complete && whole.guard.left_out() == 0 {
            prop_assert!(stream.starts_with(&whole.out));
        }
    }
}
