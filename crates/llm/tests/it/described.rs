//! Shapes that providers describe or clients report, beyond the recorded ones: the rules must know more than examples.

use std::time::SystemTime;

use fuseline_core::{Kind, Scope};
use fuseline_llm::{Answer, Body, Classifier, Ending, Event, Head, Operation, Transcript, Verdict};

pub(crate) fn on(provider: &str, status: u16, headers: &[(&str, &str)], body: &str) -> Verdict {
    let answer = Answer {
        provider,
        operation: Operation::Create,
        head: Some(Head::new(status, &headers)),
        body: Body::Whole(body.as_bytes()),
        ending: Ending::Complete,
    };
    Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH)
}

fn error(code: &str, kind: &str, message: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        .to_string()
}

#[test]
#[rustfmt::skip]
fn codes_and_wording_of_each_provider() {
    use Kind::{Auth, BadRequest, ContentPolicy, ContextLength, NotFound, Overloaded, Permission, QuotaExhausted, RateLimit, ServerError, Timeout};
    let invalid = "invalid_request_error";
    for (provider, status, body, kind) in [
        ("openai", 429, error("insufficient_quota", "insufficient_quota", "x"), QuotaExhausted),
        ("openai", 429, error("", "insufficient_quota", "x"), QuotaExhausted),
        ("openai", 429, error("project_spend_limit_exceeded", "insufficient_quota", "x"), QuotaExhausted),
        ("openai", 401, error("invalid_api_key", invalid, "Incorrect API key provided"), Auth),
        ("openai", 401, error("account_deactivated", invalid, "x"), Auth),
        ("openai", 403, error("unsupported_country_region_territory", "request_forbidden", "x"), Permission),
        ("openai", 429, error("", "server_error", "That model is currently overloaded with other requests."), Overloaded),
        ("openai", 503, error("", "server_error", "The engine is currently overloaded, please try again later"), Overloaded),
        ("openai", 409, error("", "conflict", "x"), BadRequest),
        ("openai", 404, r#"{"error":{"message":"Previous response with id 'resp_1' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}"#.into(), BadRequest),
        ("azure_openai", 429, error("429", "", "Requests have exceeded token rate limit of your current pricing tier. Please retry after 45 seconds."), RateLimit),
        ("azure_openai", 404, error("404", "", "Resource not found"), NotFound),
        ("azure_openai", 403, r#"{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 2.12 days."}"#.into(), QuotaExhausted),
        ("anthropic", 400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#.into(), QuotaExhausted),
        ("anthropic", 403, r#"{"error":{"type":"forbidden","message":"Request not allowed"}}"#.into(), Permission),
        ("anthropic", 404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#.into(), NotFound),
        ("anthropic", 401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#.into(), Auth),
        ("gemini", 403, r#"{"error":{"code":403,"message":"Your API key was reported as leaked. Please use another API key.","status":"PERMISSION_DENIED"}}"#.into(), Auth),
        ("gemini", 403, r#"{"error":{"code":403,"message":"Your project has been denied access.","status":"PERMISSION_DENIED"}}"#.into(), Permission),
        ("gemini", 429, r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"reason":"INSUFFICIENT_G1_CREDITS_BALANCE"}]}}"#.into(), QuotaExhausted),
        ("gemini", 503, r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#.into(), Overloaded),
        ("vertex", 403, r#"{"error":{"code":403,"errors":[{"reason":"dailyLimitExceeded"}]}}"#.into(), QuotaExhausted),
        ("vertex", 403, r#"{"error":{"code":403,"errors":[{"reason":"rateLimitExceeded"}]}}"#.into(), RateLimit),
        ("vertex", 500, r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}"#.into(), RateLimit),
        ("vertex", 400, r#"{"error":{"code":429,"message":"x"}}"#.into(), BadRequest),
        ("vertex", 401, r#"{"error":{"code":401,"status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_EXPIRED"}]}}"#.into(), Auth),
        ("bedrock", 429, r#"{"__type":"ThrottlingException","message":"Too many tokens per day, please wait before trying again."}"#.into(), QuotaExhausted),
        ("bedrock", 429, r#"{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}"#.into(), RateLimit),
        ("bedrock", 429, r#"{"__type":"ModelNotReadyException","message":"x"}"#.into(), Overloaded),
        ("bedrock", 424, r#"{"__type":"ModelErrorException","message":"x","originalStatusCode":500}"#.into(), ServerError),
        ("bedrock", 424, r#"{"__type":"ModelErrorException","message":"x","originalStatusCode":422}"#.into(), BadRequest),
        ("bedrock", 400, r#"{"__type":"ConflictException","message":"x"}"#.into(), BadRequest),
        ("bedrock", 400, r#"{"error":{"type":"validation_error","message":"prompt tokens (9000) exceed model maximum (8192)"}}"#.into(), ContextLength),
        ("mistral", 400, r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}"#.into(), NotFound),
        ("mistral", 503, r#"{"object":"error","message":"Service tier capacity exceeded for this model.","code":"3505"}"#.into(), Overloaded),
        ("cohere", 400, r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}"#.into(), ContextLength),
        ("cohere", 429, r#"{"message":"You are using a Trial key, which is limited to 10 API calls / minute."}"#.into(), RateLimit),
        ("together", 402, error("", "credit_limit", "Credit limit exceeded, please navigate to billing"), QuotaExhausted),
        ("together", 422, error("", invalid, "x"), BadRequest),
        ("fireworks", 408, r#"{"error":{"code":"TIMEOUT","message":"x"}}"#.into(), Timeout),
        ("deepseek", 400, error(invalid, invalid, "Content Exists Risk"), ContentPolicy),
        ("deepseek", 503, error("", "", "Service is too busy."), Overloaded),
        ("xai", 400, r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from the console."}"#.into(), Auth),
        ("xai", 429, r#"{"code":"Some resource has been exhausted","error":"Too many tokens for team 1 and model grok-4. Your team's rate limit is ..."}"#.into(), RateLimit),
        ("openrouter", 429, r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day. Add credits"}}"#.into(), QuotaExhausted),
        ("openrouter", 403, r#"{"error":{"code":403,"message":"x","metadata":{"provider_name":"OpenAI"}}}"#.into(), ServerError),
        ("openrouter", 400, r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}","provider_name":"Anthropic"}}}"#.into(), ContextLength),
        ("cloudflare_workers_ai", 429, r#"{"success":false,"errors":[{"code":4006,"message":"x"}]}"#.into(), QuotaExhausted),
        ("cloudflare_workers_ai", 400, r#"{"success":false,"errors":[{"code":5007,"message":"No such model"}]}"#.into(), NotFound),
        ("perplexity", 400, error("400", "invalid_model", "Invalid model 'x'"), NotFound),
        ("perplexity", 429, error("429", "request_rate_limit_exceeded", "x"), RateLimit),
        ("vllm", 404, error("404", "NotFoundError", "The model `x` does not exist."), NotFound),
        ("llama_cpp", 503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#.into(), Overloaded),
        ("ollama", 429, r#"{"error":"you've reached your hourly usage limit, please upgrade to continue"}"#.into(), RateLimit),
        ("tgi", 429, r#"{"error":"Model is overloaded","error_type":"overloaded"}"#.into(), Overloaded),
        ("tgi", 422, r#"{"error":"Input validation error: `inputs` must have less than 4096 tokens","error_type":"validation"}"#.into(), BadRequest),
        ("tgi", 424, r#"{"error":"Request failed during generation: x","error_type":"generation"}"#.into(), ServerError),
        ("huggingface", 503, r#"{"error":"Model x is currently loading","estimated_time":20.5}"#.into(), Overloaded),
        ("nvidia_nim", 400, r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"Function id 'x': DEGRADED function cannot be invoked"}"#.into(), Overloaded),
        ("", 498, r#"{"error":{"message":"x"}}"#.into(), BadRequest),
        ("", 424, r#"{"error":{"message":"x"}}"#.into(), BadRequest),
        ("", 400, r#"{"error":{"message":"token id 429 is out of range"}}"#.into(), BadRequest),
        ("", 500, r#"{"error":{"message":"rate limit service failed: insufficient quota, maximum context length"}}"#.into(), ServerError),
        ("", 502, "<html>502</html>".into(), ServerError),
        ("", 403, "<html>forbidden</html>".into(), Permission),
        ("", 413, r#"{"error":{"message":"Request too large for model on tokens per minute (TPM)","code":"rate_limit_exceeded"}}"#.into(), ContextLength),
        ("", 429, r#"[{"error":{"message":"{\"error\":{\"type\":\"insufficient_quota\"}}"}}]"#.into(), QuotaExhausted),
        ("", 429, "Error code: 429 - {\"error\": {\"code\": \"insufficient_quota\"}}".into(), QuotaExhausted),
        ("", 403, "Just a moment... <html>".into(), Permission),
    ] {
        let verdict = on(provider, status, &[], &body);
        assert_eq!(verdict.kind, Some(kind), "{provider} {status} {body}: {}", verdict.evidence);
    }
}

#[test]
fn scopes_and_faults_that_the_evidence_names() {
    let per_model = error("rate_limit_exceeded", "tokens", "x");
    assert_eq!(on("openai", 429, &[], &per_model).scope, Scope::Model);
    assert_eq!(on("", 429, &[], &per_model).scope, Scope::Key);
    let own_proxy = on("openai", 407, &[], "");
    assert_eq!(
        (own_proxy.kind, own_proxy.provider_fault),
        (Some(Kind::Network), false)
    );
    let challenge = on("openai", 503, &[("cf-mitigated", "challenge")], "<html>");
    assert_eq!(
        (challenge.kind, challenge.scope, challenge.provider_fault),
        (Some(Kind::Permission), Scope::Provider, true)
    );
    let forbidden = on(
        "openai",
        403,
        &[],
        &error("model_not_found", "invalid_request_error", "x"),
    );
    assert_eq!(
        (forbidden.kind, forbidden.scope),
        (Some(Kind::Permission), Scope::Model)
    );
}

#[test]
fn a_server_that_says_whether_to_retry_is_believed_in_that_alone() {
    for (says, status, retryable) in [
        ("false", 503, false),
        ("true", 400, true),
        ("True", 400, true),
        ("maybe", 400, false),
    ] {
        let verdict = on("openai", status, &[("x-should-retry", says)], "{}");
        assert_eq!(verdict.retryable, retryable, "{says}");
        assert_eq!(verdict.provider_fault, status == 503);
    }
}

#[test]
fn evidence_cites_the_rule_and_shows_nothing_of_the_body() {
    let secret = "sk-very-secret";
    let body = error(
        "insufficient_quota",
        secret,
        &format!("key {secret} of org-1 has no credit balance"),
    );
    let verdict = on("openai", 429, &[], &body);
    let shown = format!("{verdict:?} {}", verdict.evidence);
    assert!(
        !shown.contains(secret) && !shown.contains("org-1"),
        "{shown}"
    );
    assert!(
        shown.contains("common/spent-quota") && shown.contains("code insufficient_quota"),
        "{shown}"
    );
}

fn stream(events: &[(&str, &str)]) -> Verdict {
    let mut transcript = Transcript::default();
    for (name, data) in events {
        transcript.note(&Event { name, data });
    }
    let answer = Answer {
        provider: "",
        operation: Operation::Create,
        head: Some(Head::new(200, &(&[] as &[(&str, &str)]))),
        body: Body::Stream(&transcript),
        ending: Ending::Complete,
    };
    Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH)
}

#[test]
fn report_56_what_ends_a_stream_well() {
    let delta = ("", r#"{"choices":[{"delta":{"content":"Hi"}}]}"#);
    let finish = ("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    let done = ("", "[DONE]");
    assert_eq!(stream(&[delta]).kind, Some(Kind::StreamTruncated));
    assert_eq!(stream(&[delta, finish]), Verdict::success());
    assert_eq!(stream(&[delta, done]), Verdict::success());
    assert_eq!(stream(&[]).kind, Some(Kind::EmptyResponse));
    assert_eq!(stream(&[done]).kind, Some(Kind::EmptyResponse));
    assert_eq!(
        stream(&[
            (
                "",
                r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#
            ),
            done
        ])
        .kind,
        Some(Kind::EmptyResponse)
    );
    assert_eq!(stream(&[finish, done]).kind, Some(Kind::EmptyResponse));
    let error = ("error", "the model is on fire");
    assert_eq!(
        stream(&[delta, error, finish, done]).kind,
        Some(Kind::ServerError)
    );
}

#[test]
fn report_49_and_51_errors_in_streams_have_their_kind() {
    for (name, data, kind) in [
        (
            "error",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            Kind::Overloaded,
        ),
        (
            "error",
            r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#,
            Kind::ServerError,
        ),
        (
            "error",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"x"}}"#,
            Kind::BadRequest,
        ),
        (
            "error",
            r#"{"type":"error","error":{"type":"authentication_error","message":"x"}}"#,
            Kind::Auth,
        ),
        (
            "error",
            r#"{"type":"error","error":{"type":"permission_error","message":"x"}}"#,
            Kind::Permission,
        ),
        (
            "error",
            r#"{"type":"error","error":{"type":"timeout_error","message":"x"}}"#,
            Kind::Timeout,
        ),
        ("error", "Overloaded", Kind::Overloaded),
        (
            "",
            r#"{"error":{"code":"insufficient_quota","message":"x"}}"#,
            Kind::QuotaExhausted,
        ),
        (
            "",
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded"}}}"#,
            Kind::Overloaded,
        ),
        (
            "",
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}"#,
            Kind::ServerError,
        ),
        (
            "",
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"image_content_policy_violation"}}}"#,
            Kind::ContentPolicy,
        ),
        (
            "",
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"vector_store_timeout"}}}"#,
            Kind::Timeout,
        ),
        (
            "serviceUnavailableException",
            r#"{"message":"x"}"#,
            Kind::Overloaded,
        ),
        (
            "validationException",
            r#"{"message":"x"}"#,
            Kind::BadRequest,
        ),
        (
            "internalServerException",
            r#"{"message":"x"}"#,
            Kind::ServerError,
        ),
    ] {
        let content = ("", r#"{"choices":[{"delta":{"content":"Hi"}}]}"#);
        for events in [&[(name, data)][..], &[content, (name, data)]] {
            let verdict = stream(events);
            assert_eq!(
                verdict.kind,
                Some(kind),
                "{name} {data}: {}",
                verdict.evidence
            );
        }
    }
}
