//! The collector over guarded streams, and over any other.

use fuseline::classify::{Collector, Dialect, Finish, Framing, StreamEnding};
use fuseline::{Completion, Incomplete, IncompleteReason, Kind, StreamError};

use super::world::{Reset, World, at_once};
use crate::support::{breaker, patient};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const CALL: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"rm\",\"arguments\":\"{\\\"path\\\":\\\"a\"}}]}}]}\n\n";
const REST: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"b\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n";

type Collected = Result<Completion, Incomplete<Reset>>;

fn collect(
    script: impl IntoIterator<Item = (u64, Option<Result<&'static str, Reset>>)>,
) -> (Collected, Vec<(Kind, u32)>) {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider = world.provider(script);
    let stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
    let collected = world.run(stream.collect());
    assert_eq!(breaker.snapshot().in_flight, 0);
    (collected, breaker.snapshot().kinds)
}

#[test]
fn a_complete_answer_is_collected_with_its_tool_calls() {
    let (collected, kinds) = collect([
        (1, Some(Ok(TEXT))),
        (2, Some(Ok(CALL))),
        (3, Some(Ok(REST))),
        (4, None),
    ]);
    let answer = collected.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("Hi", Finish::Stop));
    let calls: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|call| call.arguments.as_str())
        .collect();
    assert_eq!(calls, [r#"{"path":"ab"}"#]);
    assert_eq!(kinds, []);
}

#[test]
fn report_57_a_tool_call_that_is_cut_is_never_handed_out() {
    let begun = [(1, Some(Ok(TEXT))), (2, Some(Ok(CALL)))];
    let stall = StreamEnding::TimedOut {
        timer: fuseline::classify::Timer::Stall,
        limit: std::time::Duration::from_secs(30),
    };
    let pings = (3..60).map(|second| (second * 1_000, Some(Ok(": x\n\n"))));
    let cases: [(Vec<_>, _, _); 3] = [
        (
            vec![(3, None)],
            IncompleteReason::Ended(StreamEnding::Truncated),
            Kind::StreamTruncated,
        ),
        (
            vec![(3, Some(Err("reset")))],
            IncompleteReason::Inner("reset"),
            Kind::StreamTruncated,
        ),
        (
            pings.collect(),
            IncompleteReason::Ended(stall),
            Kind::StreamStall,
        ),
    ];
    for (rest, reason, kind) in cases {
        let (collected, kinds) = collect(begun.into_iter().chain(rest));
        let incomplete = collected.unwrap_err();
        assert_eq!((incomplete.reason, incomplete.kind), (reason, Some(kind)));
        assert_eq!(incomplete.text, "Hi");
        assert_eq!(kinds, [(kind, 1)]);
    }
}

#[test]
fn a_model_that_is_stopped_in_a_tool_call_is_no_failure_of_the_provider() {
    let length = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    let (collected, kinds) = collect([(1, Some(Ok(CALL))), (2, Some(Ok(length))), (3, None)]);
    let incomplete = collected.unwrap_err();
    assert_eq!(
        (incomplete.reason, incomplete.kind),
        (IncompleteReason::ToolCall, None)
    );
    assert_eq!(kinds, []);
}

#[test]
fn an_error_in_the_stream_is_told_by_its_kind() {
    let error = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let (collected, kinds) = collect([(1, Some(Ok(TEXT))), (2, Some(Ok(error))), (3, None)]);
    let incomplete = collected.unwrap_err();
    let expected = (
        IncompleteReason::Ended(StreamEnding::Error),
        Some(Kind::Overloaded),
    );
    assert_eq!((incomplete.reason, incomplete.kind), expected);
    assert_eq!(kinds, [(Kind::Overloaded, 1)]);
}

#[test]
fn any_stream_can_be_collected_up_to_a_limit() {
    let collector = || Collector::new(Dialect::OpenAiChat, Framing::Sse);
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let said = [TEXT, CALL, REST].concat();
    let unguarded = |end: &[(u64, Option<Result<_, Reset>>)]| {
        let mut script = at_once([said.as_bytes()]);
        script.pop();
        world.provider(script.into_iter().chain(end.iter().cloned()))
    };
    let reset = [(0, Some(Err::<bytes::Bytes, _>("reset")))];
    let answer = world.run(fuseline::collect(unguarded(&[(0, None)]), collector()));
    assert_eq!(answer.unwrap().tool_calls.len(), 1);
    let answer = world.run(fuseline::collect(unguarded(&reset), collector()));
    assert!(answer.is_ok(), "it was complete");
    let answer = world.run(fuseline::collect(
        world.provider(reset.clone()),
        collector(),
    ));
    assert_eq!(answer.unwrap_err().reason, IncompleteReason::Inner("reset"));

    let guarded = world.guard(&breaker, unguarded(&[(0, None)]), Dialect::OpenAiChat);
    let answer = world.run(fuseline::collect(guarded, collector().limit(10)));
    let incomplete: Incomplete<StreamError<Reset>> = answer.unwrap_err();
    assert_eq!(incomplete.reason, IncompleteReason::TooLarge(10));
    assert_eq!(breaker.snapshot().in_flight, 0);
}

#[test]
fn errors_speak_in_sentences() {
    let (collected, _) = collect([(1, Some(Ok(CALL))), (2, None)]);
    assert_eq!(
        collected.unwrap_err().to_string(),
        "the answer is not complete: the provider's stream ended before the answer was complete"
    );
    let error: StreamError<Reset> = StreamError::Incomplete {
        ending: StreamEnding::Error,
        kind: Kind::Overloaded,
    };
    assert_eq!(
        error.to_string(),
        "the provider's stream failed with an error of its own (overloaded)"
    );
}
