//! How long a verdict takes: `cargo run --release -p fuseline-llm --example classify_speed`.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use fuseline_llm::{Answer, Body, Classifier, Ending, Event, Head, Operation, Transcript};

const NONE: &[(&str, &str)] = &[];
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 7;

#[expect(clippy::print_stdout, reason = "its figures are what it is for")]
fn main() {
    let classifier = Classifier::builtin();
    let errors = errors();
    for (name, provider, status, body) in &errors {
        let nanos = classified(
            classifier,
            answer(provider, *status, Body::Whole(body.as_bytes())),
        );
        println!("{name:44} {:6} B {nanos:9.0} ns", body.len());
    }
    let head_only = classified(classifier, answer("openai", 200, Body::Unread));
    println!("{:44} {:6} B {head_only:9.0} ns", "2xx, head only", 0);
    let other = Answer {
        operation: Operation::Other,
        ..answer("openai", 200, Body::Whole(b"{\"data\":[]}"))
    };
    println!(
        "{:44} {:6} B {:9.0} ns",
        "2xx, no answer asked for",
        11,
        classified(classifier, other)
    );
    let event = Event {
        name: "",
        data: r#"{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1796040000,"model":"large","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}"#,
    };
    let mut transcript = Transcript::default();
    let nanos = timed(|| transcript.note(black_box(&event)));
    println!(
        "{:44} {:6} B {nanos:9.0} ns",
        "one event of a stream",
        event.data.len()
    );
}

/// Name, provider, status, body.
fn errors() -> Vec<(&'static str, &'static str, u16, String)> {
    let words = "The request was not served because of a reason that takes a while to explain to its reader. ";
    let message = |code: &str, bytes: usize| {
        let text: String = words.chars().cycle().take(bytes).collect();
        format!(
            r#"{{"error":{{"message":"{text}","type":"invalid_request_error","param":null,"code":{code}}}}}"#
        )
    };
    let detail = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"large"},"quotaValue":"2"}]}"#;
    let details = [detail; 6].join(",");
    let answer = |bytes: usize| {
        let text: String = words.chars().cycle().take(bytes).collect();
        format!(
            r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":3}}}}"#
        )
    };
    vec![
        (
            "429 by code",
            "openai",
            429,
            message("\"insufficient_quota\"", 120),
        ),
        (
            "400 of 2 KiB, no rule holds",
            "openai",
            400,
            message("null", 1_960),
        ),
        (
            "429 of 2 KiB, no rule holds, hint asked for",
            "",
            429,
            message("null", 1_960),
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
            format!("<html>{}</html>", words.repeat(22)),
        ),
        ("429, a large body", "", 429, message("null", 60_000)),
        ("2xx, a plain answer", "openai", 200, answer(1_800)),
        ("2xx, a long plain answer", "openai", 200, answer(100_000)),
    ]
}

fn answer<'a>(provider: &'a str, status: u16, body: Body<'a>) -> Answer<'a> {
    Answer {
        provider,
        operation: Operation::Create,
        head: Some(Head::new(status, &NONE)),
        body,
        ending: Ending::Complete,
    }
}

fn classified(classifier: &Classifier, answer: Answer<'_>) -> f64 {
    timed(|| {
        let _ = black_box(classifier.classify(black_box(&answer), SystemTime::UNIX_EPOCH));
    })
}

/// Nanoseconds a run, in the best of some rounds.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn timed(mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let (began, mut runs) = (Instant::now(), 0_u32);
        while began.elapsed() < ROUND {
            for _ in 0..64 {
                run();
            }
            runs += 64;
        }
        best = best.min(began.elapsed().as_nanos() as f64 / f64::from(runs));
    }
    best
}
