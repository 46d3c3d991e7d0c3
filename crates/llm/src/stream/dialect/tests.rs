//! What each dialect's events mean, as tables, and what a reader makes of their order.

use super::super::{Framing, Piece, Scanner, Seen, StreamReader};
use super::*;

fn event<'a>(name: &'a str, data: &'a str) -> StreamEvent<'a> {
    StreamEvent {
        name: Some(name).filter(|name| !name.is_empty()),
        data: data.as_bytes().into(),
        is_exception: false,
    }
}

/// What a single event says, in words.
fn said(dialect: Dialect, name: &str, data: &str) -> String {
    let event = event(name, data);
    let mut reader = StreamReader::new(dialect);
    let seen = reader.read(&event);
    let mut words = Vec::new();
    if seen.output {
        words.push("output".to_owned());
    }
    if let Some(finish) = seen.finish {
        words.push(format!("{finish:?}"));
    }
    if seen.end {
        words.push("end".to_owned());
    }
    if let Some(error) = seen.error {
        assert_eq!(error.data, data.as_bytes());
        words.push(format!("error {}", error.name.unwrap_or("-")));
    }
    if let Some(usage) = seen.usage {
        let count = |tokens: Option<u64>| {
            tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string())
        };
        words.push(format!(
            "{}/{}",
            count(usage.input_tokens),
            count(usage.output_tokens)
        ));
    }
    if reader.is_tool_call_open() {
        words.push("open".to_owned());
    }
    if seen.malformed {
        words.push("malformed".to_owned());
    }
    assert_eq!(seen.is_content(), seen.output || seen.finish.is_some());
    words.join(" ")
}

fn check(dialect: Dialect, table: &[(&str, &str, &str)]) {
    for (name, data, expected) in table {
        assert_eq!(
            said(dialect, name, data),
            *expected,
            "{dialect:?} {name} {data}"
        );
    }
}

#[test]
#[rustfmt::skip]
fn openai_chat() {
    check(Dialect::OpenAiChat, &[
        ("", r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#, ""),
        ("", r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#, ""),
        ("", r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"content":"\""}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"content":[{"type":"text","text":"Hi"}]}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"content":[]}}]}"#, ""),
        ("", r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"reasoning":"hm","content":""}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#, "output open"),
        ("", r#"{"choices":[{"delta":{"tool_calls":[]}}]}"#, ""),
        ("", r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#, "output open"),
        ("", r#"{"choices":[{"delta":{"tool_calls":[{}]},"finish_reason":"tool_calls"}]}"#, "output Stop end"),
        ("", r#"{"choices":[{"text":"Hi","finish_reason":null}]}"#, "output"),
        ("", r#"{"choices":[{"text":"","finish_reason":""}]}"#, ""),
        ("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "Stop end"),
        ("", r#"{"choices":[{"delta":{},"finish_reason":"eos"}]}"#, "Stop end"),
        ("", r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#, "Length end"),
        ("", r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#, r#"Policy("content_filter") end"#),
        ("", r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            r#"Failure("insufficient_system_resource") error insufficient_system_resource"#),
        ("", r#"{"choices":[{"delta":{"content":"a"}},{"delta":{},"finish_reason":"stop"}]}"#, "output Stop end"),
        ("", r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#, "3/2"),
        ("", r#"{"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":2}}"#, "3/2"),
        ("", r#"{"usage":{"prompt_tokens":3.0}}"#, "3/?"),
        ("", r#"{"choices":[],"x_groq":{"id":"a","usage":{"prompt_tokens":3,"completion_tokens":2}}}"#, "3/2"),
        ("", r#"{"choices":[],"usage":null}"#, ""),
        ("", r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#, ""),
        ("", r#"{"error":{"message":"x","type":"server_error"}}"#, "error -"),
        ("error", r#"{"error":{"message":"x"}}"#, "error error"),
        ("", r#"{"id":"x","choices":[],"error":{"code":502}}"#, "error -"),
        ("", r#"{"error":{"code":"x"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#, r#"Failure("error") error error"#),
        ("", r#"{"error":null,"choices":[{"delta":{"content":"Hi"}}]}"#, "output"),
        ("", r#"{"error":"","choices":[{"delta":{"content":"Hi"}}]}"#, "output"),
        ("", r#"{"error":false,"choices":[{"delta":{"content":"Hi"}}]}"#, "output"),
        ("", r#"{"error":{},"choices":[]}"#, "error -"),
        ("", r#"{"error":"too long","code":"x"}"#, "error -"),
        ("", r#"{"object":"error","message":"x","code":400}"#, "error -"),
        ("", r#"{"error_type":"validation_error","error_message":"x"}"#, "error -"),
        ("", r#"{"choices":[{"delta":{"content":"{\"error\":{}} [DONE] overloaded_error"}}]}"#, "output"),
        ("", r#"{"choices":[{"delta":{"content":"a","error":"b"},"content_filter_results":{"error":{"code":"c"}}}]}"#, "output"),
        ("", "[DONE]", ""),
        ("", "", ""),
        ("", "upstream timed out", "malformed"),
        ("", r#"{"choices":[{"delta":{"content":"Hi"#, "malformed"),
        ("error", "upstream timed out", "error error"),
        ("", r#"{"choices":"none"}"#, ""),
        ("", r#"{"choices":7,"error":"x"}"#, "error -"),
        ("", "[]", ""),
        ("", "17", ""),
        ("", "null", ""),
    ]);
}

#[test]
#[rustfmt::skip]
fn openai_responses() {
    check(Dialect::OpenAiResponses, &[
        ("response.created", r#"{"type":"response.created","response":{"status":"in_progress","error":null,"output":[],"usage":null}}"#, ""),
        ("", r#"{"type":"response.in_progress","response":{}}"#, ""),
        ("", r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#, ""),
        ("", r#"{"type":"response.content_part.added","part":{"type":"output_text","text":""}}"#, ""),
        ("", r#"{"type":"response.output_text.delta","delta":"Hi","logprobs":[]}"#, "output"),
        ("", r#"{"type":"response.output_text.delta","delta":""}"#, ""),
        ("", r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#, "output"),
        ("", r#"{"type":"response.refusal.delta","delta":"no"}"#, "output"),
        ("", r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#, "output open"),
        ("", r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#, "output"),
        ("", r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}"#, "output"),
        ("", r#"{"type":"response.output_text.done","text":"Hi"}"#, "output"),
        ("", r#"{"type":"response.completed","response":{"error":null,"output":[],"usage":{"input_tokens":3,"output_tokens":2}}}"#, "Stop end 3/2"),
        ("", r#"{"type":"response.completed","response":{"output":[{"type":"message"}]}}"#, "output Stop end"),
        ("", r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#, "Length end"),
        ("", r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#, r#"Policy("content_filter") end"#),
        ("", r#"{"type":"response.incomplete","response":{}}"#, "Stop end"),
        ("response.failed", r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded"}}}"#, "error response.failed"),
        ("error", r#"{"type":"error","code":"insufficient_quota","message":"x"}"#, "error error"),
        ("", r#"{"type":"error","code":"insufficient_quota"}"#, "error -"),
        ("", r#"{"error":{"message":"x"}}"#, "error -"),
        ("", "[DONE]", ""),
    ]);
}

#[test]
#[rustfmt::skip]
fn anthropic_messages() {
    check(Dialect::Anthropic, &[
        ("message_start", r#"{"type":"message_start","message":{"content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}"#, "7/1"),
        ("content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, ""),
        ("content_block_start", r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":""}}"#, ""),
        ("content_block_start", r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#, "output open"),
        ("content_block_start", r#"{"type":"content_block_start","content_block":{"type":"server_tool_use","name":"f"}}"#, "output open"),
        ("content_block_start", r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"x"}}"#, "output"),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#, "output"),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}"#, ""),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#, "output"),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"s"}}"#, "output"),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"pa"}}"#, "output"),
        ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}"#, ""),
        ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#, ""),
        ("ping", r#"{"type":"ping"}"#, ""),
        ("ping", "", ""),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#, "Stop end ?/5"),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#, "Length end"),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#, r#"Policy("refusal") end"#),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":null}}"#, ""),
        ("message_stop", r#"{"type":"message_stop"}"#, ""),
        ("error", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "error error"),
        ("", r#"{"type":"error","error":{"type":"api_error"}}"#, "error -"),
        ("error", "Overloaded", "error error"),
        ("error", "", "error error"),
        ("content_block_delta", "oops", "malformed"),
    ]);
}

#[test]
#[rustfmt::skip]
fn gemini() {
    check(Dialect::Gemini, &[
        ("", r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}]}"#, "output"),
        ("", r#"{"candidates":[{"content":{"parts":[{"text":""}]}}],"usageMetadata":{"promptTokenCount":3}}"#, "3/?"),
        ("", r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}"#, "output"),
        ("", r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#, "output"),
        ("", r#"{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":4}}"#, "output Stop end 3/6"),
        ("", r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#, "Length end"),
        ("", r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, r#"Policy("safety") end"#),
        ("", r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#, r#"Failure("malformed_function_call") error malformed_function_call"#),
        ("", r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, r#"Policy("prompt_blocked") end"#),
        ("", r#"{"promptFeedback":{},"candidates":[]}"#, ""),
        ("", r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, "error -"),
        ("", r#"[{"error":{"code":429}}]"#, "error -"),
        ("", r#"[{"candidates":[{"finishReason":"STOP"}]}]"#, "Stop end"),
    ]);
}

#[test]
#[rustfmt::skip]
fn bedrock() {
    check(Dialect::Bedrock, &[
        ("messageStart", r#"{"role":"assistant"}"#, ""),
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}"#, "output open"),
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":{}}"#, ""),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hi"}}"#, "output"),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":""}}"#, ""),
        ("contentBlockDelta", r#"{"delta":{"reasoningContent":{"text":"hm"}}}"#, "output"),
        ("contentBlockDelta", r#"{"delta":{"reasoningContent":{"text":""}}}"#, ""),
        ("contentBlockDelta", r#"{"delta":{"toolUse":{"input":"{"}}}"#, "output"),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#, ""),
        ("messageStop", r#"{"stopReason":"end_turn"}"#, "Stop end"),
        ("messageStop", r#"{"stopReason":"guardrail_intervened"}"#, r#"Policy("guardrail_intervened") end"#),
        ("messageStop", r#"{"stopReason":"malformed_model_output"}"#, r#"Failure("malformed_model_output") error malformed_model_output"#),
        ("metadata", r#"{"usage":{"inputTokens":3,"outputTokens":1},"metrics":{"latencyMs":120}}"#, "3/1"),
    ]);
    let exception = StreamEvent {
        is_exception: true,
        ..event("throttlingException", r#"{"message":"slow"}"#)
    };
    let mut reader = StreamReader::new(Dialect::Bedrock);
    let error = reader.read(&exception).error.unwrap();
    assert_eq!((error.name, error.data), (Some("throttlingException"), &exception.data[..]));
}

#[test]
#[rustfmt::skip]
fn cohere() {
    check(Dialect::Cohere, &[
        ("message-start", r#"{"type":"message-start","id":"a","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[]}}}"#, ""),
        ("content-start", r#"{"type":"content-start","delta":{"message":{"content":{"type":"text","text":""}}}}"#, ""),
        ("content-delta", r#"{"type":"content-delta","delta":{"message":{"content":{"text":"Hi"}}}}"#, "output"),
        ("content-delta", r#"{"type":"content-delta","delta":{"message":{"content":{"thinking":"hm"}}}}"#, "output"),
        ("content-end", r#"{"type":"content-end","index":0}"#, ""),
        ("tool-plan-delta", r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I"}}}"#, "output"),
        ("tool-call-start", r#"{"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":"a","function":{"name":"f"}}}}}"#, "output open"),
        ("tool-call-delta", r#"{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{"}}}}}"#, "output"),
        ("tool-call-end", r#"{"type":"tool-call-end"}"#, ""),
        ("message-end", r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":3.0,"output_tokens":2}}}}"#, "Stop end 3/2"),
        ("message-end", r#"{"type":"message-end","delta":{"finish_reason":"ERROR"}}"#, r#"Failure("error") error error"#),
        ("message-end", r#"{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}"#, r#"Failure("timeout") error timeout"#),
        ("message-end", r#"{"type":"message-end"}"#, "Stop end"),
        ("", r#"{"is_finished":false,"event_type":"stream-start"}"#, ""),
        ("", r#"{"is_finished":false,"event_type":"text-generation","text":"Hi"}"#, "output"),
        ("", r#"{"is_finished":true,"event_type":"stream-end","finish_reason":"MAX_TOKENS","response":{"text":"Hi","meta":{"tokens":{"input_tokens":3,"output_tokens":1}}}}"#, "Length end 3/1"),
        ("", r#"{"is_finished":true,"event_type":"stream-end","finish_reason":"ERROR_TOXIC"}"#, r#"Policy("error_toxic") end"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn ollama() {
    check(Dialect::Ollama, &[
        ("", r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}"#, "output"),
        ("", r#"{"model":"m","message":{"role":"assistant","content":""},"done":false}"#, ""),
        ("", r#"{"message":{"content":"","thinking":"hm"},"done":false}"#, "output"),
        ("", r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f"}}]},"done":false}"#, "output"),
        ("", r#"{"response":"Hi","done":false}"#, "output"),
        ("", r#"{"response":"","done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":1}"#, "Stop end 3/1"),
        ("", r#"{"done":true}"#, "Stop end ?/?"),
        ("", r#"{"done":true,"done_reason":"length"}"#, "Length end ?/?"),
        ("", r#"{"error":"an error was encountered while running the model"}"#, "error -"),
    ]);
}

/// Reads the events in their order; what the last one says, and the reader.
fn read_all(dialect: Dialect, events: &[(&str, &str)]) -> (bool, StreamReader) {
    let mut reader = StreamReader::new(dialect);
    let mut is_end = false;
    for (name, data) in events {
        let event = event(name, data);
        is_end = reader.read(&event).end;
    }
    (is_end, reader)
}

const TEXT: (&str, &str) = ("", r#"{"choices":[{"delta":{"content":"Hi"}}]}"#);
const STOP: (&str, &str) = ("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
const ERROR: (&str, &str) = ("", r#"{"error":{"code":500}}"#);
const DONE: (&str, &str) = ("", "[DONE]");
const USAGE: (&str, &str) = (
    "",
    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
);

#[test]
fn report_56_an_answer_is_complete_at_a_finish_or_at_done_after_content() {
    for (events, is_end, is_complete) in [
        (&[TEXT][..], false, false),
        (&[TEXT, STOP], true, true),
        (&[TEXT, DONE], true, true),
        (&[DONE], false, false),
        (&[USAGE, DONE], false, false),
        (&[STOP], true, true),
        (&[STOP, USAGE], false, true),
        (&[TEXT, ERROR, DONE], false, false),
        (&[TEXT, ERROR, STOP], false, false),
        (&[], false, false),
    ] {
        let (end, reader) = read_all(Dialect::OpenAiChat, events);
        assert_eq!(
            (end, reader.is_complete()),
            (is_end, is_complete),
            "{events:?}"
        );
    }
}

#[test]
fn report_45_what_only_keeps_a_connection_open_is_no_progress() {
    let keepers = [
        ": OPENROUTER PROCESSING\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: ping\n\n",
        "\n",
        "id: 7\n\n",
        "data:\n\n",
    ];
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenAiChat,
        Dialect::OpenAiResponses,
    ] {
        let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
        let mut reader = StreamReader::new(dialect);
        let mut rest = keepers.concat().into_bytes();
        while let Some(scanned) = scanner.scan(&rest) {
            if let Piece::Event(event) = &scanned.piece {
                assert_eq!(reader.read(event), Seen::default(), "{event:?}");
            }
            let end = scanned.end;
            rest.drain(..end);
        }
        assert!(rest.is_empty(), "a heartbeat is passed on when it comes");
    }
}

#[test]
fn report_58_an_error_beside_empty_choices_is_an_error() {
    let first = (
        "",
        r#"{"id":"x","choices":[],"error":{"code":502,"message":"x"}}"#,
    );
    let last = (
        "",
        r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502}}"#,
    );
    for events in [&[first, DONE][..], &[TEXT, TEXT, last], &[TEXT, last, DONE]] {
        let (_, reader) = read_all(Dialect::OpenAiChat, events);
        assert!(!reader.is_complete(), "{events:?}");
    }
}

#[test]
fn report_69_how_responses_end() {
    let delta = ("", r#"{"type":"response.output_text.delta","delta":"Hi"}"#);
    let completed = (
        "",
        r#"{"type":"response.completed","response":{"output":[]}}"#,
    );
    let incomplete = ("", r#"{"type":"response.incomplete","response":{}}"#);
    let failed = (
        "",
        r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#,
    );
    for (events, is_complete) in [
        (&[delta, completed][..], true),
        (&[delta, incomplete], true),
        (&[delta, failed], false),
        (&[delta, DONE], false),
        (&[delta], false),
    ] {
        let (_, reader) = read_all(Dialect::OpenAiResponses, events);
        assert_eq!(reader.is_complete(), is_complete, "{events:?}");
    }
}

#[test]
fn a_list_of_any_length_is_read_to_its_end() {
    let many = r#"{"delta":{}},"#.repeat(50_000);
    let data = format!(r#"{{"choices":[{many}{{"delta":{{"content":"Hi"}}}}]}}"#);
    assert!(read_all(Dialect::OpenAiChat, &[("", &data)]).1.has_output());
}

#[test]
fn report_59_usage_is_kept_wherever_it_comes() {
    let (_, reader) = read_all(Dialect::OpenAiChat, &[TEXT, STOP, USAGE, DONE]);
    let expected = Usage {
        input_tokens: Some(3),
        output_tokens: Some(2),
    };
    assert_eq!(reader.usage(), expected);
    let begin =
        r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#;
    let (_, reader) = read_all(
        Dialect::Anthropic,
        &[("message_start", begin), ("message_delta", end)],
    );
    let expected = Usage {
        input_tokens: Some(9),
        output_tokens: Some(5),
    };
    assert_eq!(reader.usage(), expected);
}

#[test]
fn report_57_a_tool_call_is_open_until_it_is_whole() {
    let call = (
        "",
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"p"}}]}}]}"#,
    );
    let broken = ("", "oops");
    for (events, is_open) in [
        (&[TEXT][..], false),
        (&[call], true),
        (&[call, USAGE], true),
        (&[call, broken], true),
        (&[call, STOP], false),
    ] {
        assert_eq!(
            read_all(Dialect::OpenAiChat, events).1.is_tool_call_open(),
            is_open,
            "{events:?}"
        );
    }
    let start = (
        "",
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}"#,
    );
    let delta = (
        "",
        r#"{"type":"content_block_delta","delta":{"partial_json":"{"}}"#,
    );
    let stop = ("", r#"{"type":"content_block_stop"}"#);
    assert!(
        read_all(Dialect::Anthropic, &[start, delta])
            .1
            .is_tool_call_open()
    );
    assert!(
        !read_all(Dialect::Anthropic, &[start, delta, stop])
            .1
            .is_tool_call_open()
    );
    let added = (
        "",
        r#"{"type":"response.output_item.added","item":{"type":"function_call"}}"#,
    );
    let done = (
        "",
        r#"{"type":"response.output_item.done","item":{"type":"function_call"}}"#,
    );
    assert!(
        read_all(Dialect::OpenAiResponses, &[added])
            .1
            .is_tool_call_open()
    );
    assert!(
        !read_all(Dialect::OpenAiResponses, &[added, done])
            .1
            .is_tool_call_open()
    );
}

#[test]
fn only_what_the_model_made_is_output() {
    assert!(
        !read_all(Dialect::OpenAiChat, &[STOP, USAGE, DONE])
            .1
            .has_output()
    );
    assert!(read_all(Dialect::OpenAiChat, &[TEXT]).1.has_output());
}

#[test]
fn data_that_is_no_utf8_is_no_json() {
    let event = StreamEvent {
        data: b"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}"[..].into(),
        ..StreamEvent::default()
    };
    let mut reader = StreamReader::new(Dialect::OpenAiChat);
    let seen = reader.read(&event);
    assert!(seen.malformed && !seen.is_content());
}

#[test]
fn debug_forms_hold_no_data() {
    let event = event("error", r#"{"error":{"message":"key sk-secret"}}"#);
    let mut reader = StreamReader::new(Dialect::OpenAiChat);
    let seen: Seen<'_> = reader.read(&event);
    assert!(!format!("{event:?}").contains("secret"));
    assert_eq!(
        format!("{:?}", seen.error.unwrap()),
        r#"ErrorEvent { name: Some("error"), bytes: 37, .. }"#
    );
}
