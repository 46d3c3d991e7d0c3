//! What a verdict costs, and what routing wants to know of a request: nanoseconds of one core.

use std::hint::black_box;
use std::io::Write as _;
use std::time::SystemTime;

use anyhow::Result;
use fuseline_llm::{
    Answer, Body, Classifier, Ending, Event, Head, Operation, Protocol, RequestFacts, Transcript,
};
use http::Method;

use crate::quickest::quickest;

const NONE: &[(&str, &str)] = &[];
/// Verdicts a pass.
const RUNS: u32 = 64;
const WORDS: &str =
    "The request was not served because of a reason that takes a while to explain to its reader. ";
const EVENT: &str = r#"{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1796040000,"model":"large","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}"#;

/// Prints a row for each sort of answer.
pub(crate) fn measure() -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| answer | bytes | ns |\n|---|---:|---:|")?;
    let mut row =
        |name: &str, bytes: usize, nanos: f64| writeln!(out, "| {name} | {bytes} | {nanos:.0} |");
    for (name, provider, status, body) in answers() {
        let whole = answer(provider, status, Body::Whole(body.as_bytes()));
        row(name, body.len(), classified(&whole))?;
    }
    row("2xx, head only", 0, classified(&not_inspected()))?;
    let list = br#"{"data":[]}"#;
    let other = Answer {
        operation: Operation::Other,
        ..answer("openai", 200, Body::Whole(list))
    };
    row("2xx, no answer asked for", list.len(), classified(&other))?;
    let event = Event {
        name: "",
        data: EVENT,
    };
    let mut transcript = Transcript::default();
    let nanos = nanoseconds(|| transcript.note(black_box(&event)));
    row("one event of a stream", EVENT.len(), nanos)?;
    for (name, turns) in [("a request", 1), ("a request, a long conversation", 200)] {
        let body = request(turns);
        let nanos = nanoseconds(|| {
            let facts = RequestFacts::read(
                Protocol::OpenAi,
                &Method::POST,
                "/v1/chat/completions",
                black_box(body.as_bytes()),
            );
            let _ = black_box(facts);
        });
        row(name, body.len(), nanos)?;
    }
    Ok(())
}

/// An error body of 2 KiB that no rule knows: all of it is looked at.
pub(crate) fn error_body() -> String {
    message("null", 1_960)
}

pub(crate) fn answer<'a>(provider: &'a str, status: u16, body: Body<'a>) -> Answer<'a> {
    Answer {
        provider,
        operation: Operation::Create,
        head: Some(Head::new(status, &NONE)),
        body,
        ending: Ending::Complete,
    }
}

/// A success of which only the head is asked about.
pub(crate) fn not_inspected() -> Answer<'static> {
    answer("openai", 200, Body::Unread)
}

/// A conversation of so many turns, whose model is named at its end.
fn request(turns: usize) -> String {
    let said = WORDS.repeat(5);
    let turn = format!(r#"{{"role":"user","content":"{said}\n{said}"}}"#);
    let messages = vec![turn; turns].join(",");
    format!(r#"{{"messages":[{messages}],"stream":true,"model":"large"}}"#)
}

fn classified(answer: &Answer<'_>) -> f64 {
    let classifier = Classifier::builtin();
    nanoseconds(|| {
        let _ = black_box(classifier.classify(black_box(answer), SystemTime::UNIX_EPOCH));
    })
}

fn nanoseconds(mut run: impl FnMut()) -> f64 {
    let pass = quickest(|| {
        for _ in 0..RUNS {
            run();
        }
    });
    pass.as_secs_f64() * 1e9 / f64::from(RUNS)
}

fn words(bytes: usize) -> String {
    WORDS.chars().cycle().take(bytes).collect()
}

fn message(code: &str, bytes: usize) -> String {
    let text = words(bytes);
    format!(
        r#"{{"error":{{"message":"{text}","type":"invalid_request_error","param":null,"code":{code}}}}}"#
    )
}

fn plain(bytes: usize) -> String {
    let text = words(bytes);
    format!(
        r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":3}}}}"#
    )
}

/// Name, provider, status, body.
fn answers() -> Vec<(&'static str, &'static str, u16, String)> {
    let detail = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"large"},"quotaValue":"2"}]}"#;
    let details = [detail; 6].join(",");
    vec![
        (
            "429 by code",
            "openai",
            429,
            message("\"insufficient_quota\"", 120),
        ),
        ("400 of 2 KiB, no rule holds", "openai", 400, error_body()),
        (
            "429 of 2 KiB, no rule holds, hint asked for",
            "",
            429,
            error_body(),
        ),
        (
            "429 of 2 KiB, Google's details",
            "gemini",
            429,
            format!(
                r#"{{"error":{{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{details}]}}}}"#
            ),
        ),
        (
            "502 of 2 KiB, a page",
            "",
            502,
            format!("<html>{}</html>", WORDS.repeat(22)),
        ),
        ("429, a large body", "", 429, message("null", 60_000)),
        ("2xx, a plain answer", "openai", 200, plain(1_800)),
        ("2xx, a long plain answer", "openai", 200, plain(100_000)),
    ]
}
