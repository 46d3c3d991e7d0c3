//! How others failed, and what the library does there.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fuseline::classify::{Dialect, StreamEnding, StreamTimers, Timer};
use fuseline::{Kind, State, StreamError, StreamTerms};

use super::world::{Reset, World, at_once};
use crate::support::{breaker, patient};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

type Item = Option<Result<&'static str, Reset>>;

/// What comes out of a script, what was recorded, and when it was over.
struct Seen {
    out: String,
    error: Option<StreamError<Reset>>,
    kinds: Vec<(Kind, u32)>,
    at: u64,
}

fn run(terms: impl Into<StreamTerms>, script: impl IntoIterator<Item = (u64, Item)>) -> Seen {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider = world.provider(script);
    let mut stream = world.guard(&breaker, provider, terms);
    let (out, error) = world.read(&mut stream);
    assert_eq!(breaker.snapshot().in_flight, 0);
    Seen {
        out: String::from_utf8(out).unwrap(),
        error,
        kinds: breaker.snapshot().kinds,
        at: world.now(),
    }
}

fn whole(parts: &[&'static str]) -> Vec<(u64, Item)> {
    let parts = parts.iter().map(|part| (0, Some(Ok(*part))));
    parts.chain([(0, None)]).collect()
}

fn failed(ending: StreamEnding, kind: Kind) -> Option<StreamError<Reset>> {
    Some(StreamError::Incomplete { ending, kind })
}

#[test]
fn report_43_a_silent_stream_is_given_up() {
    let timers = StreamTimers {
        first_token: Duration::from_secs(2),
        stall: Duration::from_secs(2),
        idle: Duration::from_secs(2),
        ..StreamTimers::default()
    };
    let terms = StreamTerms::new(Dialect::OpenAiChat).timers(timers);
    let said = [
        (1_000, Some(Ok(TEXT))),
        (1_500, Some(Ok(TEXT))),
        (2_000, Some(Ok(TEXT))),
    ];
    for (said, at) in [(&said[..], 4_000), (&[], 2_000)] {
        let seen = run(terms.clone(), said.iter().copied());
        assert_eq!(seen.out, TEXT.repeat(said.len()));
        assert!(seen.error.is_some() && seen.at == at, "{}", seen.at);
        assert_eq!(seen.kinds, [(Kind::StreamStall, 1)]);
    }
}

#[test]
fn report_44_a_long_answer_is_not_beheaded() {
    let script = (1..=400).map(|second| (second * 1_000, Some(Ok(TEXT))));
    let end = [
        (401_000, Some(Ok(FINISH))),
        (401_000, Some(Ok(DONE))),
        (401_000, None),
    ];
    let seen = run(Dialect::OpenAiChat, script.chain(end));
    assert_eq!(seen.out, TEXT.repeat(400) + FINISH + DONE);
    assert_eq!((seen.error, seen.kinds, seen.at), (None, vec![], 401_000));
}

#[test]
fn report_45_pings_keep_nothing_alive() {
    for ping in [
        ": OPENROUTER PROCESSING\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "\n",
        "id: 7\n",
        "data:\n\n",
    ] {
        let pings = (3..1_000).map(|second| (second * 1_000, Some(Ok(ping))));
        let said = [(1_000, Some(Ok(TEXT))), (2_000, Some(Ok(TEXT)))];
        let seen = run(Dialect::OpenAiChat, said.into_iter().chain(pings));
        let ending = StreamEnding::TimedOut {
            timer: Timer::Stall,
            limit: Duration::from_secs(30),
        };
        assert_eq!(seen.error, failed(ending, Kind::StreamStall), "{ping:?}");
        assert_eq!(
            (seen.at, seen.kinds),
            (32_000, vec![(Kind::StreamStall, 1)])
        );
    }
}

const OVERLOADED: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";

#[test]
fn report_49_an_overload_as_the_first_event_is_an_overload() {
    let seen = run(Dialect::Anthropic, whole(&[OVERLOADED]));
    assert_eq!(seen.out, OVERLOADED);
    assert_eq!(seen.error, failed(StreamEnding::Error, Kind::Overloaded));
    assert_eq!(seen.kinds, [(Kind::Overloaded, 1)]);
}

#[test]
fn report_51_errors_after_content_open_the_breaker() {
    let (breaker, clock) = breaker(&fuseline::PolicySpec {
        trip: Some(vec![fuseline::TripRule::Consecutive { failures: 5 }]),
        ..patient()
    });
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    let said = [delta, delta, delta, OVERLOADED, delta].concat();
    for failures in 1..=5 {
        assert_eq!(breaker.state() == State::Open, failures > 5);
        let world = World::new(&clock);
        let provider = world.provider(at_once([said.as_bytes()]));
        let mut stream = world.guard(&breaker, provider, Dialect::Anthropic);
        let (out, error) = world.read(&mut stream);
        assert_eq!(
            out,
            said.as_bytes()[..said.len() - delta.len()],
            "nothing after the error"
        );
        assert_eq!(error, failed(StreamEnding::Error, Kind::Overloaded));
    }
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn report_53_a_cut_is_no_tidy_end() {
    let events = (0..40).map(|at| (at, Some(Ok(TEXT))));
    let seen = run(
        Dialect::OpenAiChat,
        events.clone().chain([(41, Some(Err("reset")))]),
    );
    assert_eq!(seen.out, TEXT.repeat(40));
    assert_eq!(seen.error, Some(StreamError::Inner("reset")));
    assert_eq!(seen.kinds, [(Kind::StreamTruncated, 1)]);

    let seen = run(Dialect::OpenAiChat, events.chain([(41, None)]));
    assert_eq!(seen.out, TEXT.repeat(40), "nothing is made up");
    assert_eq!(
        seen.error,
        failed(StreamEnding::Truncated, Kind::StreamTruncated)
    );
    assert_eq!(seen.kinds, [(Kind::StreamTruncated, 1)]);
}

#[test]
fn report_56_an_end_without_a_marker_is_a_cut() {
    let cut = failed(StreamEnding::Truncated, Kind::StreamTruncated);
    let empty = failed(StreamEnding::Empty, Kind::EmptyResponse);
    let cases: [(&[&'static str], _); 4] = [
        (&[TEXT], cut),
        (&[TEXT, FINISH], None),
        (&[TEXT, DONE], None),
        (&[], empty),
    ];
    for (parts, expected) in cases {
        let seen = run(Dialect::OpenAiChat, whole(parts));
        assert_eq!(seen.out, parts.concat());
        assert_eq!(seen.kinds.len(), usize::from(expected.is_some()));
        assert_eq!(seen.error, expected);
    }
}

#[test]
fn report_57_nothing_closes_a_tool_call_that_was_cut() {
    let chat = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"rm\",\"arguments\":\"{\\\"path\\\":\\\"a\"}}]}}]}\n\n";
    let responses = "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"rm\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"path\\\":\\\"a\"}\n\n";
    let anthropic = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"rm\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{\\\"path\\\":\\\"a\"}}\n\n";
    for (dialect, said) in [
        (Dialect::OpenAiChat, chat),
        (Dialect::OpenAiResponses, responses),
        (Dialect::Anthropic, anthropic),
    ] {
        for end in [None, Some(Err("reset"))] {
            let seen = run(dialect, [(0, Some(Ok(said))), (0, end)]);
            assert_eq!(seen.out, said, "{dialect:?}");
            assert!(seen.error.is_some(), "{dialect:?}");
            assert_eq!(seen.kinds, [(Kind::StreamTruncated, 1)]);
        }
    }
}

#[test]
fn report_58_an_error_without_choices_is_an_error() {
    let error =
        "data: {\"id\":\"x\",\"choices\":[],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    for (parts, passed) in [(&[error, DONE][..], 1), (&[TEXT, TEXT, finish, DONE], 3)] {
        let seen = run(Dialect::OpenAiChat, whole(parts));
        assert_eq!(seen.out, parts[..passed].concat());
        assert_eq!(seen.error, failed(StreamEnding::Error, Kind::ServerError));
        assert_eq!(seen.kinds, [(Kind::ServerError, 1)]);
    }
}

#[test]
fn report_59_a_chunk_of_usage_passes_and_is_counted() {
    for usage in [
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: {\"choices\":[],\"x_groq\":{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}}\n\n",
        "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
    ] {
        let (breaker, clock) = breaker(&patient());
        let world = World::new(&clock);
        let said = [TEXT, FINISH, usage, DONE].concat();
        let provider = world.provider(at_once([said.as_bytes()]));
        let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
        assert_eq!(world.read(&mut stream), (said.clone().into_bytes(), None));
        let usage = stream.usage();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (Some(3), Some(2))
        );
    }
}

#[test]
fn report_62_letters_cut_anywhere_come_out_whole() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"你好🙂\"}}]}\n\n".to_owned() + DONE;
    for size in 1..said.len() {
        let (breaker, clock) = breaker(&patient());
        let world = World::new(&clock);
        let provider = world.provider(at_once(said.as_bytes().chunks(size)));
        let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
        assert_eq!(world.read(&mut stream), (said.clone().into_bytes(), None));
    }
}

#[test]
fn report_65_an_event_that_never_ends_is_given_up() {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let line = [b'x'; 64 << 10];
    let chunks = [&b"data: "[..]]
        .into_iter()
        .chain(std::iter::repeat_n(&line[..], 1_000));
    let mut stream = world.guard(
        &breaker,
        world.provider(at_once(chunks)),
        Dialect::OpenAiChat,
    );
    let (out, error) = world.read(&mut stream);
    assert_eq!(out.len(), 0);
    assert_eq!(
        error,
        failed(StreamEnding::Oversized, Kind::StreamTruncated)
    );
    assert_eq!(breaker.snapshot().kinds, [(Kind::StreamTruncated, 1)]);
}

#[test]
fn report_67_a_stream_is_read_no_faster_than_its_reader() {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let event = TEXT.repeat(1_000);
    let provider = world.provider((0..100).map(|_| (0, Some(Ok(event.clone())))));
    let left = provider.left();
    let mut stream = world.guard(&breaker, provider, Dialect::OpenAiChat);
    for read in 1..=10 {
        assert!(world.next(&mut stream).is_some_and(|item| item.is_ok()));
        assert_eq!(left.load(Relaxed), 100 - read);
    }
}

#[test]
fn report_68_a_drip_is_too_slow_where_a_rate_is_asked_for() {
    for (rate, is_given_up) in [(2.0, true), (0.0, false)] {
        let drips = (0..20).map(|n| (300 + n * 4_000, Some(Ok(TEXT))));
        let timers = StreamTimers {
            min_tokens_per_second: rate,
            ..StreamTimers::default()
        };
        let terms = StreamTerms::new(Dialect::OpenAiChat).timers(timers);
        let seen = run(
            terms,
            drips.chain([(80_000, Some(Ok(DONE))), (80_000, None)]),
        );
        assert_eq!(seen.error.is_some(), is_given_up);
        let expected = if is_given_up { 10_300 } else { 80_000 };
        assert_eq!(seen.at, expected);
    }
}

#[test]
fn report_69_the_responses_dialect_has_its_own_ends() {
    let delta = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
    for (end, expected) in [
        ("data: {\"type\":\"response.completed\"}\n\n", None),
        (
            "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n",
            None,
        ),
        (
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"x\"}}}\n\n",
            failed(StreamEnding::Error, Kind::ServerError),
        ),
        ("", failed(StreamEnding::Truncated, Kind::StreamTruncated)),
    ] {
        let seen = run(Dialect::OpenAiResponses, whole(&[delta, end]));
        assert_eq!(seen.out, [delta, end].concat());
        assert_eq!(seen.error, expected, "{end}");
    }
    let seen = run(Dialect::OpenAiResponses, whole(&[delta, DONE]));
    assert_eq!(
        seen.error,
        failed(StreamEnding::Truncated, Kind::StreamTruncated)
    );
    assert_eq!(seen.out, delta, "a marker that is none does not go out");
}
