//! How others failed, as far as one stream's guard can prove that it does not.

use std::time::Duration;

use fuseline_core::{Kind, Tick};
use fuseline_llm::{
    Answer, Body, Classifier, Dialect, Fault, Framing, Head, Operation, Scanner, StreamEnding,
    StreamTimers, Timer, reasoning_first_token,
};

use super::run::{Run, timed_out};
use super::speech::Speech;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn with(speech: &Speech, timers: StreamTimers) -> Run {
    Run::with(speech.dialect, speech.framing, timers, Duration::ZERO)
}

fn kind(run: &Run) -> Option<Kind> {
    let headers: &[(&str, &str)] = &[];
    let transcript = run.guard.transcript();
    let answer = Answer {
        provider: "",
        operation: Operation::Create,
        head: Some(Head::new(200, &headers)),
        body: Body::Stream(&transcript),
        ending: run.ending().for_classifier(),
    };
    let verdict = Classifier::builtin().classify(&answer, std::time::SystemTime::UNIX_EPOCH);
    verdict.kind
}

#[test]
fn report_43_a_stream_that_falls_silent_is_ended() {
    let timers = StreamTimers {
        first_token: secs(2),
        stall: secs(2),
        idle: secs(2),
        ..StreamTimers::default()
    };
    for speech in Speech::all() {
        let mut after_content = with(&speech, timers.clone());
        after_content
            .at(1_000, &speech.begin)
            .at(1_500, &speech.text)
            .at(1_600, &speech.text)
            .at(1_700, &speech.text);
        let said = after_content.out.len();
        after_content.silence();
        assert_eq!(
            (after_content.ending(), after_content.now),
            (timed_out(Timer::Stall, 2), Tick::from_millis(3_700))
        );
        assert!(after_content.out.len() > said);
        assert_eq!(kind(&after_content), Some(Kind::StreamStall));

        let mut after_head = with(&speech, timers.clone());
        after_head.silence();
        assert_eq!(
            (after_head.ending(), after_head.now),
            (timed_out(Timer::FirstToken, 2), Tick::from_millis(2_000))
        );
        assert!(!after_head.guard.is_committed());
        assert_eq!(
            timers.head_deadline(Tick::ZERO),
            (Tick::from_millis(2_000), Timer::FirstToken)
        );
    }
}

#[test]
fn report_44_a_long_healthy_answer_is_not_beheaded() {
    for speech in Speech::all() {
        let mut run = with(
            &speech,
            StreamTimers {
                idle: secs(2),
                ..StreamTimers::default()
            },
        );
        run.at(500, &speech.begin);
        for second in 1..=400 {
            run.at(second * 1_000, &speech.text);
        }
        run.at(401_000, &speech.finish).end();
        assert_eq!(run.ending(), StreamEnding::Complete);
        assert_eq!(
            run.out.len(),
            speech.begin.len() + 400 * speech.text.len() + speech.finish.len()
        );
        assert_eq!(kind(&run), None);
    }
}

#[test]
fn report_45_pings_do_not_keep_a_dead_generation_alive() {
    let timers = StreamTimers {
        idle: secs(5),
        stall: secs(10),
        ..StreamTimers::default()
    };
    let of_sse = [
        ": OPENROUTER PROCESSING\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "\n",
        "id: 7\n\n",
        "data:\n\n",
    ];
    for speech in Speech::all() {
        let of_sse = of_sse
            .iter()
            .filter(|_| speech.framing == Framing::Sse)
            .map(|ping| ping.as_bytes());
        for ping in of_sse.chain([&speech.ping[..]]) {
            let mut run = with(&speech, timers.clone());
            run.at(500, &speech.text).at(1_000, &speech.text);
            for second in 2..60 {
                run.at(second * 1_000, ping);
            }
            assert_eq!(
                (run.ending(), run.now),
                (timed_out(Timer::Stall, 10), Tick::from_millis(11_000))
            );
            assert_eq!(kind(&run), Some(Kind::StreamStall), "{:?}", speech.dialect);
        }
    }
}

#[test]
fn report_48_a_reasoning_model_may_think_longer_than_a_fast_one() {
    let speech = Speech::chat();
    for (model, is_patient) in [("gpt-4o", false), ("o3", true)] {
        let usual = secs(2);
        let first_token = reasoning_first_token(model).map_or(usual, |known| known.max(usual));
        let mut run = with(
            &speech,
            StreamTimers {
                first_token,
                ..StreamTimers::default()
            },
        );
        run.at(20_000, &speech.text).at(20_100, &speech.finish);
        assert_eq!(
            run.ending() == StreamEnding::Complete,
            is_patient,
            "{model}"
        );
        if !is_patient {
            assert_eq!(run.now, Tick::from_millis(2_000));
            let told = run.ending().to_string();
            assert!(told.contains("2s (limit first_token)"), "{told}");
        }
    }
}

#[test]
fn report_49_overload_as_the_first_event_leaves_no_trace() {
    let speech = Speech::anthropic();
    let mut run = Run::new(speech.dialect, speech.framing);
    run.at(100, &speech.begin).at(200, &speech.error).end();
    assert!(run.out.is_empty() && !run.guard.is_committed());
    assert_eq!(
        (run.ending(), kind(&run)),
        (StreamEnding::Error, Some(Kind::Overloaded))
    );
    let error = run.guard.error().unwrap();
    assert_eq!(
        error.data,
        br#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#
    );
}

#[test]
fn report_51_an_error_after_content_is_passed_on_and_counts() {
    let speech = Speech::anthropic();
    let mut run = Run::new(speech.dialect, speech.framing);
    run.at(100, &speech.begin);
    for at in 2..5 {
        run.at(at * 100, &speech.text);
    }
    run.at(600, &speech.error).at(700, &speech.text).end();
    let expected = [&speech.begin[..], &speech.text.repeat(3), &speech.error].concat();
    assert_eq!(run.out, expected, "unchanged, and nothing after it");
    assert_eq!(kind(&run), Some(Kind::Overloaded));
}

#[test]
fn report_53_a_cut_is_told_and_no_finish_invented() {
    let speech = Speech::chat();
    for end in [Run::end, Run::broke] {
        let mut run = Run::new(speech.dialect, speech.framing);
        for at in 1..=40 {
            run.at(at * 100, &speech.text);
        }
        end(&mut run);
        let (said, rest) = run.out.split_at(40 * speech.text.len());
        assert_eq!(said, speech.text.repeat(40));
        let rest = std::str::from_utf8(rest).unwrap();
        assert!(
            rest.starts_with("data: {\"error\":{")
                && rest.contains("\"type\":\"upstream_disconnect\""),
            "{rest}"
        );
        assert!(!rest.contains("finish_reason") && !rest.contains("[DONE]"));
        assert_eq!(kind(&run), Some(Kind::StreamTruncated));
    }
}

#[test]
fn report_56_the_end_of_the_bytes_is_not_the_end_of_the_answer() {
    let speech = Speech::chat();
    let done = b"data: [DONE]\n\n".to_vec();
    let text = &speech.text;
    for (said, expected) in [
        (vec![text], Some(Kind::StreamTruncated)),
        (vec![text, &speech.finish], None),
        (vec![text, &done], None),
        (vec![], Some(Kind::EmptyResponse)),
    ] {
        let mut run = Run::new(speech.dialect, speech.framing);
        for (at, bytes) in (1..).zip(&said) {
            run.at(at * 100, bytes);
        }
        run.end();
        assert_eq!(kind(&run), expected, "{}", run.text());
        assert_eq!(run.guard.is_committed(), !said.is_empty());
        assert_eq!(run.text().contains("stream_truncated"), said.len() == 1);
    }
}

#[test]
fn report_57_a_tool_call_that_is_cut_is_never_closed() {
    for speech in [Speech::anthropic(), Speech::chat(), Speech::responses()] {
        let tool_call = speech.tool_call.as_ref().unwrap();
        let mut run = Run::new(speech.dialect, speech.framing);
        run.at(100, &speech.begin).at(200, tool_call).broke();
        let said = [&speech.begin[..], tool_call].concat();
        let rest = String::from_utf8(run.out.split_off(said.len())).unwrap();
        for end in [
            "content_block_stop",
            "message_delta",
            "finish_reason",
            "output_item.done",
            "response.completed",
        ] {
            assert!(!rest.contains(end), "{rest}");
        }
        assert_eq!(rest.matches("\"error\":{").count(), 1, "{rest}");
        assert_eq!(rest.matches("data: ").count(), 1, "{rest}");
    }
}

#[test]
fn report_58_an_error_without_choices_is_an_error() {
    let first =
        "data: {\"id\":\"x\",\"choices\":[],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
    run.at(1, first).at(2, "data: [DONE]\n\n").end();
    assert!(run.out.is_empty());
    assert_eq!(
        (run.ending(), kind(&run)),
        (StreamEnding::Error, Some(Kind::ServerError))
    );

    let speech = Speech::chat();
    let late = "data: {\"choices\":[{\"finish_reason\":\"error\",\"delta\":{}}],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
    run.at(1, &speech.text)
        .at(2, &speech.text)
        .at(3, late)
        .at(4, "data: [DONE]\n\n")
        .end();
    assert_eq!(
        run.out,
        [&speech.text.repeat(2)[..], late.as_bytes()].concat()
    );
    assert_eq!(kind(&run), Some(Kind::ServerError));
}

#[test]
fn report_59_a_chunk_of_usage_alone_passes_and_is_counted() {
    let speech = Speech::chat();
    for usage in [
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}",
        "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
        "{\"choices\":[],\"x_groq\":{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}}",
        "{\"choices\":null,\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
    ] {
        let chunk = format!("data: {usage}\n\n");
        let mut run = Run::new(speech.dialect, speech.framing);
        run.at(1, &speech.text)
            .at(2, &speech.finish)
            .at(3, &chunk)
            .at(4, "data: [DONE]\n\n")
            .end();
        assert_eq!(
            run.out,
            [
                &speech.text[..],
                &speech.finish,
                chunk.as_bytes(),
                b"data: [DONE]\n\n"
            ]
            .concat()
        );
        let counted = run.guard.usage();
        assert_eq!(
            (counted.input_tokens, counted.output_tokens),
            (Some(3), Some(2))
        );
        assert_eq!(kind(&run), None);
    }
}

#[test]
fn report_62_letters_cut_anywhere_are_passed_on_whole() {
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"你好🙂\"}}]}\n\ndata: [DONE]\n\n".as_bytes();
    for at in 0..stream.len() {
        let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
        run.at(1, &stream[..at]).at(2, &stream[at..]).end();
        assert_eq!((run.out.as_slice(), run.guard.left_out()), (stream, 0));
    }
}

#[test]
fn report_65_an_event_that_never_ends_is_given_up() {
    for is_committed in [false, true] {
        let speech = Speech::chat();
        let mut run = Run::new(speech.dialect, speech.framing);
        if is_committed {
            run.at(1, &speech.text);
        }
        run.at(2, "data: ");
        for _ in 0..1_000 {
            run.at(3, [b'x'; 16_384]);
        }
        assert_eq!(run.ending(), StreamEnding::Oversized);
        assert_eq!(run.ending().as_str(), "stream_oversized");
        assert!(
            run.most_held <= Scanner::EVENT_LIMIT && run.guard.held() == 0,
            "{}",
            run.most_held
        );
        assert_eq!(run.text().contains("stream_oversized"), is_committed);
        assert_eq!(kind(&run), Some(Kind::StreamTruncated));
    }
}

#[test]
fn report_67_a_guard_keeps_nothing_that_its_caller_has_taken() {
    let speech = Speech::chat();
    let mut run = Run::new(speech.dialect, speech.framing);
    for at in 0..20_000 {
        run.at(at, &speech.text);
        assert_eq!(run.guard.held(), 0);
    }
    assert_eq!(run.most_held, speech.text.len());
}

#[test]
fn report_68_a_drip_is_too_slow_where_a_rate_is_asked_for() {
    let speech = Speech::chat();
    for (rate, is_slow) in [(1.0, true), (0.0, false)] {
        let mut run = with(
            &speech,
            StreamTimers {
                min_tokens_per_second: rate,
                ..StreamTimers::default()
            },
        );
        for at in (300..100_000).step_by(4_000) {
            run.at(at, &speech.text);
        }
        if is_slow {
            assert_eq!(
                (run.ending(), run.now),
                (timed_out(Timer::Rate, 10), Tick::from_millis(10_300))
            );
            assert_eq!(run.ending().as_str(), "stream_slow");
            assert_eq!(kind(&run), Some(Kind::StreamStall));
        } else {
            run.at(100_000, &speech.finish);
            assert_eq!(run.ending(), StreamEnding::Complete);
        }
    }
}

#[test]
fn report_69_the_responses_dialect_has_its_own_ends() {
    let speech = Speech::responses();
    let incomplete = "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n";
    let done = "data: [DONE]\n\n";
    for (last, expected) in [
        (&speech.finish[..], None),
        (incomplete.as_bytes(), None),
        (&speech.error, Some(Kind::ServerError)),
        (b"", Some(Kind::StreamTruncated)),
        (done.as_bytes(), Some(Kind::StreamTruncated)),
    ] {
        let mut run = Run::new(speech.dialect, speech.framing);
        run.at(1, &speech.begin)
            .at(2, &speech.text)
            .at(3, last)
            .end();
        assert_eq!(kind(&run), expected, "{}", run.text());
        let is_cut = expected == Some(Kind::StreamTruncated);
        assert_eq!(run.text().contains("stream_truncated"), is_cut);
        assert!(
            !is_cut || !run.text().contains("[DONE]"),
            "SDKs stop reading at it: {}",
            run.text()
        );
    }
}

#[test]
fn report_117_each_event_goes_on_when_its_last_byte_is_there() {
    for speech in Speech::all() {
        let mut run = Run::new(speech.dialect, speech.framing);
        run.at(1, &speech.begin).at(2, &speech.text);
        for number in 1..60 {
            let (most, last) = speech.text.split_at(speech.text.len() - 1);
            let before = run.out.len();
            run.at(number * 250, most);
            // The comma of an array is no part of its element.
            assert!(run.out.len() - before <= 1, "{:?}", speech.dialect);
            run.at(number * 250, last);
            assert_eq!(
                run.out.len() - before,
                speech.text.len(),
                "{:?}",
                speech.dialect
            );
        }
    }
}

#[test]
fn report_122_a_caller_who_leaves_ends_the_stream_at_once() {
    let speech = Speech::chat();
    let mut run = Run::new(speech.dialect, speech.framing);
    for at in 1..=5 {
        run.at(at * 200, &speech.text);
    }
    run.left(1_100);
    assert!(run.guard.is_over() && run.guard.deadline().is_none());
    assert_eq!(
        (run.ending(), kind(&run)),
        (StreamEnding::Cancelled, Some(Kind::Cancelled))
    );
    run.guard.broke(Fault::Reset, run.now);
    assert_eq!(
        run.ending(),
        StreamEnding::Cancelled,
        "what closing the upstream brings changes nothing"
    );
    assert_eq!(run.out, speech.text.repeat(5));

    let mut in_vain = Run::new(speech.dialect, speech.framing);
    in_vain.at(200, &speech.ping).left(25_000);
    assert_eq!(kind(&in_vain), Some(Kind::Timeout));
}
