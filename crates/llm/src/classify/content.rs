//! What a success answer, or one event of a stream, says: is there content, why did it end, is there an error.
//!
//! All dialects at once: which keys an object has tells whose it is. Only the few keys that tell are read, borrowed
//! from the text; what the model wrote is looked at for one thing only, whether it is more than blanks.

mod parts;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::parts::{Candidate, Choice, Message, any_filled, is_filled, list, list_has, text};

/// Gemini answers a prompt that it refuses without candidates, and gives the reason elsewhere.
const PROMPT_BLOCKED: &str = "prompt_blocked";

/// A value that is not looked into.
type Raw<'a> = Option<&'a RawValue>;

/// What an object says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading<'a> {
    /// It is an error, or holds one.
    pub(super) is_error: bool,
    /// It has the shape of an answer that should have content.
    pub(super) is_answer: bool,
    /// Text, reasoning, tool calls, a refusal, an embedding.
    pub(super) has_content: bool,
    /// Why the model stopped, in the provider's word.
    pub(super) finish: Option<Cow<'a, str>>,
    /// An end marker that says nothing about why.
    pub(super) is_end: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Object<'a> {
    // Errors.
    error: Raw<'a>,
    errors: Raw<'a>,
    error_type: Raw<'a>,
    error_message: Raw<'a>,
    fault: Raw<'a>,
    success: Raw<'a>,
    base_resp: Raw<'a>,
    status: Raw<'a>,
    object: Raw<'a>,
    r#type: Raw<'a>,
    // Answers.
    #[serde(borrow, deserialize_with = "even_null")]
    choices: Raw<'a>,
    #[serde(borrow, deserialize_with = "even_null")]
    candidates: Raw<'a>,
    #[serde(rename = "promptFeedback")]
    prompt_feedback: Raw<'a>,
    content: Raw<'a>,
    message: Raw<'a>,
    output: Raw<'a>,
    text: Raw<'a>,
    response: Raw<'a>,
    data: Raw<'a>,
    embedding: Raw<'a>,
    embeddings: Raw<'a>,
    generated_text: Raw<'a>,
    tool_calls: Raw<'a>,
    // Pieces of answers.
    delta: Raw<'a>,
    content_block: Raw<'a>,
    token: Raw<'a>,
    event_type: Raw<'a>,
    // Ends.
    done: Raw<'a>,
    done_reason: Raw<'a>,
    finish_reason: Raw<'a>,
    is_finished: Raw<'a>,
    stop_reason: Raw<'a>,
    #[serde(rename = "stopReason")]
    stop_reason_camel: Raw<'a>,
    incomplete_details: Raw<'a>,
}

/// What an object says, or all objects of an array together; none where the text is no JSON.
pub(super) fn read(text: &str) -> Option<Reading<'_>> {
    if text.starts_with('{') {
        return serde_json::from_str::<Object<'_>>(text)
            .ok()
            .map(Object::reading);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut whole = Reading {
        is_answer: elements.is_empty(),
        ..Reading::default()
    };
    for element in elements {
        let Some(object) = parts::object::<Object<'_>>(element) else {
            // A list of something else than objects: numbers of an embedding, texts.
            whole.has_content = true;
            continue;
        };
        let reading = object.reading();
        whole.is_error |= reading.is_error;
        whole.is_answer |= reading.is_answer;
        whole.has_content |= reading.has_content;
        whole.finish = reading.finish.or(whole.finish);
    }
    Some(whole)
}

impl<'a> Object<'a> {
    fn reading(self) -> Reading<'a> {
        let kind = text(self.r#type).unwrap_or_default();
        let mut reading = Reading {
            is_error: self.is_error(&kind),
            ..Reading::default()
        };
        self.read_choices(&mut reading);
        self.read_candidates(&mut reading);
        self.read_responses(&kind, &mut reading);
        self.read_blocks(&mut reading);
        self.read_ends(&kind, &mut reading);
        reading
    }

    fn is_error(&self, kind: &str) -> bool {
        let says = |raw: Raw<'_>, word: &str| text(raw).is_some_and(|text| text == word);
        let is_false = |raw: Raw<'_>| raw.is_some_and(|raw| raw.get() == "false");
        let failed = self.base_resp.is_some_and(|raw| {
            parts::object::<parts::BaseResp>(raw).is_some_and(|answer| answer.status_code != 0)
        });
        any_filled([self.error, self.error_type, self.error_message, self.fault])
            || kind == "error"
            || kind == "response.failed"
            || says(self.object, "error")
            || (says(self.object, "response") && says(self.status, "failed"))
            || is_false(self.success)
            || failed
            || (is_filled(self.errors) && self.data.is_none())
    }

    /// OpenAI's chat completions and completions, and everybody's who is compatible.
    fn read_choices(&self, reading: &mut Reading<'a>) {
        reading.is_answer |= self.choices.is_some();
        for choice in list::<Choice<'a>>(self.choices) {
            reading.has_content |= choice.has_content();
            reading.finish = text(choice.finish_reason)
                .filter(|reason| !reason.is_empty())
                .or_else(|| reading.finish.take());
        }
    }

    /// Google's generateContent.
    fn read_candidates(&self, reading: &mut Reading<'a>) {
        if let Some(candidates) = self.candidates {
            reading.is_answer = true;
            for candidate in list::<Candidate<'a>>(Some(candidates)) {
                reading.has_content |= candidate.has_content();
                reading.finish = text(candidate.finish_reason).or_else(|| reading.finish.take());
            }
        }
        let blocked = self
            .prompt_feedback
            .and_then(parts::object::<parts::Feedback<'a>>);
        if blocked.is_some_and(|feedback| feedback.block_reason.is_some()) {
            reading.is_answer = true;
            reading.finish = Some(Cow::Borrowed(PROMPT_BLOCKED));
        }
    }

    /// OpenAI's responses, as a whole and as events; Bedrock's converse has an `output` as well.
    fn read_responses(&self, kind: &str, reading: &mut Reading<'a>) {
        if let Some(response) = self.response.filter(|_| kind.starts_with("response.")) {
            if let Some(mut whole) = read(response.get()) {
                whole.is_answer = false;
                // An event of a stream holds the answer so far: only the last one says how it ended.
                let is_last = matches!(kind, "response.completed" | "response.incomplete");
                whole.finish = whole.finish.filter(|_| is_last);
                whole.is_error &= kind == "response.failed";
                whole.is_error |= reading.is_error;
                whole.is_end |= is_last;
                *reading = whole;
            }
            return;
        }
        if kind.starts_with("response.") && kind.ends_with(".delta") {
            reading.has_content |= is_filled(self.delta);
        }
        if let Some(output) = self.output {
            reading.is_answer = true;
            reading.has_content |= parts::output_has_content(Some(output));
            let incomplete = self.incomplete_details;
            let incomplete = incomplete.and_then(parts::object::<parts::Incomplete<'a>>);
            let reason = incomplete.and_then(|details| text(details.reason));
            let is_over = text(self.status).is_some_and(|status| status == "completed");
            reading.finish = reason
                .or_else(|| is_over.then_some(Cow::Borrowed("stop")))
                .or_else(|| reading.finish.take());
        }
    }

    /// Anthropic's blocks, Cohere's and Ollama's messages, embeddings, and the pieces in which they stream.
    fn read_blocks(&self, reading: &mut Reading<'a>) {
        let lists = [self.content, self.data, self.embedding, self.embeddings];
        for values in lists.into_iter().flatten() {
            reading.is_answer = true;
            reading.has_content |= list_has(Some(values));
        }
        // Where it is no string it is a setting.
        if text(self.text).is_some() {
            reading.is_answer = true;
            reading.has_content |= is_filled(self.text);
        }
        let is_ollama = self.done.is_some();
        if let Some(message) = self.message.and_then(Message::read) {
            reading.is_answer = true;
            reading.has_content |= message.has_content();
        }
        if is_ollama {
            reading.is_answer = true;
            reading.has_content |= is_filled(self.response);
        }
        for piece in [self.delta, self.content_block] {
            reading.has_content |= piece.is_some_and(parts::piece_has_content);
        }
        reading.is_answer |= self.generated_text.is_some();
        reading.has_content |= any_filled([self.generated_text, self.tool_calls, self.token]);
    }

    fn read_ends(&self, kind: &str, reading: &mut Reading<'a>) {
        let delta = self.delta.and_then(parts::object::<parts::Delta<'a>>);
        let delta =
            delta.and_then(|delta| text(delta.stop_reason).or_else(|| text(delta.finish_reason)));
        let is_true = |raw: Raw<'_>| raw.is_some_and(|raw| raw.get() == "true");
        let reason = text(self.stop_reason)
            .or_else(|| text(self.stop_reason_camel))
            .or_else(|| text(self.finish_reason))
            .or_else(|| text(self.done_reason))
            .or(delta)
            .filter(|reason| !reason.is_empty());
        reading.finish = reason.or_else(|| reading.finish.take());
        reading.is_end |= matches!(kind, "message_stop" | "message-end")
            || is_true(self.done)
            || is_true(self.is_finished)
            || text(self.event_type).is_some_and(|event| event == "stream-end")
            || self.generated_text.is_some();
    }
}

/// A value that is there although it is null.
fn even_null<'de: 'a, 'a, D: serde::Deserializer<'de>>(from: D) -> Result<Raw<'a>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}
