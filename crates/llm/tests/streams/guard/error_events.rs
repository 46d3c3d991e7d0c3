//! The error event in each dialect: its bytes, that the dialect's own reader sees an error in it, and where it stands.

use fuseline_llm::{Dialect, Fault, Framing, Piece, Scanner, StreamEnding, StreamReader};

use super::run::Run;
use super::speech::Speech;
use crate::support::{frame, header};

const CUT: &str = "the provider's stream ended before the answer was complete";
const STALL: &str = "the provider's stream sent no further content for 30s (limit stall)";

fn after_text(speech: &Speech, end: fn(&mut Run)) -> Vec<u8> {
    let mut run = Run::new(speech.dialect, speech.framing);
    run.at(1, &speech.begin).at(2, &speech.text);
    let said = run.out.len();
    end(&mut run);
    run.out.split_off(said)
}

fn cut(speech: &Speech) -> Vec<u8> {
    after_text(speech, |run| {
        run.end();
    })
}

fn stalled(speech: &Speech) -> Vec<u8> {
    after_text(speech, |run| {
        run.silence();
    })
}

#[test]
fn what_each_dialect_is_told() {
    for (at, of_cut, of_stall) in [
        (
            (Dialect::OpenAiChat, Framing::Sse),
            format!(
                "data: {{\"error\":{{\"code\":\"stream_truncated\",\"message\":\"{CUT}\",\"param\":null,\"type\":\"upstream_disconnect\"}}}}\n\n"
            ),
            format!(
                "data: {{\"error\":{{\"code\":\"stream_stall\",\"message\":\"{STALL}\",\"param\":null,\"type\":\"upstream_timeout\"}}}}\n\n"
            ),
        ),
        (
            (Dialect::OpenAiResponses, Framing::Sse),
            format!(
                "event: error\ndata: {{\"code\":\"stream_truncated\",\"error\":{{\"code\":\"stream_truncated\",\"message\":\"{CUT}\",\"param\":null,\"type\":\"upstream_disconnect\"}},\"message\":\"{CUT}\",\"param\":null,\"sequence_number\":0,\"type\":\"error\"}}\n\n"
            ),
            format!(
                "event: error\ndata: {{\"code\":\"stream_stall\",\"error\":{{\"code\":\"stream_stall\",\"message\":\"{STALL}\",\"param\":null,\"type\":\"upstream_timeout\"}},\"message\":\"{STALL}\",\"param\":null,\"sequence_number\":0,\"type\":\"error\"}}\n\n"
            ),
        ),
        (
            (Dialect::Anthropic, Framing::Sse),
            format!(
                "event: error\ndata: {{\"error\":{{\"message\":\"stream_truncated: {CUT}\",\"type\":\"api_error\"}},\"type\":\"error\"}}\n\n"
            ),
            format!(
                "event: error\ndata: {{\"error\":{{\"message\":\"stream_stall: {STALL}\",\"type\":\"timeout_error\"}},\"type\":\"error\"}}\n\n"
            ),
        ),
        (
            (Dialect::Gemini, Framing::Sse),
            format!(
                "data: {{\"error\":{{\"code\":503,\"message\":\"stream_truncated: {CUT}\",\"status\":\"UNAVAILABLE\"}}}}\n\n"
            ),
            format!(
                "data: {{\"error\":{{\"code\":504,\"message\":\"stream_stall: {STALL}\",\"status\":\"DEADLINE_EXCEEDED\"}}}}\n\n"
            ),
        ),
        (
            (Dialect::Gemini, Framing::JsonArray),
            format!(
                ",{{\"error\":{{\"code\":503,\"message\":\"stream_truncated: {CUT}\",\"status\":\"UNAVAILABLE\"}}}}]"
            ),
            format!(
                ",{{\"error\":{{\"code\":504,\"message\":\"stream_stall: {STALL}\",\"status\":\"DEADLINE_EXCEEDED\"}}}}]"
            ),
        ),
        (
            (Dialect::Cohere, Framing::Sse),
            format!(
                "event: message-end\ndata: {{\"delta\":{{\"error\":\"{CUT}\",\"finish_reason\":\"ERROR\"}},\"type\":\"message-end\"}}\n\n"
            ),
            format!(
                "event: message-end\ndata: {{\"delta\":{{\"error\":\"{STALL}\",\"finish_reason\":\"ERROR\"}},\"type\":\"message-end\"}}\n\n"
            ),
        ),
        (
            (Dialect::Ollama, Framing::NdJson),
            format!("{{\"error\":\"stream_truncated: {CUT}\"}}\n"),
            format!("{{\"error\":\"stream_stall: {STALL}\"}}\n"),
        ),
    ] {
        let speech = Speech::all()
            .into_iter()
            .find(|speech| (speech.dialect, speech.framing) == at)
            .unwrap();
        assert_eq!(String::from_utf8(cut(&speech)).unwrap(), of_cut);
        assert_eq!(String::from_utf8(stalled(&speech)).unwrap(), of_stall);
    }
}

#[test]
fn bedrock_is_told_by_a_frame_of_its_own() {
    let speech = Speech::all()
        .into_iter()
        .find(|speech| speech.dialect == Dialect::Bedrock)
        .unwrap();
    let headers = [
        header(":exception-type", b"modelStreamErrorException"),
        header(":content-type", b"application/json"),
        header(":message-type", b"exception"),
    ];
    let payload = format!("{{\"message\":\"stream_truncated: {CUT}\"}}");
    assert_eq!(cut(&speech), frame(&headers.concat(), payload.as_bytes()));
}

#[test]
fn each_is_an_error_in_its_dialect_and_no_end() {
    for speech in Speech::all() {
        let mut run = Run::new(speech.dialect, speech.framing);
        run.at(1, &speech.begin).at(2, &speech.text).broke();
        let mut scanner = Scanner::new(speech.framing, Scanner::EVENT_LIMIT);
        let mut reader = StreamReader::new(speech.dialect);
        let (mut rest, mut errors) = (&run.out[..], Vec::new());
        while let Some(scanned) = scanner.scan(rest) {
            if let Piece::Event(event) = &scanned.piece {
                let seen = reader.read(event);
                assert!(!seen.end && !seen.malformed);
                errors.push(seen.error.is_some());
            }
            rest = &rest[scanned.end..];
        }
        assert_eq!(
            errors,
            [false, false, true],
            "{:?} {:?}",
            speech.dialect,
            speech.framing
        );
        assert!(rest.is_empty() && !reader.is_complete());
        if speech.framing == Framing::JsonArray {
            let array: Vec<serde_json::Value> = serde_json::from_slice(&run.out).unwrap();
            assert_eq!(array.len(), 3, "the array stays one");
        }
    }
}

#[test]
fn after_an_event_without_its_delimiter_comes_what_is_missing() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}";
    for (end, gap) in [("", "\n\n"), ("\n", "\n"), ("\r\n", "\n"), ("\n\n", "")] {
        let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
        run.at(1, format!("{text}{end}")).end();
        let begin = format!("{text}{end}{gap}data: {{\"error\"");
        assert!(run.out.starts_with(begin.as_bytes()), "{}", run.text());
    }
    let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
    run.at(1, format!("{text}\n\n"))
        .at(2, "data: {\"choices\":[{\"del")
        .end();
    assert!(
        run.out
            .starts_with(format!("{text}\n\ndata: {{\"error\"").as_bytes()),
        "{}",
        run.text()
    );

    let mut lines = Run::new(Dialect::Ollama, Framing::NdJson);
    lines.at(1, "{\"response\":\"Hi\"}").end();
    assert!(
        lines.out.starts_with(b"{\"response\":\"Hi\"}\n{\"error\""),
        "{}",
        lines.text()
    );
}

#[test]
fn an_array_is_continued_wherever_it_stands() {
    let element = "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}";
    for (begin, passed) in [
        (format!("[{element}"), format!("[{element},")),
        (
            format!("[{element}\r\n,\r\n"),
            format!("[{element}\r\n,\r\n"),
        ),
        (format!("[{element},{{\"cand"), format!("[{element},")),
    ] {
        let mut run = Run::new(Dialect::Gemini, Framing::JsonArray);
        run.at(1, &begin).end();
        let begin = format!("{passed}{{\"error\"");
        assert!(run.out.starts_with(begin.as_bytes()), "{}", run.text());
        let array: Vec<serde_json::Value> = serde_json::from_slice(&run.out).unwrap();
        assert_eq!(array.len(), 2);
    }
    let mut closed = Run::new(Dialect::Gemini, Framing::JsonArray);
    closed.at(1, format!("[{element}]")).end();
    assert_eq!(
        (closed.ending(), closed.out),
        (StreamEnding::Truncated, format!("[{element}]").into_bytes())
    );
}

#[test]
fn an_error_that_sdks_would_pass_over_is_told_again() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    for (event, is_raised) in [
        ("data: {\"error\":{\"message\":\"x\"}}\n\n", true),
        (
            "data: {\"choices\":[{\"finish_reason\":\"error\",\"delta\":{}}],\"error\":{\"code\":502}}\n\n",
            true,
        ),
        (
            "data: {\"choices\":[{\"finish_reason\":\"insufficient_system_resource\",\"delta\":{}}]}\n\n",
            false,
        ),
        ("data: {\"object\":\"error\",\"message\":\"x\"}\n\n", false),
        ("error: {\"code\":500}\n\n", false),
    ] {
        let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
        run.at(1, text).at(2, event).at(3, "data: [DONE]\n\n").end();
        assert_eq!(run.ending(), StreamEnding::Error);
        let passed = format!("{text}{event}");
        assert!(run.out.starts_with(passed.as_bytes()), "{}", run.text());
        assert_eq!(run.out.len() == passed.len(), is_raised, "{}", run.text());
    }
}

#[test]
fn what_the_model_wrote_stays_out_of_logs() {
    let mut run = Run::new(Dialect::OpenAiChat, Framing::Sse);
    run.guard.bytes("data: {\"choices\":[{\"delta\":{\"content\":\"secret\"}}]}\n\ndata: {\"error\":\"secret\"}\n\n".into(), run.now);
    run.guard.broke(Fault::Reset, run.now);
    let shown = format!("{:?} {:?}", run.guard, run.guard.error());
    assert!(
        !shown.contains("secret") && shown.contains("bytes"),
        "{shown}"
    );
}
