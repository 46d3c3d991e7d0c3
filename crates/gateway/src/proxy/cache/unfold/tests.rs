//! What is told as a stream is what the plain answer says: the collector puts the same together again.

use fuseline_llm::{Collector, Completion, Finish};

use super::*;

fn streamed(framing: Framing, with_usage: bool) -> Streamed {
    Streamed {
        digest: [0; 32],
        framing,
        with_usage,
    }
}

fn told(dialect: Dialect, plain: &Value) -> String {
    let streamed = streamed(Framing::Sse, true);
    let bytes = unfold(dialect, &streamed, plain.to_string().as_bytes()).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn collected(dialect: Dialect, plain: &Value) -> Completion {
    let mut collector = Collector::new(dialect, Framing::Sse);
    collector.bytes(told(dialect, plain).as_bytes());
    collector.end::<std::convert::Infallible>().unwrap()
}

fn chat_answer() -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    json!({
        "id": "x", "object": "chat.completion", "created": 7, "model": "m", "system_fingerprint": "fp",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Be\ncause.", "tool_calls": [call]}, "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    })
}

#[test]
fn a_chat_completion_is_its_own_stream() {
    let whole = collected(Dialect::OpenAiChat, &chat_answer());
    assert_eq!(
        (whole.text.as_str(), whole.finish),
        ("Be\ncause.", Finish::Stop)
    );
    assert_eq!(
        (
            whole.tool_calls[0].name.as_str(),
            whole.tool_calls[0].arguments.as_str()
        ),
        ("f", "{\"a\":1}")
    );
    assert_eq!(
        (whole.usage.input_tokens, whole.usage.output_tokens),
        (Some(3), Some(5))
    );

    let text = told(Dialect::OpenAiChat, &chat_answer());
    let events: Vec<&str> = text
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .collect();
    assert_eq!(events.len(), 4, "{text}");
    assert_eq!(events[3], "data: [DONE]");
    let first: Value = serde_json::from_str(&events[0][6..]).unwrap();
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(
        (&first["id"], &first["system_fingerprint"]),
        (&json!("x"), &json!("fp"))
    );
    assert_eq!(first["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(first["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
    let last: Value = serde_json::from_str(&events[2][6..]).unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(8))
    );
}

#[test]
fn usage_comes_only_where_it_was_asked_for() {
    let plain = chat_answer().to_string();
    let bytes = unfold(
        Dialect::OpenAiChat,
        &streamed(Framing::Sse, false),
        plain.as_bytes(),
    );
    let text = String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    assert!(!text.contains("usage"), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_message_comes_block_by_block() {
    let plain = json!({
        "id": "msg", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Because.", "citations": [{"type": "char_location"}]},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 5},
    });
    let whole = collected(Dialect::Anthropic, &plain);
    assert_eq!(
        (whole.text.as_str(), whole.reasoning.as_str()),
        ("Because.", "Hm.")
    );
    assert_eq!(whole.finish, Finish::Stop);
    assert_eq!(
        (
            whole.tool_calls[0].id.as_str(),
            whole.tool_calls[0].arguments.as_str()
        ),
        ("t1", "{\"a\":1}")
    );
    let text = told(Dialect::Anthropic, &plain);
    for part in [
        r#""content_block":{"signature":"","thinking":"","type":"thinking"}"#,
        r#""content_block":{"data":"d","type":"redacted_thinking"}"#,
        r#"{"citation":{"type":"char_location"},"type":"citations_delta"}"#,
        r#"{"signature":"s","type":"signature_delta"}"#,
        r#""delta":{"stop_reason":"tool_use","stop_sequence":null}"#,
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.starts_with("event: message_start\ndata: "));
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    let start = text.split("\n\n").next().unwrap();
    assert!(start.contains(r#""stop_reason":null"#) && start.contains(r#""content":[]"#));
}

#[test]
fn a_response_comes_item_by_item() {
    let plain = json!({
        "id": "resp", "object": "response", "status": "completed", "model": "m", "output": [
            {"id": "rs", "type": "reasoning", "summary": []},
            {"id": "msg", "type": "message", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": "Because.", "annotations": []},
            ]},
            {"id": "fc", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
    });
    let whole = collected(Dialect::OpenAiResponses, &plain);
    assert_eq!(
        (whole.text.as_str(), whole.finish),
        ("Because.", Finish::Stop)
    );
    assert_eq!(
        (whole.usage.input_tokens, whole.usage.output_tokens),
        (Some(3), Some(5))
    );
    let call = &whole.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), call.arguments.as_str()),
        ("c1", "{\"a\":1}")
    );

    let text = told(Dialect::OpenAiResponses, &plain);
    let data: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    for (number, event) in data.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    assert_eq!(data[0]["response"]["usage"], Value::Null);
    assert_eq!(data[0]["response"]["output"], json!([]));
    assert_eq!(data.last().unwrap()["response"], plain);
    let of = |kind: &str| data.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(of("response.output_text.delta")["delta"], "Because.");
    assert_eq!(of("response.output_text.delta")["item_id"], "msg");
    assert_eq!(of("response.content_part.added")["part"]["text"], "");
    assert_eq!(
        of("response.function_call_arguments.done")["arguments"],
        "{\"a\":1}"
    );

    let mut failed = plain;
    failed["status"] = "failed".into();
    let bytes = failed.to_string();
    let sse = streamed(Framing::Sse, false);
    assert_eq!(
        unfold(Dialect::OpenAiResponses, &sse, bytes.as_bytes()),
        None
    );
}

#[test]
fn geminis_answer_is_its_only_event() {
    let plain = json!({"candidates": [{"content": {"parts": [{"text": "Because."}]}, "finishReason": "STOP"}]});
    assert_eq!(collected(Dialect::Gemini, &plain).text, "Because.");
    let list = unfold(
        Dialect::Gemini,
        &streamed(Framing::JsonArray, false),
        plain.to_string().as_bytes(),
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&list.unwrap()).unwrap(),
        json!([plain])
    );
}

#[test]
fn what_is_no_such_answer_is_not_told() {
    let sse = streamed(Framing::Sse, true);
    for (dialect, plain) in [
        (Dialect::OpenAiChat, "[]"),
        (Dialect::OpenAiChat, "{}"),
        (
            Dialect::OpenAiChat,
            r#"{"choices":[{"text":"an older completion"}]}"#,
        ),
        (Dialect::OpenAiChat, r#"{"choices":[1]}"#),
        (Dialect::Anthropic, r#"{"content":"text"}"#),
        (Dialect::Anthropic, "no json"),
        (Dialect::Cohere, "{}"),
    ] {
        assert_eq!(unfold(dialect, &sse, plain.as_bytes()), None, "{plain}");
    }
}
