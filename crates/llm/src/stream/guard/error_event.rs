//! The gateway's own error event, in each dialect: what SDKs raise as an error, and never take for a finish.
//!
//! It follows whole events, so that it cannot melt into the upstream's bytes; where it follows an event whose delimiter
//! never came, it begins with what is missing.

use bytes::Bytes;
use serde_json::{Value, json};

use super::ending::StreamEnding;
use crate::classify::Ending;
use crate::evidence::Fault;
use crate::stream::{Dialect, Framing, event_stream};

/// The event that tells of `ending`. `last` is the last byte before it: of an array of JSON the last that is no white
/// space, of all else only where no delimiter has come since. None where nothing can follow: the array is closed.
pub(super) fn error_event(
    dialect: Dialect,
    framing: Framing,
    ending: StreamEnding,
    last: Option<u8>,
) -> Option<Bytes> {
    let (name, data) = told(dialect, framing, ending);
    let event = match framing {
        Framing::Sse => {
            let gap = match last {
                None => "",
                Some(b'\n' | b'\r') => "\n",
                Some(_) => "\n\n",
            };
            let name = name.map_or(String::new(), |name| format!("event: {name}\n"));
            format!("{gap}{name}data: {data}\n\n")
        }
        Framing::NdJson => format!("{}{data}\n", last.map_or("", |_| "\n")),
        Framing::JsonArray => match last {
            None => format!("[{data}]"),
            Some(b'[' | b',') => format!("{data}]"),
            Some(b']') => return None,
            Some(_) => format!(",{data}]"),
        },
        Framing::EventStream => {
            let name = name.unwrap_or("modelStreamErrorException");
            return event_stream::exception(name, data.to_string().as_bytes());
        }
    };
    Some(event.into())
}

/// The event's name and data.
fn told(dialect: Dialect, framing: Framing, ending: StreamEnding) -> (Option<&'static str>, Value) {
    let (code, message) = (ending.as_str(), ending.to_string());
    let class = Class::of(ending);
    match dialect {
        Dialect::Anthropic => {
            let kind = match class {
                Class::Late => "timeout_error",
                Class::Cut | Class::Wrong => "api_error",
            };
            let error = json!({"type": kind, "message": format!("{code}: {message}")});
            (Some("error"), json!({"type": "error", "error": error}))
        }
        Dialect::Bedrock => (
            Some("modelStreamErrorException"),
            json!({"message": format!("{code}: {message}")}),
        ),
        // Its SDKs drop what they do not know: its own way to tell of an error is an end that says so.
        Dialect::Cohere if framing == Framing::NdJson => (
            None,
            json!({"event_type": "stream-end", "is_finished": true, "finish_reason": "ERROR", "error": message}),
        ),
        Dialect::Cohere => (
            Some("message-end"),
            json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": message}}),
        ),
        Dialect::Gemini => {
            let (number, status) = match class {
                Class::Late => (504, "DEADLINE_EXCEEDED"),
                Class::Cut => (503, "UNAVAILABLE"),
                Class::Wrong => (500, "INTERNAL"),
            };
            let message = format!("{code}: {message}");
            let error = json!({"code": number, "message": message, "status": status});
            (None, json!({"error": error}))
        }
        Dialect::Ollama => (None, json!({"error": format!("{code}: {message}")})),
        Dialect::OpenAiChat => (None, json!({"error": openai(class, code, &message)})),
        // An event of the API's own form alone is handed on by the SDKs; it is the field `error` that they raise.
        Dialect::OpenAiResponses => (
            Some("error"),
            json!({
                "type": "error",
                "code": code,
                "message": message,
                "param": null,
                "sequence_number": 0,
                "error": openai(class, code, &message),
            }),
        ),
    }
}

fn openai(class: Class, code: &str, message: &str) -> Value {
    let kind = match class {
        Class::Cut => "upstream_disconnect",
        Class::Late => "upstream_timeout",
        Class::Wrong => "upstream_error",
    };
    json!({"message": message, "type": kind, "param": null, "code": code})
}

/// What dialects have words for.
#[derive(Clone, Copy)]
enum Class {
    Cut,
    Late,
    Wrong,
}

impl Class {
    fn of(ending: StreamEnding) -> Self {
        match (ending, ending.for_classifier()) {
            (StreamEnding::Truncated | StreamEnding::Broken(_) | StreamEnding::Stopped, _) => {
                Self::Cut
            }
            (_, Ending::Broken(Fault::Stall | Fault::Deadline)) => Self::Late,
            _ => Self::Wrong,
        }
    }
}
