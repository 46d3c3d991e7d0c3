//! Writes JSON anew, otherwise.

use fuseline_llm::{Evidence, HintSource, Verdict};
use serde_json::{Map, Value};

const CODES: [&str; 8] = [
    "code",
    "type",
    "status",
    "reason",
    "error_code",
    "__type",
    "quotaId",
    "error_type",
];
const SENTENCES: [&str; 7] = [
    "message",
    "msg",
    "error",
    "detail",
    "faultstring",
    "raw",
    "error_message",
];

/// What an answer may hold besides, echoes of the prompt included.
const EXTRAS: [(&str, &str); 8] = [
    ("request_id", r#""req_0123""#),
    (
        "documentation_url",
        r#""https://docs.example.test/errors#rate-limit""#,
    ),
    ("timestamp", "1796040000"),
    (
        "prompt",
        r#""my credit balance is too low, rate limit, maximum context length, overloaded""#,
    ),
    (
        "input",
        r#"{"error": {"code": "insufficient_quota", "message": "quota"}}"#,
    ),
    (
        "trace",
        r#"{"id": "t", "code": 429, "type": "overloaded_error"}"#,
    ),
    ("usage_hint", "null"),
    ("region", r#""eu-west-1""#),
];

/// What is written otherwise.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Change {
    CaseOfCodes,
    CaseOfSentences,
    Extras,
    Order,
    Surroundings,
    Wording,
}

pub(super) struct Rewrite<'r> {
    change: Change,
    random: &'r mut fastrand::Rng,
}

impl<'r> Rewrite<'r> {
    pub(super) fn new(change: Change, random: &'r mut fastrand::Rng) -> Self {
        Self { change, random }
    }

    /// None where the text is no JSON.
    pub(super) fn text(&mut self, text: &str) -> Option<String> {
        let value: Value = serde_json::from_str(text).ok()?;
        let value = self.value("", value);
        Some(self.write(&value))
    }

    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut members: Map<_, _> = members
                    .into_iter()
                    .map(|(key, value)| (key.clone(), self.value(&key, value)))
                    .collect();
                if self.change == Change::Extras {
                    let (key, value) = EXTRAS[self.random.usize(..EXTRAS.len())];
                    members
                        .entry(key)
                        .or_insert_with(|| serde_json::from_str(value).unwrap());
                }
                Value::Object(members)
            }
            Value::Array(elements) => Value::Array(
                elements
                    .into_iter()
                    .map(|element| self.value("", element))
                    .collect(),
            ),
            Value::String(text) => Value::String(self.string(key, text)),
            other => other,
        }
    }

    fn string(&mut self, key: &str, text: String) -> String {
        // JSON in a string: its keys must stay.
        if text.starts_with('{') {
            return text;
        }
        let is_sentence = SENTENCES.contains(&key);
        let recased = (self.change == Change::CaseOfCodes && CODES.contains(&key))
            || (self.change == Change::CaseOfSentences && is_sentence);
        if recased {
            return if self.random.bool() {
                text.to_uppercase()
            } else {
                text.to_lowercase()
            };
        }
        if self.change == Change::Wording && is_sentence {
            let words = [
                "Something went wrong on this call",
                "See the documentation",
                "Es hat nicht geklappt",
            ];
            return words[self.random.usize(..words.len())].to_owned();
        }
        if self.change == Change::Surroundings && is_sentence {
            return format!("Error: {text} (request id: req_{})", self.random.u32(..));
        }
        text
    }

    fn write(&mut self, value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if self.change == Change::Order {
                    self.random.shuffle(&mut members);
                }
                let written: Vec<_> = members
                    .into_iter()
                    .map(|(key, value)| {
                        format!("{}:{}", Value::from(key.as_str()), self.write(value))
                    })
                    .collect();
                format!("{{{}}}", written.join(","))
            }
            Value::Array(elements) => {
                let written: Vec<_> = elements.iter().map(|element| self.write(element)).collect();
                format!("[{}]", written.join(","))
            }
            other => other.to_string(),
        }
    }
}

/// Whether what the verdict rests on, and its wait, still stand in the beginning.
pub(super) fn is_cut_fairly(body: &str, at: usize, verdict: &Verdict) -> bool {
    let kept = body[..at].to_ascii_lowercase();
    let by_body = match &verdict.evidence {
        Evidence::Rule(citation) => {
            citation
                .saw()
                .split(", ")
                .all(|saw| match saw.split_once(' ') {
                    Some(("phrase" | "sentence", words)) => words
                        .trim_matches('"')
                        .split("...")
                        .all(|part| kept.contains(part.trim())),
                    Some(("field", pointer)) => {
                        kept.contains(pointer.rsplit('/').next().unwrap()) && at + 12 < body.len()
                    }
                    Some((_, name)) => kept.contains(name),
                    None => true,
                })
        }
        _ => true,
    };
    let in_body = !matches!(
        verdict.hint_source,
        None | Some(HintSource::RetryAfter(_) | HintSource::ResetHeader(_))
    );
    by_body && !in_body
}
