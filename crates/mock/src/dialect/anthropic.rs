//! Anthropic's canned bodies: messages, plain and streamed, and errors.

use serde_json::{Value, json};

use super::{PROMPT_TOKENS, Piece, content, frame, model};
use crate::reply::ErrorText;
use crate::request::Facts;

fn id(facts: &Facts) -> String {
    format!("msg_mock{:012}", facts.number)
}

fn usage(output_tokens: usize) -> Value {
    json!({
        "input_tokens": PROMPT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    })
}

pub(super) fn message(facts: &Facts, words: &[String]) -> Value {
    json!({
        "id": id(facts),
        "type": "message",
        "role": "assistant",
        "model": model(facts),
        "content": [{"type": "text", "text": words.concat()}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": usage(words.len()),
    })
}

pub(super) fn message_stream(facts: &Facts, words: &[String]) -> Vec<Piece> {
    let opening = json!({
        "id": id(facts),
        "type": "message",
        "role": "assistant",
        "model": model(facts),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(1),
    });
    let block = json!({"type": "text", "text": ""});
    let mut pieces = vec![
        named(frame, json!({"type": "message_start", "message": opening})),
        named(
            frame,
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
        ),
        named(frame, json!({"type": "ping"})),
    ];
    pieces.extend(words.iter().map(|word| {
        let delta = json!({"type": "text_delta", "text": word});
        named(
            content,
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        )
    }));
    let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let usage = json!({"output_tokens": words.len()});
    pieces.extend([
        named(frame, json!({"type": "content_block_stop", "index": 0})),
        named(
            frame,
            json!({"type": "message_delta", "delta": delta, "usage": usage}),
        ),
        named(frame, json!({"type": "message_stop"})),
    ]);
    pieces
}

/// An event named by its own `type`.
fn named(piece: fn(Option<&str>, &Value) -> Piece, data: Value) -> Piece {
    piece(data.get("type").and_then(Value::as_str), &data)
}

pub(super) fn error(request_id: &str, status: u16, text: &ErrorText) -> Value {
    let (kind, message) = match status {
        401 => ("authentication_error", "invalid x-api-key"),
        402 => (
            "billing_error",
            "There is a problem with the billing of this account.",
        ),
        403 => (
            "permission_error",
            "This API key may not use the requested resource.",
        ),
        404 => ("not_found_error", "The requested resource was not found."),
        413 => ("request_too_large", "Request exceeds the maximum size."),
        429 => (
            "rate_limit_error",
            "This request would exceed your account's rate limit.",
        ),
        504 => ("timeout_error", "The request timed out."),
        529 => ("overloaded_error", "Overloaded"),
        500.. => ("api_error", "Internal server error"),
        _ => (
            "invalid_request_error",
            "The request could not be understood.",
        ),
    };
    json!({
        "type": "error",
        "error": {
            "type": text.kind.as_deref().unwrap_or(kind),
            "message": text.message.as_deref().unwrap_or(message),
        },
        "request_id": request_id,
    })
}
