//! Field reports, as far as they are about what an answer means.

use std::time::{Duration, SystemTime};

use fuseline_core::{Kind, Outcome, Scope};
use fuseline_llm::{Answer, Body, Classifier, Ending, Head, Operation, Transcript};

use crate::described::on;

const NONE: &[(&str, &str)] = &[];
const TOOK: Duration = Duration::from_secs(1);
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

#[test]
fn report_22_and_23_overload_is_a_kind_of_its_own() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    for provider in ["", "anthropic"] {
        let verdict = on(provider, 529, &[], body);
        assert_eq!(verdict.kind, Some(Kind::Overloaded));
        assert!(verdict.provider_fault && verdict.retryable);
    }
    for status in [520, 599] {
        assert_eq!(
            on("anthropic", status, &[], "").kind,
            Some(Kind::ServerError)
        );
    }
}

#[test]
fn report_24_a_spent_quota_is_no_rate_limit() {
    let spent =
        r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}"#;
    let limited = r#"{"error":{"code":"rate_limit_exceeded","message":"x"}}"#;
    for provider in ["", "openai"] {
        let verdict = on(provider, 429, &[], spent);
        assert_eq!(
            (verdict.kind, verdict.scope),
            (Some(Kind::QuotaExhausted), Scope::Key)
        );
        assert!(!verdict.retryable && !verdict.provider_fault);
        assert_eq!(verdict.charged_to(), Some(Scope::Key));
        let verdict = on(provider, 429, &[("retry-after", "1")], limited);
        assert_eq!(
            (verdict.kind, verdict.retry_after),
            (Some(Kind::RateLimit), Some(Duration::from_secs(1)))
        );
        assert!(verdict.retryable);
        assert_eq!(verdict.outcome(TOOK, PATIENCE), Outcome::Neutral);
    }
}

#[test]
fn report_25_and_40_the_callers_mistakes_count_for_nothing() {
    for (status, body, kind) in [
        (
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
            Kind::ContextLength,
        ),
        (401, "{}", Kind::Auth),
        (403, "{}", Kind::Permission),
        (
            404,
            r#"{"error":{"code":"model_not_found","message":"x"}}"#,
            Kind::NotFound,
        ),
        (413, "{}", Kind::BadRequest),
        (415, "{}", Kind::BadRequest),
        (422, "{}", Kind::BadRequest),
    ] {
        let verdict = on("openai", status, &[("retry-after", "9")], body);
        assert_eq!(verdict.kind, Some(kind));
        assert!(
            !verdict.provider_fault && !verdict.retryable && !kind.rule().count,
            "{status}"
        );
        assert_eq!(verdict.retry_after, None, "{status}");
    }
}

#[test]
fn report_28_an_error_object_under_200_has_the_status_that_it_names() {
    let verdict = on(
        "openai",
        200,
        &[("retry-after", "5")],
        r#"{"error":{"code":429,"message":"x"}}"#,
    );
    assert_eq!(
        (verdict.kind, verdict.evidence.status()),
        (Some(Kind::RateLimit), Some(429))
    );
    assert_eq!(
        verdict.retry_after, None,
        "the headers are those of a success"
    );
}

#[test]
fn report_33_a_caller_who_leaves_says_nothing_of_the_provider() {
    let nothing = Transcript::default();
    let mut begun = Transcript::default();
    begun.note_content();
    let mut whole = begun.clone();
    whole.note_finish("stop");
    let answer = |body| Answer {
        provider: "openai",
        operation: Operation::Create,
        head: Some(Head::new(200, &NONE)),
        body,
        ending: Ending::Left,
    };
    let classifier = Classifier::builtin();
    let judge = |answer: &Answer<'_>| classifier.classify(answer, SystemTime::UNIX_EPOCH);
    for verdict in [
        judge(&answer(Body::Stream(&nothing))),
        judge(&answer(Body::Stream(&begun))),
        judge(&answer(Body::Whole(b"{\"choices\":["))),
        judge(&Answer {
            head: None,
            ..answer(Body::Unread)
        }),
    ] {
        assert_eq!(verdict.kind, Some(Kind::Cancelled));
        assert!(!verdict.provider_fault && !verdict.retryable);
        assert!(!Kind::Cancelled.rule().count);
    }
    assert!(
        judge(&answer(Body::Stream(&whole))).is_success(),
        "the answer was there"
    );
}

#[test]
fn report_37_the_reset_of_the_limit_that_is_used_up_is_the_wait() {
    let headers = [
        ("x-ratelimit-remaining-requests", "9"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    let verdict = on("openai", 429, &headers, "{}");
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(360)));
    assert_eq!(
        verdict.hint_source.map(|source| source.as_str()),
        Some("reset_header")
    );
}

#[test]
fn report_42_a_time_out_that_looks_like_the_callers_mistake() {
    let verdict = on("", 408, &[], r#"{"error":{"code":"request_timeout"}}"#);
    assert_eq!(verdict.kind, Some(Kind::Timeout));
    assert!(verdict.provider_fault && verdict.retryable && Kind::Timeout.rule().count);
    let early = on("", 425, &[], "");
    assert!(early.provider_fault && early.retryable && early.kind.unwrap().rule().count);
}
