//! OpenAI's canned bodies: chat, completions, responses, embeddings and errors.

use serde_json::{Value, json};

use super::{CREATED, PROMPT_TOKENS, Piece, Role, content, frame, model};
use crate::reply::ErrorText;
use crate::request::Facts;

fn id(prefix: &str, facts: &Facts) -> String {
    format!("{prefix}mock{:012}", facts.number)
}

fn usage(completion_tokens: usize) -> Value {
    json!({
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}

pub(super) fn chat(facts: &Facts, words: &[String]) -> Value {
    let message =
        json!({"role": "assistant", "content": words.concat(), "refusal": null, "annotations": []});
    json!({
        "id": id("chatcmpl-", facts),
        "object": "chat.completion",
        "created": CREATED,
        "model": model(facts),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        "usage": usage(words.len()),
        "service_tier": "default",
        "system_fingerprint": "fp_mock",
    })
}

pub(super) fn chat_stream(facts: &Facts, words: &[String]) -> Vec<Piece> {
    let id = id("chatcmpl-", facts);
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": model(facts),
            "service_tier": "default",
            "system_fingerprint": "fp_mock",
            "choices": choices,
        });
        if let (true, Some(fields)) = (facts.usage_wanted, chunk.as_object_mut()) {
            fields.insert("usage".to_owned(), usage.unwrap_or_default());
        }
        chunk
    };
    let choice = |delta: Value, finish: Option<&str>| {
        chunk(
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            None,
        )
    };
    let role = json!({"role": "assistant", "content": "", "refusal": null});
    let mut pieces = vec![frame(None, &choice(role, None))];
    pieces.extend(
        words
            .iter()
            .map(|word| content(None, &choice(json!({"content": word}), None))),
    );
    pieces.push(frame(None, &choice(json!({}), Some("stop"))));
    if facts.usage_wanted {
        pieces.push(frame(None, &chunk(json!([]), Some(usage(words.len())))));
    }
    pieces.push(done());
    pieces
}

fn done() -> Piece {
    Piece {
        bytes: "data: [DONE]\n\n".into(),
        role: Role::Frame,
    }
}

pub(super) fn completion(facts: &Facts, words: &[String]) -> Value {
    let mut whole = completion_part(facts, &words.concat(), Some("stop"));
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("usage".to_owned(), usage(words.len()));
    }
    whole
}

pub(super) fn completion_stream(facts: &Facts, words: &[String]) -> Vec<Piece> {
    let parts = words
        .iter()
        .map(|word| content(None, &completion_part(facts, word, None)));
    parts
        .chain([
            frame(None, &completion_part(facts, "", Some("stop"))),
            done(),
        ])
        .collect()
}

fn completion_part(facts: &Facts, text: &str, finish: Option<&str>) -> Value {
    json!({
        "id": id("cmpl-", facts),
        "object": "text_completion",
        "created": CREATED,
        "model": model(facts),
        "choices": [{"text": text, "index": 0, "logprobs": null, "finish_reason": finish}],
    })
}

pub(super) fn embeddings(facts: &Facts) -> Value {
    let vectors = (0..facts.inputs).map(|index| {
        json!({"object": "embedding", "index": index, "embedding": [0.5, -0.5, 0.25, 0.125]})
    });
    json!({
        "object": "list",
        "data": vectors.collect::<Vec<_>>(),
        "model": model(facts),
        "usage": {"prompt_tokens": PROMPT_TOKENS, "total_tokens": PROMPT_TOKENS},
    })
}

/// The responses endpoint tells the same object at several stages.
pub(super) fn response(facts: &Facts, words: &[String]) -> Value {
    response_at(facts, "completed", Some(words))
}

fn response_at(facts: &Facts, status: &str, words: Option<&[String]>) -> Value {
    let output: Vec<_> = words
        .iter()
        .map(|words| output_item(facts, "completed", Some(&words.concat())))
        .collect();
    let usage = words.map(|words| {
        json!({
            "input_tokens": PROMPT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": words.len(),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": PROMPT_TOKENS + words.len(),
        })
    });
    json!({
        "id": id("resp_", facts),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "model": model(facts),
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "store": true,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        "user": null,
    })
}

fn output_item(facts: &Facts, status: &str, text: Option<&str>) -> Value {
    let content: Vec<_> = text.into_iter().map(text_part).collect();
    json!({"id": id("msg_", facts), "type": "message", "status": status, "role": "assistant", "content": content})
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn response_stream(facts: &Facts, words: &[String]) -> Vec<Piece> {
    let text = words.concat();
    let at = |stage, words| json!({"response": response_at(facts, stage, words)});
    let item = |stage, text| json!({"output_index": 0, "item": output_item(facts, stage, text)});
    let here = |name: &str, value: Value| {
        let mut data = json!({"item_id": id("msg_", facts), "output_index": 0, "content_index": 0});
        if let Some(fields) = data.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
        data
    };
    let deltas = words
        .iter()
        .map(|word| ("response.output_text.delta", here("delta", json!(word))));
    let opening = [
        ("response.created", at("in_progress", None)),
        ("response.in_progress", at("in_progress", None)),
        ("response.output_item.added", item("in_progress", None)),
        ("response.content_part.added", here("part", text_part(""))),
    ];
    let closing = [
        ("response.output_text.done", here("text", json!(text))),
        ("response.content_part.done", here("part", text_part(&text))),
        ("response.output_item.done", item("completed", Some(&text))),
        ("response.completed", at("completed", Some(words))),
    ];
    let events = opening.into_iter().chain(deltas).chain(closing).enumerate();
    events
        .map(|(number, (name, data))| numbered(number, name, data))
        .collect()
}

/// Every event carries its type, its number and, where it is text, an empty list of token probabilities.
fn numbered(number: usize, name: &str, mut data: Value) -> Piece {
    if let Some(fields) = data.as_object_mut() {
        fields.insert("type".to_owned(), json!(name));
        fields.insert("sequence_number".to_owned(), json!(number));
        if name.starts_with("response.output_text.") {
            fields.insert("logprobs".to_owned(), json!([]));
        }
    }
    let piece = if name == "response.output_text.delta" {
        content
    } else {
        frame
    };
    piece(Some(name), &data)
}

pub(super) fn error(status: u16, text: &ErrorText) -> Value {
    let (kind, code, message) = match status {
        401 => (
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        403 => (
            "invalid_request_error",
            None,
            "You are not allowed to use this resource.",
        ),
        404 => (
            "invalid_request_error",
            Some("model_not_found"),
            "The model does not exist or you cannot use it.",
        ),
        413 => (
            "invalid_request_error",
            None,
            "The request body is too large.",
        ),
        429 => (
            "requests",
            Some("rate_limit_exceeded"),
            "Rate limit reached for requests.",
        ),
        500.. => (
            "server_error",
            None,
            "The server had an error while processing your request.",
        ),
        _ => (
            "invalid_request_error",
            None,
            "The request could not be understood.",
        ),
    };
    json!({
        "error": {
            "message": text.message.as_deref().unwrap_or(message),
            "type": text.kind.as_deref().unwrap_or(kind),
            "param": null,
            "code": text.code.as_deref().or(code),
        }
    })
}
