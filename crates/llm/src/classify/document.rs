//! `Document`: the body of a failure, read by its content, and what in it is evidence.
//!
//! Errors come as objects, arrays, plain texts and pages; one may hold another as JSON in a string. All of it is
//! walked, but only through the keys that are known to lead to errors, so that echoed input and generated text are
//! never taken for evidence.

use std::borrow::Cow;

use serde_json::Value;

use super::mend::mend;
use super::rule::BodyForm;

/// More of a body is not looked at.
const MAX_BODY: usize = 64 << 10;
/// JSON within a string within JSON, and so on.
const MAX_LAYERS: usize = 4;
const MAX_DEPTH: u8 = 8;
const MAX_ELEMENTS: usize = 16;
const MAX_FOUND: usize = 128;

/// Keys whose objects and arrays belong to the error.
const CONTAINERS: [&str; 16] = [
    "base_resp",
    "body",
    "cause",
    "data",
    "detail",
    "details",
    "error",
    "errors",
    "exception",
    "fault",
    "inner_error",
    "innererror",
    "metadata",
    "raw",
    "response",
    "violations",
];

/// Keys of machine-readable names.
const NAMES: [&str; 17] = [
    "__type",
    "blockreason",
    "code",
    "error_code",
    "error_type",
    "errorcode",
    "errortype",
    "exception",
    "http_status_code",
    "limit_source",
    "raw_status_code",
    "reason",
    "status",
    "status_code",
    "statuscode",
    "statusreason",
    "type",
];

/// Keys of names that also say which status the answer should have had.
const STATUSES: [&str; 5] = [
    "code",
    "http_status_code",
    "status",
    "status_code",
    "statuscode",
];

/// Keys of sentences.
const SENTENCES: [&str; 16] = [
    "description",
    "detail",
    "details",
    "error",
    "error_description",
    "error_message",
    "errormessage",
    "errors",
    "faultstring",
    "message",
    "msg",
    "quotaid",
    "quotametric",
    "raw",
    "status_msg",
    "title",
];

/// Sentences that may be names as well: whole errors of one word.
const EITHER: [&str; 2] = ["detail", "error"];

/// A body, parsed.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) form: BodyForm,
    /// The text, where it is no JSON.
    text: Cow<'a, str>,
    /// The JSON, and the JSON found in its strings, outermost first.
    layers: Vec<Value>,
}

/// What a document holds that rules can ask for.
#[derive(Debug, Default)]
pub(super) struct Found<'d> {
    /// Machine-readable names with the key at which each stood.
    pub(super) names: Vec<(&'d str, Cow<'d, str>)>,
    pub(super) sentences: Vec<&'d str>,
    /// The status that the error itself names.
    pub(super) status: Option<u16>,
}

impl<'a> Document<'a> {
    pub(super) fn read(body: &'a [u8]) -> Self {
        let body = body.get(..MAX_BODY).unwrap_or(body);
        let mut text = String::from_utf8_lossy(body);
        let trimmed =
            text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
        if trimmed.len() != text.len() {
            text = Cow::Owned(trimmed.to_owned());
        }
        let form = match text.as_bytes().first() {
            None => BodyForm::Empty,
            Some(b'<') => BodyForm::Html,
            Some(_) => BodyForm::Text,
        };
        let root = if form == BodyForm::Text {
            json_in(&text)
        } else {
            None
        };
        let Some(root) = root else {
            return Self {
                form,
                text,
                layers: Vec::new(),
            };
        };
        let mut layers = vec![root];
        let mut next = 0;
        while let Some(layer) = layers.get(next) {
            let mut inner = Vec::new();
            walk(layer, MAX_DEPTH, &mut |_, value| {
                if let Value::String(text) = value {
                    inner.extend(json_in(text));
                }
            });
            inner.truncate(MAX_LAYERS - layers.len());
            layers.append(&mut inner);
            next += 1;
        }
        Self {
            form: BodyForm::Json,
            text,
            layers,
        }
    }

    /// The JSON of the body and of its strings, innermost first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Value> {
        self.layers.iter().rev()
    }

    /// Whether some layer has this value at this pointer; an array of one is its element.
    pub(super) fn has(&self, pointer: &str, is_wanted: impl Fn(&Value) -> bool) -> bool {
        self.layers()
            .any(|layer| unwrap(layer).pointer(pointer).is_some_and(&is_wanted))
    }

    pub(super) fn found(&self) -> Found<'_> {
        let mut found = Found::default();
        for layer in self.layers() {
            if let Value::String(text) = layer {
                found.sentences.push(text);
            }
            walk(layer, MAX_DEPTH, &mut |key, value| found.take(key, value));
        }
        if self.layers.is_empty() && self.form != BodyForm::Empty {
            found.sentences.push(&self.text);
        }
        found
    }
}

impl<'d> Found<'d> {
    fn take(&mut self, key: &'d str, value: &'d Value) {
        if self.names.len() + self.sentences.len() >= MAX_FOUND {
            return;
        }
        let is_in = |keys: &[&str]| keys.iter().any(|known| known.eq_ignore_ascii_case(key));
        match value {
            Value::String(text) => {
                let (is_name, is_sentence) = (is_in(&NAMES), is_in(&SENTENCES));
                if is_name || (is_sentence && is_in(&EITHER)) {
                    self.names.push((key, Cow::Borrowed(text)));
                }
                if is_sentence {
                    self.sentences.push(text);
                }
            }
            Value::Number(number) if is_in(&NAMES) => {
                self.names.push((key, Cow::Owned(number.to_string())));
            }
            _ => return,
        }
        if self.status.is_none() && is_in(&STATUSES) {
            self.status = match value {
                Value::Number(number) => number
                    .as_u64()
                    .and_then(|status| u16::try_from(status).ok()),
                Value::String(text) => text.parse().ok(),
                _ => None,
            }
            .filter(|status| (400..600).contains(status));
        }
    }
}

/// The sentence that a layer tells first, for hints in words.
pub(super) fn sentence_of(layer: &Value) -> Option<&str> {
    let mut sentence = None;
    walk(layer, MAX_DEPTH, &mut |key, value| {
        let is_message = ["message", "msg", "error", "detail"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(key));
        if let (None, true, Value::String(text)) = (sentence, is_message, value) {
            sentence = Some(text.as_str());
        }
    });
    sentence
}

/// Shows every member that may belong to an error, strings of arrays under the array's own key.
fn walk<'v>(value: &'v Value, depth: u8, each: &mut dyn FnMut(&'v str, &'v Value)) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::Array(elements) => {
            for element in elements.iter().take(MAX_ELEMENTS) {
                walk(element, depth, each);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                each(key, value);
                if !(value.is_object() || value.is_array())
                    || !CONTAINERS
                        .iter()
                        .any(|known| known.eq_ignore_ascii_case(key))
                {
                    continue;
                }
                for text in value.as_array().into_iter().flatten().take(MAX_ELEMENTS) {
                    if text.is_string() {
                        each(key, text);
                    }
                }
                walk(value, depth, each);
            }
        }
        _ => {}
    }
}

fn unwrap(value: &Value) -> &Value {
    match value {
        Value::Array(elements) => match elements.as_slice() {
            [element] => element,
            _ => value,
        },
        _ => value,
    }
}

/// The JSON with which a text begins, or which stands in it behind a few words; cut JSON is made whole.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim_start();
    let text = match text.as_bytes().first() {
        Some(b'{' | b'[' | b'"') => text,
        _ => text.get(text.find("{\"")?..)?,
    };
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Some(value),
        Some(Err(error)) if error.is_eof() => serde_json::from_str(&mend(text)).ok(),
        _ => None,
    }
    .filter(|value| {
        !matches!(
            unwrap(value),
            Value::Null | Value::Number(_) | Value::Bool(_)
        )
    })
}
