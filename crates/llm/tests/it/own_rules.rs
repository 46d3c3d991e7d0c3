//! Rules of a configuration: before the shipped ones, in the same words, with every mistake told.

use std::time::SystemTime;

use fuseline_core::{Kind, Scope};
use fuseline_llm::{Answer, Body, Classifier, Ending, Head, Operation, RuleSpec, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    rules: Vec<RuleSpec>,
}

fn specs(text: &str) -> Vec<RuleSpec> {
    toml::from_str::<File>(text).unwrap().rules
}

fn judge(
    classifier: &Classifier,
    provider: &str,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> Verdict {
    let answer = Answer {
        provider,
        operation: Operation::Create,
        head: Some(Head::new(status, &headers)),
        body: Body::Whole(body.as_bytes()),
        ending: Ending::Complete,
    };
    classifier.classify(&answer, SystemTime::UNIX_EPOCH)
}

#[test]
fn own_rules_come_before_the_shipped_ones() {
    let classifier = Classifier::with_rules(specs(
        r#"
        [[rules]]
        id = "house-limit"
        providers = ["openai"]
        when = { code = ["insufficient_quota"] }
        then = { kind = "rate_limit", scope = "provider", retryable = false, provider_fault = true }

        [[rules]]
        id = "gateway-text"
        when = { status = ["5xx"], phrase = ["house ... closed"] }
        then = { kind = "permission" }
        "#,
    ))
    .unwrap();
    let spent = r#"{"error":{"code":"insufficient_quota"}}"#;
    let verdict = judge(&classifier, "openai", 429, &[], spent);
    assert_eq!(
        (verdict.kind, verdict.scope),
        (Some(Kind::RateLimit), Scope::Provider)
    );
    assert!(!verdict.retryable && verdict.provider_fault);
    assert_eq!(
        verdict.evidence.to_string(),
        "rule own/house-limit: code insufficient_quota, status 429"
    );
    assert_eq!(
        judge(&classifier, "groq", 429, &[], spent).kind,
        Some(Kind::QuotaExhausted)
    );
    for (body, kind) in [
        ("The house is closed", Kind::Permission),
        ("closed house", Kind::ServerError),
    ] {
        assert_eq!(
            judge(&classifier, "any", 500, &[], body).kind,
            Some(kind),
            "{body}"
        );
    }
}

#[test]
fn own_rules_may_fail_a_good_answer() {
    let classifier = Classifier::with_rules(specs(
        r#"
        [[rules]]
        id = "wrong-model"
        when = { status = ["2xx"], field = { "/model" = "tiny" } }
        then = { kind = "validation" }

        [[rules]]
        id = "stale"
        when = { status = [200], header = { x-cache = "stale" } }
        then = { kind = "overloaded" }
        "#,
    ))
    .unwrap();
    let answer = |model: &str| {
        format!(r#"{{"model":"{model}","choices":[{{"message":{{"content":"Hi"}}}}]}}"#)
    };
    assert_eq!(
        judge(&classifier, "openai", 200, &[], &answer("tiny")).kind,
        Some(Kind::Validation)
    );
    assert!(judge(&classifier, "openai", 200, &[], &answer("large")).is_success());
    let stale = judge(
        &classifier,
        "openai",
        200,
        &[("X-Cache", "STALE; age=9")],
        &answer("large"),
    );
    assert_eq!(stale.kind, Some(Kind::Overloaded));
}

#[test]
fn every_condition_must_hold() {
    let classifier = Classifier::with_rules(specs(
        r#"
        [[rules]]
        id = "all"
        when = { status = ["400-410"], code = ["a", 7], phrase = ["one two"], header = { x-h = "" }, body = "json", field = { "/n" = 3 } }
        then = { kind = "overloaded", hint = "ignore" }
        "#,
    ))
    .unwrap();
    let body = r#"{"code":7,"message":"ONE TWO","n":3}"#;
    let header = &[("x-h", "v"), ("retry-after", "3")][..];
    let verdict = judge(&classifier, "", 410, header, body);
    assert_eq!(
        (verdict.kind, verdict.retry_after),
        (Some(Kind::Overloaded), None)
    );
    for (status, headers, body) in [
        (411, header, body),
        (410, &[][..], body),
        (410, header, r#"{"code":8,"message":"ONE TWO","n":3}"#),
        (410, header, r#"{"code":7,"message":"ONE","n":3}"#),
        (410, header, r#"{"code":7,"message":"ONE TWO","n":4}"#),
        (410, header, "code 7: ONE TWO"),
    ] {
        assert_eq!(
            judge(&classifier, "", status, headers, body).kind,
            Some(Kind::BadRequest),
            "{body}"
        );
    }
}

#[test]
fn every_mistake_is_told_with_its_remedy() {
    let problems = Classifier::with_rules(specs(
        r#"
        [[rules]]
        id = ""
        when = {}
        then = { kind = "timeout" }

        [[rules]]
        id = "odd"
        providers = ["openai"]
        when = { status = ["6xx", 99], phrase = ["ab", "a ... b ... c"], sentence = ["."], code = [" "], field = { "error" = 1 }, wait_over = "5" }
        then = { kind = "timeout" }
        "#,
    ))
    .unwrap_err();
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let keys: Vec<_> = problems
        .iter()
        .map(|problem| (problem.rule, problem.key))
        .collect();
    assert_eq!(
        keys,
        [
            (1, "id"),
            (1, "when"),
            (2, "when.status"),
            (2, "when.status"),
            (2, "when.code"),
            (2, "when.phrase"),
            (2, "when.phrase"),
            (2, "when.sentence"),
            (2, "when.field"),
            (2, "when.wait_over"),
        ],
        "{told:#?}"
    );
    assert_eq!(
        told[2],
        "rule 2 (`odd`, openai): when.status is `6xx`: write a status from 100 to 599, a class like \"5xx\", a range \
         like \"500-503\", or \"in-band\""
    );
}

#[test]
fn unknown_keys_and_kinds_are_refused() {
    for text in [
        "[[rules]]\nid = 'a'\nwhen = { statuses = [1] }\nthen = { kind = 'timeout' }",
        "[[rules]]\nid = 'a'\nwhen = { status = [400] }\nthen = { kind = 'tired' }",
        "[[rules]]\nid = 'a'\nwhen = { status = [400] }\nthen = { kind = 'timeout', why = 'x' }",
        "[[rules]]\nid = 'a'\nwhen = { body = 'xml' }\nthen = { kind = 'timeout' }",
    ] {
        assert!(toml::from_str::<File>(text).is_err(), "{text}");
    }
}
