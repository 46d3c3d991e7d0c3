//! The shared vectors: every case, every event, every field; and the presets by name.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use fuseline_core::Preset;
use fuseline_core::replay::{Answer, Line, Replay};
use serde_json::{Map, Value, json};

const VECTORS: &str = include_str!("../../../conformance/vectors.jsonl");

/// Replays the vectors, each case's settings passed through `settings`, and returns how many cases and events agreed.
fn replay(settings: impl Fn(&str, &mut Map<String, Value>) -> bool) -> (usize, usize) {
    let (mut cases, mut events, mut taken) = (0, 0, false);
    let mut replay = Replay::new();
    let mut name = String::new();
    for (at, text) in VECTORS.lines().enumerate() {
        let mut line: Map<String, Value> = serde_json::from_str(text).unwrap();
        if let Some(case) = line.get("case").and_then(Value::as_str) {
            name = case.to_owned();
            taken = settings(&name, line["breaker"].as_object_mut().unwrap());
            cases += usize::from(taken);
        } else {
            events += usize::from(taken);
        }
        if !taken {
            continue;
        }
        let expected = line.remove("expect");
        let text = Value::Object(line).to_string();
        let line: Line<'_> = serde_json::from_str(&text).unwrap();
        let answer = replay.line(&line).unwrap();
        if let Some(answer) = answer {
            assert_eq!(
                fields(&answer),
                expected.unwrap(),
                "{name}, line {}: {text}",
                at + 1
            );
        }
    }
    (cases, events)
}

/// The fields that a vector may expect.
fn fields(answer: &Answer<'_>) -> Value {
    let mut fields = json!({ "state": answer.state });
    let texts = [
        ("decision", answer.decision),
        ("reason", answer.reason),
        ("would_reject", answer.would_reject),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            fields[key] = json!(text);
        }
    }
    if let Some(ms) = answer.retry_after_ms {
        fields["retry_after_ms"] = json!(ms);
    }
    fields
}

#[test]
fn every_vector_agrees_in_every_field() {
    assert_eq!(replay(|_, _| true), (166, 6_453));
}

#[test]
fn presets_behave_as_the_systems_they_are_named_after() {
    for preset in Preset::ALL {
        let (cases, events) = replay(|name, breaker| {
            // `llmtest-rate-010` is no case of `llmtest`: what follows the name is a number.
            let number = name
                .strip_prefix(preset.as_str())
                .and_then(|rest| rest.strip_prefix('-'));
            let own = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            if own {
                let kinds = breaker.remove("kinds").unwrap();
                breaker.clear();
                breaker.insert("preset".to_owned(), json!(preset.as_str()));
                breaker.insert("jitter".to_owned(), json!(0.0));
                breaker.insert("kinds".to_owned(), kinds);
            }
            own
        });
        assert!(
            cases >= 9 && events > 200,
            "{preset}: {cases} cases, {events} events"
        );
    }
}
