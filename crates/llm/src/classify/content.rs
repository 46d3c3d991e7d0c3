//! What a success answer, or one event of a stream, says: is there content, why did it end, is there an error.
//!
//! All dialects at once: which keys an object has tells whose it is. Only the few keys that tell are read, borrowed
//! from the text; what the model wrote is looked at for one thing only, whether it is more than blanks.

mod parts;

use std::borrow::Cow;

use self::parts::{Candidate, Choice, Message, any_filled, is_filled, list_has, text};
use crate::json::{Object as _, Value, object};
use crate::stream::{Told, Usage};

/// Gemini answers a prompt that it refuses without candidates, and gives the reason elsewhere.
const PROMPT_BLOCKED: &str = "prompt_blocked";

/// A value that is not looked into.
type Raw<'a> = Option<Value<'a>>;

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
    pub(super) usage: Usage,
}

object! {
    struct Object {
        // Errors.
        error,
        errors,
        error_type,
        error_message,
        fault,
        success,
        base_resp,
        status,
        object,
        r#type = "type",
        // Answers.
        prompt_feedback = "promptFeedback",
        content,
        message,
        output,
        text,
        response,
        data,
        embedding,
        embeddings,
        generated_text,
        tool_calls,
        // Pieces of answers.
        delta,
        content_block,
        token,
        event_type,
        // Ends.
        done,
        done_reason,
        finish_reason,
        is_finished,
        stop_reason,
        stop_reason_camel = "stopReason",
        incomplete_details,
        // Tokens.
        usage,
        usage_metadata = "usageMetadata",
        meta,
        prompt_eval_count,
        eval_count,
    }
    even_null {
        choices,
        candidates,
    }
}

/// What an object says, or all objects of an array together; none where the text is no JSON.
pub(super) fn read(text: &[u8]) -> Option<Reading<'_>> {
    if let Some(object) = Object::of(text) {
        return Some(object.reading());
    }
    let value = Value::read(text).filter(|value| value.is_list())?;
    let mut whole = Reading {
        is_answer: value.elements().next().is_none(),
        ..Reading::default()
    };
    for element in value.elements() {
        let Some(object) = Object::read(element) else {
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
            usage: self.usage(),
            ..Reading::default()
        };
        self.read_choices(&mut reading);
        self.read_candidates(&mut reading);
        self.read_responses(&kind, &mut reading);
        self.read_blocks(&mut reading);
        self.read_ends(&kind, &mut reading);
        reading
    }

    fn usage(&self) -> Usage {
        let told = Told {
            usage: self.usage,
            gemini: self.usage_metadata,
            meta: self.meta,
            prompt_eval_count: self.prompt_eval_count,
            eval_count: self.eval_count,
        };
        told.usage()
    }

    fn is_error(&self, kind: &str) -> bool {
        let says = |raw: Raw<'_>, word: &str| text(raw).is_some_and(|text| text == word);
        let is_false = |raw: Raw<'_>| raw.is_some_and(|raw| raw.get() == b"false");
        let base = self.base_resp.and_then(parts::BaseResp::read);
        let status = base.and_then(|base| base.status_code?.number());
        let failed = status.is_some_and(|status| status != 0.0);
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
        let choices = self.choices.into_iter();
        for choice in choices.flat_map(Value::objects::<Choice<'a>>) {
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
            for candidate in candidates.objects::<Candidate<'a>>() {
                reading.has_content |= candidate.has_content();
                reading.finish = text(candidate.finish_reason).or_else(|| reading.finish.take());
            }
        }
        let blocked = self.prompt_feedback.and_then(parts::Feedback::read);
        if blocked.is_some_and(|feedback| feedback.block_reason.is_some()) {
            reading.is_answer = true;
            reading.finish = Some(Cow::Borrowed(PROMPT_BLOCKED));
        }
    }

    /// OpenAI's responses, as a whole and as events; Bedrock's converse has an `output` as well.
    fn read_responses(&self, kind: &str, reading: &mut Reading<'a>) {
        if let Some(response) = self.response.filter(|_| kind.starts_with("response.")) {
            // It holds no further one; somebody's invention may, as deep as it is long.
            if let Some(inner) = Object::read(response) {
                let inner = Object {
                    response: None,
                    ..inner
                };
                let mut whole = inner.reading();
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
            let incomplete = incomplete.and_then(parts::Incomplete::read);
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
        let delta = self.delta.and_then(parts::Delta::read);
        let delta =
            delta.and_then(|delta| text(delta.stop_reason).or_else(|| text(delta.finish_reason)));
        let is_true = |raw: Raw<'_>| raw.is_some_and(|raw| raw.get() == b"true");
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
