//! Success answers of every dialect: usable or not.

use std::time::SystemTime;

use fuseline_core::Kind;
use fuseline_llm::{Answer, Body, Classifier, Ending, Evidence, Fault, Head, Operation, Verdict};

const NONE: &[(&str, &str)] = &[];

fn of(provider: &str, operation: Operation, body: Body<'_>) -> Verdict {
    let answer = Answer {
        provider,
        operation,
        head: Some(Head::new(200, &NONE)),
        body,
        ending: Ending::Complete,
    };
    Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH)
}

fn plain(body: &str) -> Verdict {
    of("", Operation::Create, Body::Whole(body.as_bytes()))
}

#[test]
fn answers_with_something_in_them_are_good() {
    for body in [
        r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":[{"type":"text","text":"Hi"}]},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":null,"refusal":"I cannot"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":"","reasoning_content":"hm"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":"","function_call":{"name":"f"}},"finish_reason":"function_call"}]}"#,
        r#"{"choices":[{"text":"","finish_reason":"length"}]}"#,
        // One odd field, or one that stands twice, says nothing against the others.
        r#"{"choices":[null,{"message":{"content":"Hi"},"finish_reason":7}],"usage":"none","error":null}"#,
        r#"{"choices":[],"choices":[{"message":{"content":"","content":"Hi"}}]}"#,
        r#"{"choices":[{"text":" more","finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"},{"message":{"content":"x"},"finish_reason":"stop"}]}"#,
        r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#,
        r#"{"object":"response","status":"completed","error":null,"output":[{"type":"function_call","name":"f","arguments":"{}"}]}"#,
        r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","summary":[]}]}"#,
        r#"{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}"#,
        r#"{"object":"list","data":[{"object":"embedding","embedding":[0.1,0.2]}]}"#,
        r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#,
        r#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"}"#,
        r#"{"type":"message","content":[],"stop_reason":"max_tokens"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}]}"#,
        r#"[{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]},{"candidates":[{"finishReason":"STOP"}]}]"#,
        r#"{"embedding":{"values":[0.1]}}"#,
        r#"{"message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"finish_reason":"COMPLETE"}"#,
        r#"{"message":{"role":"assistant","tool_plan":"first","tool_calls":[{"id":"a"}]},"finish_reason":"TOOL_CALL"}"#,
        r#"{"text":"Hi","generation_id":"g","finish_reason":"COMPLETE"}"#,
        r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}"#,
        r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f"}}]},"done":true}"#,
        r#"{"model":"m","response":"Hi","done":true}"#,
        r#"{"model":"m","response":"","done":true,"done_reason":"load"}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn"}"#,
        r#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"name":"f"}}]}},"stopReason":"tool_use"}"#,
        r#"[{"generated_text":"Hi"}]"#,
        r#"{"id":"file-1","object":"file","purpose":"batch"}"#,
        r#"{"input_tokens": 12}"#,
        "{}",
        "1\n00:00:00 --> 00:00:01\nSubtitles are text",
    ] {
        assert_eq!(plain(body), Verdict::success(), "{body}");
    }
    let sound = of(
        "openai",
        Operation::Create,
        Body::Whole(&[0xff, 0xfb, 0x90, 0x00]),
    );
    assert_eq!(sound, Verdict::success());
}

#[test]
fn report_31_answers_with_nothing_in_them_are_failures() {
    for body in [
        " \n\t",
        "\n\n\n",
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":0}}"#,
        r#"{"choices":[{"message":{"content":" \n\t "},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"message":{"content":null},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[{"message":{"content":[{"type":"text","text":""}]},"finish_reason":"stop"}]}"#,
        r#"{"object":"response","status":"completed","output":[]}"#,
        r#"{"object":"response","status":"completed","output":[{"type":"message","content":[]}]}"#,
        r#"{"object":"list","data":[]}"#,
        r#"{"type":"message","content":[],"stop_reason":"end_turn"}"#,
        r#"{"type":"message","content":[{"type":"text","text":"  "}],"stop_reason":"end_turn"}"#,
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[]}"#,
        r#"{"message":{"role":"assistant","content":[]},"finish_reason":"COMPLETE"}"#,
        r#"{"text":"","finish_reason":"COMPLETE"}"#,
        r#"{"model":"m","response":"","done":true,"done_reason":"stop"}"#,
        r#"{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn"}"#,
        r#"[]"#,
        "data: [DONE]\n\n",
        r#"{"choices":[{"message":{"content":"cut in the mid"#,
    ] {
        let verdict = plain(body);
        assert_eq!(verdict.kind, Some(Kind::EmptyResponse), "{body}");
        assert!(verdict.provider_fault && verdict.retryable, "{body}");
        assert_eq!(verdict.evidence, Evidence::NoContent, "{body}");
    }
    assert_eq!(plain("").evidence, Evidence::EmptyBody);
}

#[test]
fn errors_in_success_answers_have_the_kind_that_they_name() {
    for (provider, body, kind) in [
        (
            "",
            r#"{"error":{"message":"x","type":"overloaded_error"}}"#,
            Kind::Overloaded,
        ),
        ("", r#"{"error":{"code":401,"message":"x"}}"#, Kind::Auth),
        (
            "",
            r#"{"error":{"code":"insufficient_quota","message":"x"}}"#,
            Kind::QuotaExhausted,
        ),
        ("", r#"{"error":"something broke"}"#, Kind::ServerError),
        (
            "",
            r#"[{"error":{"code":503,"status":"UNAVAILABLE"}}]"#,
            Kind::Overloaded,
        ),
        (
            "",
            r#"{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}"#,
            Kind::RateLimit,
        ),
        (
            "cloudflare_workers_ai",
            r#"{"result":null,"success":false,"errors":[{"code":3040,"message":"x"}]}"#,
            Kind::Overloaded,
        ),
        (
            "minimax",
            r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"x"}}"#,
            Kind::QuotaExhausted,
        ),
        (
            "",
            r#"{"promptFeedback":{"blockReason":"OTHER"}}"#,
            Kind::ContentPolicy,
        ),
        (
            "",
            r#"{"type":"message","content":[],"stop_reason":"refusal"}"#,
            Kind::ContentPolicy,
        ),
        (
            "",
            r#"{"finish_reason":"ERROR","text":"x"}"#,
            Kind::ServerError,
        ),
        (
            "",
            "<!DOCTYPE html><html><title>Log in</title></html>",
            Kind::ServerError,
        ),
        (
            "",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            Kind::Overloaded,
        ),
    ] {
        assert_eq!(
            of(provider, Operation::Create, Body::Whole(body.as_bytes())).kind,
            Some(kind),
            "{body}"
        );
    }
}

#[test]
fn what_the_model_wrote_is_no_evidence() {
    let quoted =
        r#"{\"error\":{\"code\":429,\"type\":\"insufficient_quota\"}} rate limit, overloaded"#;
    for body in [
        format!(r#"{{"choices":[{{"message":{{"content":"{quoted}"}},"finish_reason":"stop"}}]}}"#),
        format!(r#"{{"type":"message","content":[{{"type":"text","text":"{quoted}"}}],"stop_reason":"end_turn"}}"#),
        r#"{"choices":[{"message":{"content":"x"},"content_filter_results":{"error":{"code":"content_filter_error"}},"finish_reason":"stop"}]}"#.to_owned(),
        r#"{"type":"message","content":[{"type":"tool_use","name":"f","input":{"error":{"code":429}}}],"stop_reason":"tool_use"}"#.to_owned(),
    ] {
        assert_eq!(plain(&body), Verdict::success(), "{body}");
    }
}

#[test]
fn where_no_answer_was_asked_for_nothing_is_looked_into() {
    for body in ["", r#"{"error":{"code":429}}"#, "<html>", r#"{"data":[]}"#] {
        assert_eq!(
            of("openai", Operation::Other, Body::Whole(body.as_bytes())),
            Verdict::success()
        );
    }
    assert_eq!(
        of("openai", Operation::Create, Body::Unread),
        Verdict::success()
    );
    assert_eq!(
        of("openai", Operation::Create, Body::Cut(b"{\"choices\":[")),
        Verdict::success()
    );
}

#[test]
fn a_body_that_broke_off_is_no_answer() {
    let answer = Answer {
        provider: "openai",
        operation: Operation::Create,
        head: Some(Head::new(200, &NONE)),
        body: Body::Whole(b"{\"choices\":["),
        ending: Ending::Broken(Fault::Reset),
    };
    let verdict = Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH);
    assert_eq!(
        (verdict.kind, verdict.evidence),
        (Some(Kind::Network), Evidence::Fault(Fault::Reset))
    );
}

#[test]
fn an_answer_within_answers_is_looked_into_once_however_deep_it_goes() {
    let within = |levels: usize| {
        let opened = r#"{"type":"response.completed","response":"#.repeat(levels);
        let said =
            r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#;
        plain(&(opened + said + &"}".repeat(levels)))
    };
    assert!(within(1).is_success());
    assert_eq!(within(20_000).kind, within(2).kind);
}
