//! The collector: one answer in every dialect, whole in every division into chunks, and never half.

mod answers;
mod odd;

use fuseline_llm::{
    Collector, Completion, Dialect, Finish, Framing, Incomplete, IncompleteReason, StreamEnding,
};

use proptest::prelude::*;

use self::answers::Spoken;
use crate::guard::identity::{parts, run};
use crate::support::{Recorded, divide};

fn collect(of: (Dialect, Framing), chunks: &[&[u8]]) -> Result<Completion, Incomplete> {
    let mut collector = Collector::new(of.0, of.1);
    for chunk in chunks {
        collector.bytes(chunk);
    }
    collector.end()
}

fn ended(ending: StreamEnding) -> IncompleteReason {
    IncompleteReason::Ended(ending)
}

#[test]
fn one_answer_in_every_dialect() {
    for spoken in Spoken::all() {
        let answer = collect(spoken.of, &[&spoken.bytes()]).unwrap();
        let seen = (answer.text.as_str(), answer.reasoning.as_str());
        assert_eq!(seen, ("你好🙂", spoken.reasoning), "{}", spoken.name);
        assert_eq!(answer.finish, Finish::Stop, "{}", spoken.name);
        let calls: Vec<_> = answer
            .tool_calls
            .iter()
            .map(|call| {
                let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
                (call.id.as_str(), call.name.as_str(), arguments.to_string())
            })
            .collect();
        let expected: Vec<_> = spoken
            .calls
            .iter()
            .map(|(id, name, arguments)| (*id, *name, (*arguments).to_owned()))
            .collect();
        assert_eq!(calls, expected, "{}", spoken.name);
        let tokens = (answer.usage.input_tokens, answer.usage.output_tokens);
        assert_eq!(tokens, spoken.tokens, "{}", spoken.name);
    }
}

#[test]
fn report_62_letters_cut_by_a_boundary_come_out_whole() {
    for spoken in Spoken::all() {
        let stream = spoken.bytes();
        let whole = collect(spoken.of, &[&stream]);
        assert!(!whole.as_ref().unwrap().text.contains('\u{fffd}'));
        let single: Vec<_> = stream.chunks(1).collect();
        assert_eq!(collect(spoken.of, &single), whole, "{}", spoken.name);
        for cut in 0..stream.len() {
            let divided = collect(spoken.of, &divide(&stream, &[cut]));
            assert_eq!(divided, whole, "{} cut at {cut}", spoken.name);
        }
    }
}

#[test]
fn report_57_a_stream_that_dies_anywhere_gives_no_answer_and_no_tool_call() {
    for spoken in Spoken::all() {
        let events = spoken.events();
        let whole = collect(spoken.of, &[&spoken.bytes()]).unwrap();
        let stream = spoken.bytes();
        let mut told = 0;
        for end in 0..stream.len() {
            match collect(spoken.of, &[&stream[..end]]) {
                // Behind the finish only the count of tokens is missing.
                Ok(answer) => {
                    assert_eq!(answer.text, whole.text, "{} cut at {end}", spoken.name);
                    assert_eq!(answer.tool_calls, whole.tool_calls, "{}", spoken.name);
                }
                Err(incomplete) => {
                    told += 1;
                    assert!(whole.text.starts_with(&incomplete.text), "{}", spoken.name);
                    let expected = [StreamEnding::Truncated, StreamEnding::Empty].map(ended);
                    assert!(expected.contains(&incomplete.reason), "{}", spoken.name);
                }
            }
        }
        let before_the_finish: usize = events[..events.len() - 3].iter().map(Vec::len).sum();
        assert!(told > before_the_finish, "{}: {told}", spoken.name);
    }
}

#[test]
fn every_recorded_stream_gives_an_answer_or_says_why_not() {
    let mut whole = 0;
    for recorded in Recorded::all() {
        let of = (recorded.dialect(), recorded.framing());
        let chunks = recorded.chunks();
        let chunks: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
        let collected = collect(of, &chunks);
        let is_cut = recorded.id == "net-stream-client-abort";
        match (recorded.kind.as_str(), &collected) {
            ("success", Ok(answer)) => {
                let is_spoken = !answer.text.is_empty() || !answer.tool_calls.is_empty();
                assert!(is_spoken, "{}", recorded.id);
                whole += 1;
            }
            ("content_policy", Ok(answer)) => {
                let is_policy = matches!(answer.finish, Finish::Policy(_));
                assert!(is_policy, "{}", recorded.id);
            }
            ("success", Err(_)) => assert!(is_cut, "{}: {collected:?}", recorded.id),
            ("stream_truncated" | "stream_stall", Err(incomplete)) => {
                let expected = [StreamEnding::Truncated, StreamEnding::Empty].map(ended);
                assert!(expected.contains(&incomplete.reason), "{}", recorded.id);
            }
            ("empty_response", Err(incomplete)) if recorded.id.starts_with("openai") => {
                assert_eq!(incomplete.reason, ended(StreamEnding::Empty));
            }
            (_, Err(incomplete)) => {
                assert_eq!(
                    incomplete.reason,
                    ended(StreamEnding::Error),
                    "{}",
                    recorded.id
                );
            }
            (kind, Ok(answer)) => panic!("{}, {kind}: {answer:?}", recorded.id),
        }
    }
    assert_eq!(whole, 11);
}

#[test]
fn what_is_collected_is_bounded() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n";
    let mut collector = Collector::new(Dialect::OpenAiChat, Framing::Sse).limit(100);
    for _ in 0..10 {
        collector.bytes(event.as_bytes());
        assert!(!collector.has_failed(), "100 bytes fit");
    }
    for _ in 0..1_000 {
        collector.bytes(event.as_bytes());
    }
    assert!(collector.has_failed());
    let incomplete = collector.end::<std::convert::Infallible>().unwrap_err();
    assert_eq!(incomplete.reason, IncompleteReason::TooLarge(100));
    assert_eq!(incomplete.text.len(), 110, "nothing after that");
    assert!(incomplete.to_string().contains("100 bytes"), "{incomplete}");
}

#[test]
fn report_65_an_event_that_never_ends_is_given_up() {
    let mut collector = Collector::new(Dialect::OpenAiChat, Framing::Sse);
    collector.bytes(b"data: ");
    let mut read = 0;
    while !collector.has_failed() {
        collector.bytes(&[b'x'; 10_000]);
        read += 10_000;
    }
    assert!(read <= (1 << 20) + 10_000, "{read}");
    let incomplete = collector.end::<std::convert::Infallible>().unwrap_err();
    assert_eq!(incomplete.reason, ended(StreamEnding::Oversized));
}

#[test]
fn what_the_model_wrote_stays_out_of_debug_texts() {
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"geheim\"}}]}\n\n";
    let mut collector = Collector::new(Dialect::OpenAiChat, Framing::Sse);
    collector.bytes(event);
    assert!(!format!("{collector:?}").contains("geheim"));
    let incomplete = collector.end::<std::convert::Infallible>().unwrap_err();
    assert_eq!(incomplete.text, "geheim");
    assert!(!format!("{incomplete:?} {incomplete}").contains("geheim"));
}

proptest! {
    /// Whatever is said: the collector has an answer exactly where the guard calls the stream complete, and else the
    /// guard's reason, in every division.
    #[test]
    fn the_collector_and_the_guard_are_of_one_mind(
        parts in prop::collection::vec(parts(), 0..12),
        which in 0_usize..9,
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let of = Spoken::all()[which].of;
        let stream = parts.concat();
        let ending = run(of, std::time::Duration::ZERO, &[&stream]).ending();
        let whole = collect(of, &[&stream]);
        match &whole {
            Ok(_) => prop_assert_eq!(ending, StreamEnding::Complete),
            Err(incomplete) => match incomplete.reason {
                IncompleteReason::ToolCall => prop_assert_eq!(ending, StreamEnding::Complete),
                ref reason => prop_assert_eq!(reason, &ended(ending)),
            },
        }
        prop_assert_eq!(collect(of, &divide(&stream, &cuts)), whole);
    }
}
