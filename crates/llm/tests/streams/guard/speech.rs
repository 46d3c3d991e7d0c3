//! The same few events in every dialect.

use fuseline_llm::{Dialect, Framing};

use crate::support::{frame, header};

/// What a dialect says, each as the bytes of one whole event.
pub(crate) struct Speech {
    pub(crate) dialect: Dialect,
    pub(crate) framing: Framing,
    /// No content yet.
    pub(crate) begin: Vec<u8>,
    pub(crate) text: Vec<u8>,
    /// No content, and the socket stays open.
    pub(crate) ping: Vec<u8>,
    pub(crate) finish: Vec<u8>,
    /// An error in a form that SDKs raise.
    pub(crate) error: Vec<u8>,
    /// A tool call begins; none where calls come whole.
    pub(crate) tool_call: Option<Vec<u8>>,
    /// An event that is no JSON; none where it cannot be left out.
    pub(crate) garbage: Option<Vec<u8>>,
}

fn sse(name: &str, data: &str) -> Vec<u8> {
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("event: {name}\n")
    };
    format!("{name}data: {data}\n\n").into_bytes()
}

fn aws(kind: &str, key: &str, name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        header(key, name.as_bytes()),
        header(":message-type", kind.as_bytes()),
    ];
    frame(&headers.concat(), payload.as_bytes())
}

impl Speech {
    pub(crate) fn all() -> Vec<Self> {
        vec![
            Self::chat(),
            Self::responses(),
            Self::anthropic(),
            Self::gemini(),
            Self::gemini_array(),
            Self::bedrock(),
            Self::cohere(),
            Self::ollama(),
        ]
    }

    pub(crate) fn chat() -> Self {
        Self {
            dialect: Dialect::OpenAiChat,
            framing: Framing::Sse,
            begin: sse("", r#"{"choices":[{"delta":{"role":"assistant"}}]}"#),
            text: sse("", r#"{"choices":[{"delta":{"content":"Hi"}}]}"#),
            ping: b": keep-alive\n\n".to_vec(),
            finish: sse("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#),
            error: sse("", r#"{"error":{"message":"x","type":"server_error"}}"#),
            tool_call: Some(sse(
                "",
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a"}}]}}]}"#,
            )),
            garbage: Some(sse("", "{oops")),
        }
    }

    pub(crate) fn responses() -> Self {
        Self {
            dialect: Dialect::OpenAiResponses,
            framing: Framing::Sse,
            begin: sse("response.created", r#"{"type":"response.created"}"#),
            text: sse(
                "response.output_text.delta",
                r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
            ),
            ping: b": keep-alive\n\n".to_vec(),
            finish: sse("response.completed", r#"{"type":"response.completed"}"#),
            error: sse(
                "response.failed",
                r#"{"type":"response.failed","response":{"error":{"code":"server_error"}}}"#,
            ),
            tool_call: Some(sse(
                "response.output_item.added",
                r#"{"type":"response.output_item.added","item":{"type":"function_call"}}"#,
            )),
            garbage: Some(sse("", "{oops")),
        }
    }

    pub(crate) fn anthropic() -> Self {
        Self {
            dialect: Dialect::Anthropic,
            framing: Framing::Sse,
            begin: sse("message_start", r#"{"type":"message_start","message":{}}"#),
            text: sse(
                "content_block_delta",
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#,
            ),
            ping: sse("ping", r#"{"type":"ping"}"#),
            finish: sse(
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            ),
            error: sse(
                "error",
                r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            ),
            tool_call: Some(sse(
                "content_block_start",
                r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"read"}}"#,
            )),
            garbage: Some(sse("", "{oops")),
        }
    }

    fn gemini() -> Self {
        Self {
            dialect: Dialect::Gemini,
            framing: Framing::Sse,
            begin: sse("", r#"{"usageMetadata":{"promptTokenCount":3}}"#),
            text: sse(
                "",
                r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#,
            ),
            ping: b"\r\n".to_vec(),
            finish: sse("", r#"{"candidates":[{"finishReason":"STOP"}]}"#),
            error: sse("", r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#),
            tool_call: None,
            garbage: Some(sse("", "{oops")),
        }
    }

    fn gemini_array() -> Self {
        Self {
            framing: Framing::JsonArray,
            begin: br#"[{"usageMetadata":{"promptTokenCount":3}}"#.to_vec(),
            text: br#",{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#.to_vec(),
            ping: b" ".to_vec(),
            finish: br#",{"candidates":[{"finishReason":"STOP"}]}]"#.to_vec(),
            error: br#",{"error":{"code":503,"status":"UNAVAILABLE"}}]"#.to_vec(),
            garbage: None,
            ..Self::gemini()
        }
    }

    fn bedrock() -> Self {
        let event = |name, payload| aws("event", ":event-type", name, payload);
        Self {
            dialect: Dialect::Bedrock,
            framing: Framing::EventStream,
            begin: event("messageStart", r#"{"role":"assistant"}"#),
            text: event("contentBlockDelta", r#"{"delta":{"text":"Hi"}}"#),
            ping: event("metadata", r#"{"metrics":{}}"#),
            finish: event("messageStop", r#"{"stopReason":"end_turn"}"#),
            error: aws(
                "exception",
                ":exception-type",
                "throttlingException",
                r#"{"message":"x"}"#,
            ),
            tool_call: Some(event(
                "contentBlockStart",
                r#"{"start":{"toolUse":{"name":"read"}}}"#,
            )),
            garbage: Some(event("contentBlockDelta", "{oops")),
        }
    }

    fn cohere() -> Self {
        Self {
            dialect: Dialect::Cohere,
            framing: Framing::Sse,
            begin: sse("message-start", r#"{"type":"message-start"}"#),
            text: sse(
                "content-delta",
                r#"{"type":"content-delta","delta":{"message":{"content":{"text":"Hi"}}}}"#,
            ),
            ping: b"\n".to_vec(),
            finish: sse(
                "message-end",
                r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#,
            ),
            error: sse(
                "message-end",
                r#"{"type":"message-end","delta":{"finish_reason":"ERROR"}}"#,
            ),
            tool_call: Some(sse(
                "tool-call-start",
                r#"{"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":"a"}}}}"#,
            )),
            garbage: Some(sse("", "{oops")),
        }
    }

    fn ollama() -> Self {
        Self {
            dialect: Dialect::Ollama,
            framing: Framing::NdJson,
            begin: b"{\"model\":\"m\"}\n".to_vec(),
            text: b"{\"message\":{\"content\":\"Hi\"}}\n".to_vec(),
            ping: b"\n".to_vec(),
            finish: b"{\"done\":true,\"done_reason\":\"stop\"}\n".to_vec(),
            error: b"{\"error\":\"x\"}\n".to_vec(),
            tool_call: None,
            garbage: Some(b"{oops\n".to_vec()),
        }
    }
}
