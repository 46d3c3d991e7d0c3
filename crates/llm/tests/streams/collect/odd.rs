//! What servers send beside the book: calls without an index, arguments as objects, content in parts, whole answers at
//! the end; and models that stop too early.

use fuseline_llm::{
    Completion, Dialect, Finish, Framing, Incomplete, IncompleteReason, StreamEnding,
};

use super::{collect, ended};

fn said(dialect: Dialect, events: &[&str]) -> Result<Completion, Incomplete> {
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    collect((dialect, Framing::Sse), &[stream.as_bytes()])
}

fn chat(deltas: &[&str], finish: &str) -> Result<Completion, Incomplete> {
    let mut events: Vec<_> = deltas
        .iter()
        .map(|delta| format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#))
        .collect();
    events.push(format!(
        r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#
    ));
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    said(Dialect::OpenAiChat, &events)
}

fn calls(answer: Result<Completion, Incomplete>) -> Vec<(String, String, String)> {
    let calls = answer.unwrap().tool_calls.into_iter();
    calls
        .map(|call| (call.id, call.name, call.arguments))
        .collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn calls_of_one_index_are_told_apart_by_their_ids() {
    let deltas = [
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"n\":"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}"#,
    ];
    let expected = [call("a", "f", r#"{"n":1}"#), call("b", "g", r#"{"n":2}"#)];
    assert_eq!(calls(chat(&deltas, "tool_calls")), expected);
}

#[test]
fn calls_without_an_index_follow_one_another() {
    let deltas = [
        r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"function":{"arguments":"{\"n\":1}"}}]}"#,
        r#"{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"n":2}}}]}"#,
    ];
    let expected = [call("a", "f", r#"{"n":1}"#), call("b", "g", r#"{"n":2}"#)];
    assert_eq!(calls(chat(&deltas, "tool_calls")), expected);
}

#[test]
fn calls_of_the_first_form_and_tools_of_plain_text_are_collected() {
    let deltas = [
        r#"{"function_call":{"name":"f","arguments":"{\"n\""}}"#,
        r#"{"function_call":{"arguments":":1}"}}"#,
    ];
    assert_eq!(
        calls(chat(&deltas, "function_call")),
        [call("", "f", r#"{"n":1}"#)]
    );
    let delta = r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"ls \"a\""}}]}"#;
    assert_eq!(
        calls(chat(&[delta], "tool_calls")),
        [call("a", "sh", "ls \"a\"")]
    );
    let cut = chat(&[delta], "length").unwrap_err();
    assert_eq!(cut.reason, IncompleteReason::ToolCall);
}

#[test]
fn content_in_parts_and_refusals_are_text() {
    let deltas = [
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Hi "}]}"#,
        r#"{"refusal":"no"}"#,
    ];
    let answer = chat(&deltas, "stop").unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.reasoning.as_str()),
        ("Hi no", "Hm.")
    );
    let answer = said(
        Dialect::OpenAiChat,
        &[r#"{"choices":[{"text":"old","finish_reason":"stop"}]}"#],
    );
    assert_eq!(answer.unwrap().text, "old");
}

#[test]
fn a_response_that_comes_whole_at_its_end_is_collected() {
    let event = r#"{"type":"response.completed","response":{"output":[
        {"type":"message","content":[{"type":"output_text","text":"Hi"}]},
        {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
        {"type":"custom_tool_call","call_id":"b","name":"sh","input":"ls"}]}}"#;
    let answer = said(Dialect::OpenAiResponses, &[&event.replace('\n', "")]).unwrap();
    assert_eq!(answer.text, "Hi");
    assert_eq!(
        calls(Ok(answer)),
        [call("a", "f", "{}"), call("b", "sh", "ls")]
    );
}

#[test]
fn a_model_that_is_stopped_in_a_tool_call_gives_no_tool_call() {
    for arguments in ["", r#"{\"path\":\"a"#, r#"{\"n\":12"#] {
        let delta = format!(
            r#"{{"content":"so","tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
        );
        let incomplete = chat(&[&delta], "length").unwrap_err();
        assert_eq!(incomplete.reason, IncompleteReason::ToolCall, "{arguments}");
        assert_eq!(incomplete.text, "so");
    }
    let whole =
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":12}"}}]}"#;
    let answer = chat(&[whole], "length").unwrap();
    assert_eq!(
        (answer.finish, answer.tool_calls.len()),
        (Finish::Length, 1)
    );
}

#[test]
fn arguments_that_are_no_object_are_not_handed_out_even_after_a_finish() {
    for arguments in ["{\\\"a\\\":", "12", "[]", "{} {}"] {
        let delta = format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
        );
        let incomplete = chat(&[&delta], "tool_calls").unwrap_err();
        assert_eq!(incomplete.reason, IncompleteReason::ToolCall, "{arguments}");
    }
    let nameless = r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#;
    assert!(chat(&[nameless], "tool_calls").is_err());
}

#[test]
fn half_a_letter_that_never_becomes_whole_is_no_answer() {
    let incomplete = chat(&[r#"{"content":"so \ud83d"}"#], "stop").unwrap_err();
    assert_eq!(incomplete.reason, ended(StreamEnding::Malformed));
    assert_eq!(incomplete.text, "so ");
}

#[test]
fn report_58_and_69_errors_and_unknown_ends_are_no_answers() {
    let content = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let error = r#"{"choices":[{"delta":{},"finish_reason":"error"}],"error":{"code":502}}"#;
    let incomplete = said(Dialect::OpenAiChat, &[content, error, "[DONE]"]).unwrap_err();
    assert_eq!(incomplete.reason, ended(StreamEnding::Error));
    let empty = r#"{"choices":[],"error":{"code":502,"message":"x"}}"#;
    let incomplete = said(Dialect::OpenAiChat, &[empty, "[DONE]"]).unwrap_err();
    assert_eq!(incomplete.reason, ended(StreamEnding::Error));

    let delta = r#"{"type":"response.output_text.delta","delta":"Hi"}"#;
    for (end, expected) in [
        (r#"{"type":"response.completed"}"#, Ok(Finish::Stop)),
        (
            r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
            Ok(Finish::Length),
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error"}}}"#,
            Err(StreamEnding::Error),
        ),
        ("", Err(StreamEnding::Truncated)),
        ("[DONE]", Err(StreamEnding::Truncated)),
    ] {
        let seen = said(Dialect::OpenAiResponses, &[delta, end]);
        let seen = seen
            .map(|answer| answer.finish)
            .map_err(|incomplete| incomplete.reason);
        assert_eq!(seen, expected.map_err(ended), "{end}");
    }
}

#[test]
fn report_59_the_count_of_tokens_comes_in_any_form() {
    for usage in [
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#,
        r#"{"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        r#"{"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":2}}}"#,
    ] {
        let content = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        let answer = said(Dialect::OpenAiChat, &[content, usage, "[DONE]"]).unwrap();
        let tokens = (answer.usage.input_tokens, answer.usage.output_tokens);
        assert_eq!(tokens, (Some(3), Some(2)), "{usage}");
    }
}
