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

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// More of the error.
    Container,
    /// More of the error; a text there is a sentence.
    Sentences,
    /// More of the error; a text there is a sentence, or the error's name.
    Whole,
    Name,
    /// A name that may say which status the answer should have had.
    Status,
    Sentence,
}

/// A longer key leads nowhere.
const LONGEST_KEY: usize = 17;

fn role(key: &str) -> Option<Role> {
    let mut lower = [0; LONGEST_KEY];
    let lower = lower.get_mut(..key.len())?;
    // Most keys are in lower case already, and need no copy.
    role_of(key.as_bytes()).or_else(|| {
        key.bytes().find(u8::is_ascii_uppercase)?;
        for (letter, byte) in lower.iter_mut().zip(key.bytes()) {
            *letter = byte.to_ascii_lowercase();
        }
        role_of(lower)
    })
}

/// What a key in lower case leads to.
fn role_of(key: &[u8]) -> Option<Role> {
    Some(match key {
        b"error" | b"detail" => Role::Whole,
        b"details" | b"errors" | b"raw" => Role::Sentences,
        b"base_resp" | b"body" | b"cause" | b"data" | b"exception" | b"fault" | b"inner_error"
        | b"innererror" | b"metadata" | b"response" | b"violations" => Role::Container,
        b"code" | b"http_status_code" | b"status" | b"status_code" | b"statuscode" => Role::Status,
        b"__type" | b"error_code" | b"error_type" | b"errorcode" | b"errortype"
        | b"limit_source" | b"raw_status_code" | b"reason" | b"statusreason" | b"type" => {
            Role::Name
        }
        b"description" | b"error_description" | b"error_message" | b"errormessage"
        | b"faultstring" | b"message" | b"msg" | b"quotaid" | b"quotametric" | b"status_msg"
        | b"title" => Role::Sentence,
        _ => return None,
    })
}

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
    /// The sentence that each layer tells first, for hints in words.
    pub(super) messages: Vec<Option<&'d str>>,
    /// The status that the error itself names.
    pub(super) status: Option<u16>,
}

impl<'a> Document<'a> {
    pub(super) fn read(body: &'a [u8]) -> Self {
        let body = body.get(..MAX_BODY).unwrap_or(body);
        let text = std::str::from_utf8(body).map(Cow::Borrowed);
        let mut text = text.unwrap_or_else(|_| String::from_utf8_lossy(body));
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
            walk(layer, MAX_DEPTH, &mut |_, _, value| {
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
            let mut message = None;
            walk(layer, MAX_DEPTH, &mut |key, role, value| {
                message = message.or_else(|| message_in(key, role, value));
                found.take(key, role, value);
            });
            found.messages.push(message);
        }
        if self.layers.is_empty() && self.form != BodyForm::Empty {
            found.sentences.push(&self.text);
        }
        found
    }
}

impl<'d> Found<'d> {
    fn take(&mut self, key: &'d str, role: Role, value: &'d Value) {
        if self.names.len() + self.sentences.len() >= MAX_FOUND {
            return;
        }
        match value {
            Value::String(text) => {
                if matches!(role, Role::Name | Role::Status | Role::Whole) {
                    self.names.push((key, Cow::Borrowed(text)));
                }
                if matches!(role, Role::Sentence | Role::Sentences | Role::Whole) {
                    self.sentences.push(text);
                }
            }
            Value::Number(number) if matches!(role, Role::Name | Role::Status) => {
                self.names.push((key, Cow::Owned(number.to_string())));
            }
            _ => return,
        }
        if role == Role::Status && self.status.is_none() {
            self.status = status_in(value);
        }
    }
}

fn status_in(value: &Value) -> Option<u16> {
    let status = match value {
        Value::Number(number) => number.as_u64().and_then(|status| status.try_into().ok()),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    status.filter(|status| (400..600).contains(status))
}

/// The sentence that a member tells.
fn message_in<'v>(key: &str, role: Role, value: &'v Value) -> Option<&'v str> {
    let is_message = role == Role::Whole
        || ["message", "msg"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(key));
    is_message.then(|| value.as_str()).flatten()
}

type Each<'e, 'v> = dyn FnMut(&'v str, Role, &'v Value) + 'e;

/// Shows every member that may belong to an error, strings of arrays under the array's own key.
fn walk<'v>(value: &'v Value, depth: u8, each: &mut Each<'_, 'v>) {
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
                let Some(role) = role(key) else { continue };
                each(key, role, value);
                if !matches!(role, Role::Container | Role::Sentences | Role::Whole) {
                    continue;
                }
                for text in value.as_array().into_iter().flatten().take(MAX_ELEMENTS) {
                    if text.is_string() {
                        each(key, role, text);
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
        _ => text
            .match_indices('{')
            .filter_map(|(at, _)| text.get(at..))
            .find(|json| json.starts_with("{\""))?,
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
