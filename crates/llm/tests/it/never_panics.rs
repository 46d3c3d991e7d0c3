//! Whatever comes, there is a verdict.

use std::time::SystemTime;

use fuseline_llm::{Answer, Body, Classifier, Ending, Event, Head, Operation, Transcript};
use proptest::prelude::*;

use crate::case;

const PROVIDERS: [&str; 8] = [
    "",
    "openai",
    "anthropic",
    "gemini",
    "bedrock",
    "ollama",
    "minimax",
    "nobody",
];

/// Pieces that parsers trip over, in any order.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\\",
        "\\u",
        "\\ud83d",
        "null",
        "-1e999",
        "429",
        "\"error\":",
        "\"message\":",
        "\"code\":",
        "\"details\":[",
        "{\"error\":",
        "\"choices\":[{",
        "data: ",
        "event: error\n",
        "\n\n",
        "<html>",
        "\u{feff}",
        "é",
        "\0",
        "rate limit",
        "\"retry_after\":",
        "try again in ",
        "99999999999999999999s",
    ];
    prop::collection::vec(prop::sample::select(PIECES).prop_map(str::to_owned), 0..24)
        .prop_map(|pieces| pieces.concat())
}

fn classify(provider: &str, status: u16, headers: &[(&str, &str)], body: Body<'_>) {
    let answer = Answer {
        provider,
        operation: Operation::Create,
        head: Some(Head::new(status, &headers)),
        body,
        ending: Ending::Complete,
    };
    let verdict = Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH);
    assert!(verdict.kind.is_some() || !verdict.retryable || status >= 300);
    let _ = (verdict.evidence.to_string(), verdict.charged_to());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_body_panics(text in pieces(), status in 0_u16..700, provider in prop::sample::select(&PROVIDERS[..])) {
        classify(provider, status, &[], Body::Whole(text.as_bytes()));
        classify(provider, 200, &[], Body::Whole(text.as_bytes()));
        let mut transcript = Transcript::default();
        transcript.note(&Event { name: "", data: &text });
        transcript.note(&Event { name: "error", data: &text });
        classify(provider, 200, &[], Body::Stream(&transcript));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), status in 0_u16..700) {
        classify("", status, &[], Body::Cut(&bytes));
        classify("", 200, &[], Body::Whole(&bytes));
    }

    #[test]
    fn no_header_panics(name in prop::sample::select(&["retry-after", "x-amzn-errortype", "x-should-retry"][..]), value in "\\PC{0,40}") {
        classify("bedrock", 429, &[(name, &value)], Body::Unread);
    }

    #[test]
    fn no_damage_to_a_recorded_shape_panics(at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let cases = case::all();
        let mut case = at.get(cases).clone();
        let mut bytes = case.body.clone().into_bytes();
        if !bytes.is_empty() {
            let place = cut.index(bytes.len());
            bytes[place] = byte;
        }
        classify(&case.provider, case.status.unwrap_or(200), &[], Body::Whole(&bytes));
        bytes.truncate(cut.index(bytes.len() + 1));
        classify(&case.provider, case.status.unwrap_or(200), &[], Body::Cut(&bytes));
        case.body.clear();
        let _ = case.verdict();
    }
}

#[test]
fn depth_and_size_do_no_harm() {
    for body in [
        "[".repeat(100_000),
        "{\"error\":".repeat(20_000),
        format!(
            "{{\"error\":{{\"message\":\"{}\"}}}}",
            "rate limit ".repeat(10_000)
        ),
        format!(
            "{{\"errors\":[{}]}}",
            vec!["{\"code\":1,\"message\":\"x\"}"; 10_000].join(",")
        ),
        format!(
            "{{\"error\":{{\"message\":{}}}}}",
            (0..12).fold("\"x\"".to_owned(), |inner, _| {
                serde_json::Value::from(format!("{{\"error\":{{\"message\":{inner}}}}}"))
                    .to_string()
            })
        ),
    ] {
        for status in [200, 400, 429, 500] {
            classify("openai", status, &[], Body::Whole(body.as_bytes()));
        }
    }
}
