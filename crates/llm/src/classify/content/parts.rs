//! The parts of answers: choices, candidates, messages, blocks; and whether there is anything in them.

use std::borrow::Cow;

use super::Raw;
use crate::json::{Object, Value, object};

object! {
    pub(super) struct BaseResp {
        pub(super) status_code,
    }
}

object! {
    pub(super) struct Choice {
        message,
        delta,
        text,
        pub(super) finish_reason,
    }
}

object! {
    pub(super) struct Candidate {
        content,
        pub(super) finish_reason = "finishReason",
    }
}

object! {
    pub(super) struct Feedback {
        pub(super) block_reason = "blockReason",
    }
}

object! {
    pub(super) struct Incomplete {
        pub(super) reason,
    }
}

object! {
    /// An OpenAI message or delta; Cohere's and Ollama's are like it.
    pub(super) struct Message {
        content,
        reasoning_content,
        reasoning,
        reasoning_details,
        thinking,
        refusal,
        audio,
        images,
        tool_calls,
        tool_plan,
        function_call,
    }
}

object! {
    /// A delta or block of Anthropic, Bedrock or Cohere, as far as its end goes.
    pub(super) struct Delta {
        pub(super) stop_reason,
        pub(super) finish_reason,
    }
}

object! {
    /// A delta or the beginning of a block, with its content.
    struct Piece {
        r#type = "type",
        text,
        thinking,
        partial_json,
        tool_use = "toolUse",
        reasoning = "reasoningContent",
        message,
    }
}

object! {
    /// One part of a list: a text, or something that is none.
    struct Part {
        r#type = "type",
        text,
        thinking,
        refusal,
        content,
    }
}

object! {
    struct Parts {
        parts,
        message,
        content,
    }
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
        let content = self.content.and_then(Parts::read);
        content.is_some_and(|content| list_has(content.parts))
    }
}

impl Message<'_> {
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
pub(super) fn piece_has_content(raw: Value<'_>) -> bool {
    let Some(piece) = Piece::read(raw) else {
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
    if let Some(one) = Parts::read(raw) {
        let message = one.message.and_then(Parts::read);
        return message.is_some_and(|message| list_has(message.content)) || list_has(one.content);
    }
    raw.elements().any(|item| {
        let part = Part::read(item).unwrap_or_default();
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
    if raw.is_list() {
        raw.elements().any(part_has)
    } else {
        part_has(raw)
    }
}

/// Text that is not blank; anything that is no text: a tool call, an image, a number.
fn part_has(raw: Value<'_>) -> bool {
    let Some(part) = Part::read(raw) else {
        return is_filled(Some(raw));
    };
    let words = [part.text, part.thinking, part.refusal];
    let is_text = words.iter().any(Option::is_some)
        || text(part.r#type).is_some_and(|kind| kind.contains("text") || kind.contains("thinking"));
    if is_text {
        any_filled(words)
    } else {
        raw.get() != b"{}"
    }
}

pub(super) fn any_filled<const N: usize>(values: [Raw<'_>; N]) -> bool {
    values.into_iter().any(is_filled)
}

/// Whether a value holds something: no null, nothing empty, no text of blanks alone.
pub(super) fn is_filled(value: Raw<'_>) -> bool {
    let Some(value) = value else {
        return false;
    };
    match value.get() {
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

/// The text of a string.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    raw?.text()
}
