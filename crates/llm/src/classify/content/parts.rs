//! The parts of answers: choices, candidates, messages, blocks; and whether there is anything in them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Raw;

#[derive(Deserialize)]
pub(super) struct BaseResp {
    #[serde(default)]
    pub(super) status_code: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Choice<'a> {
    message: Raw<'a>,
    delta: Raw<'a>,
    text: Raw<'a>,
    pub(super) finish_reason: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Candidate<'a> {
    content: Raw<'a>,
    #[serde(rename = "finishReason")]
    pub(super) finish_reason: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Feedback<'a> {
    #[serde(rename = "blockReason")]
    pub(super) block_reason: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Incomplete<'a> {
    pub(super) reason: Raw<'a>,
}

/// An OpenAI message or delta; Cohere's and Ollama's are like it.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    content: Raw<'a>,
    reasoning_content: Raw<'a>,
    reasoning: Raw<'a>,
    reasoning_details: Raw<'a>,
    thinking: Raw<'a>,
    refusal: Raw<'a>,
    audio: Raw<'a>,
    images: Raw<'a>,
    tool_calls: Raw<'a>,
    tool_plan: Raw<'a>,
    function_call: Raw<'a>,
}

/// A delta or block of Anthropic, Bedrock or Cohere, as far as its end goes.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Delta<'a> {
    pub(super) stop_reason: Raw<'a>,
    pub(super) finish_reason: Raw<'a>,
}

/// A delta or the beginning of a block, with its content.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Piece<'a> {
    r#type: Raw<'a>,
    text: Raw<'a>,
    thinking: Raw<'a>,
    partial_json: Raw<'a>,
    #[serde(rename = "toolUse")]
    tool_use: Raw<'a>,
    #[serde(rename = "reasoningContent")]
    reasoning: Raw<'a>,
    message: Raw<'a>,
}

/// One part of a list: a text, or something that is none.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    r#type: Raw<'a>,
    text: Raw<'a>,
    thinking: Raw<'a>,
    refusal: Raw<'a>,
    content: Raw<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Parts<'a> {
    parts: Raw<'a>,
    message: Raw<'a>,
    content: Raw<'a>,
}

impl Choice<'_> {
    pub(super) fn has_content(&self) -> bool {
        let is_said = |raw: Raw<'_>| {
            raw.and_then(Message::read)
                .is_some_and(|message| message.has_content())
        };
        is_said(self.message) || is_said(self.delta) || is_filled(self.text)
    }
}

impl Candidate<'_> {
    pub(super) fn has_content(&self) -> bool {
        let content = self.content.and_then(object::<Parts<'_>>);
        content.is_some_and(|content| list_has(content.parts))
    }
}

impl<'a> Message<'a> {
    /// None where it is no object.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        object(raw)
    }

    pub(super) fn has_content(&self) -> bool {
        list_has(self.content)
            || any_filled([
                self.reasoning_content,
                self.reasoning,
                self.reasoning_details,
                self.thinking,
                self.refusal,
                self.audio,
                self.images,
                self.tool_calls,
                self.tool_plan,
                self.function_call,
            ])
    }
}

/// A delta, or the beginning of a block. One that names a tool is content before it has arguments.
pub(super) fn piece_has_content(raw: &RawValue) -> bool {
    let Some(piece) = object::<Piece<'_>>(raw) else {
        return false;
    };
    let said = [
        piece.text,
        piece.thinking,
        piece.partial_json,
        piece.tool_use,
        piece.reasoning,
    ];
    any_filled(said)
        || text(piece.r#type).is_some_and(|kind| kind.contains("tool_use"))
        || piece
            .message
            .and_then(Message::read)
            .is_some_and(|message| message.has_content())
}

/// OpenAI's list of items, or Bedrock's one message.
pub(super) fn output_has_content(output: Raw<'_>) -> bool {
    let Some(raw) = output else { return false };
    if let Some(one) = object::<Parts<'_>>(raw) {
        let message = one.message.and_then(object::<Parts<'_>>);
        return message.is_some_and(|message| list_has(message.content)) || list_has(one.content);
    }
    list::<&RawValue>(output).into_iter().any(|item| {
        let part = object::<Part<'_>>(item).unwrap_or_default();
        match text(part.r#type).as_deref() {
            // Thoughts alone are no answer.
            Some("reasoning") => false,
            Some("message") => list_has(part.content),
            Some(_) => true,
            None => part_has(item),
        }
    })
}

/// Whether a list, or what stands in its place, has something in it.
pub(super) fn list_has(values: Raw<'_>) -> bool {
    let Some(raw) = values else { return false };
    if raw.get().starts_with('[') {
        list::<&RawValue>(values).into_iter().any(part_has)
    } else {
        part_has(raw)
    }
}

/// Text that is not blank; anything that is no text: a tool call, an image, a number.
fn part_has(raw: &RawValue) -> bool {
    if !raw.get().starts_with('{') {
        return is_filled(Some(raw));
    }
    let Some(part) = object::<Part<'_>>(raw) else {
        return true;
    };
    let words = [part.text, part.thinking, part.refusal];
    let is_text = words.iter().any(Option::is_some)
        || text(part.r#type).is_some_and(|kind| kind.contains("text") || kind.contains("thinking"));
    if is_text {
        any_filled(words)
    } else {
        raw.get() != "{}"
    }
}

/// None where it is no object: an array would be taken for a list of the fields.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    let text = raw.get();
    if text.starts_with('{') {
        serde_json::from_str(text).ok()
    } else {
        None
    }
}

pub(super) fn list<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Vec<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

pub(super) fn any_filled<const N: usize>(values: [Raw<'_>; N]) -> bool {
    values.into_iter().any(is_filled)
}

/// Whether a value holds something: no null, nothing empty, no text of blanks alone.
pub(super) fn is_filled(value: Raw<'_>) -> bool {
    let Some(value) = value.map(RawValue::get) else {
        return false;
    };
    match value.as_bytes() {
        [b'"', inner @ .., b'"'] => !is_blank(inner),
        other => !matches!(other, b"null" | b"false" | b"[]" | b"{}"),
    }
}

/// Whether there are only blanks, written plainly or as escapes.
fn is_blank(inner: &[u8]) -> bool {
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        let blank = match byte {
            b' ' | b'\t' => true,
            b'\\' => matches!(bytes.next(), Some(b'n' | b't' | b'r')),
            _ => false,
        };
        if !blank {
            return false;
        }
    }
    true
}

/// The text of a string, borrowed unless it is written with escapes.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let raw = raw?.get();
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}
