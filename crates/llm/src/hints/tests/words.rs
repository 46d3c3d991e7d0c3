//! Tests of hints in bodies and in sentences.

use super::*;

#[test]
fn fields_of_bodies() {
    for (body, expected) in [
        (
            json!({"error": {"retry_after_ms": 2500}}),
            Some(("retry_after_ms", 2_500_000)),
        ),
        (
            json!({"retryAfterMs": "2500"}),
            Some(("retry_after_ms", 2_500_000)),
        ),
        (json!({"retry-after": 2}), Some(("retry_after", 2_000_000))),
        (
            json!({"retry_after": "1m30s"}),
            Some(("retry_after", 90_000_000)),
        ),
        (
            json!({"retryAfter": "Mon, 30 Nov 2026 12:00:04 GMT"}),
            Some(("retry_after", 4_000_000)),
        ),
        (
            json!({"retry_after_seconds": 0.25}),
            Some(("retry_after_seconds", 250_000)),
        ),
        (
            json!({"estimated_time": 42.3}),
            Some(("estimated_time", 42_300_000)),
        ),
        (
            json!({"error": {"resets_in_seconds": 8899, "resets_at": 1_796_048_000}}),
            Some(("resets_in_seconds", 8_899_000_000)),
        ),
        (
            json!({"error": {"resets_at": 1_796_048_000}}),
            Some(("resets_at", 8_000_000_000)),
        ),
        (
            json!({"reset_at": "2026-11-30T13:00:00+01:00"}),
            Some(("reset_at", 0)),
        ),
        (
            json!({"retryDelay": "0.539477544s"}),
            Some(("retryDelay", 539_477)),
        ),
        (
            json!({"metadata": {"quotaResetDelay": "539.477544ms"}}),
            Some(("quotaResetDelay", 539_477)),
        ),
        (
            json!([{"error": {"details": [{"retryDelay": "3s"}, {"retryDelay": "5s"}, {"retryDelay": "4s"}]}}]),
            Some(("retryDelay", 5_000_000)),
        ),
        (
            json!({"retry_after": -1, "estimated_time": 3}),
            Some(("estimated_time", 3_000_000)),
        ),
        (json!({"retry_after": 1e300}), None),
        (json!({"retry_after": u64::MAX}), None),
        (json!({"retry_after": true}), None),
        (json!({"retry_after": null}), None),
        (json!({"retry_after": ["3"]}), None),
        (json!({"retry_after_foo": 3}), None),
        (json!("retry_after"), None),
        (json!(3), None),
    ] {
        let expected = expected.map(|(name, micros)| Hint {
            wait: Duration::from_micros(micros),
            source: HintSource::BodyField(name),
        });
        let found = of_body(&body).map(|hint| Hint {
            wait: Duration::from_micros(u64::try_from(hint.wait.as_micros()).unwrap()),
            ..hint
        });
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn headers_that_a_body_quotes() {
    let body = json!({"error": {"metadata": {"headers": {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": "1796040033000",
    }}}});
    let wait = Duration::from_secs(33);
    let source = HintSource::BodyHeader("x-ratelimit-reset");
    assert_eq!(of_body(&body), Some(Hint { wait, source }));
    let body = json!({"headers": {"retry-after": 4, "retry-after-ms": "oops"}});
    let source = HintSource::BodyHeader("retry-after");
    let wait = Duration::from_secs(4);
    assert_eq!(of_body(&body), Some(Hint { wait, source }));
}

#[test]
fn bodies_are_read_to_a_depth_and_no_further() {
    let wrap = |times| {
        (0..times).fold(
            json!({"retry_after": 1}),
            |inner, _| json!({"error": inner}),
        )
    };
    assert!(of_body(&wrap(4)).is_some());
    assert_eq!(of_body(&wrap(5)), None);
    let texts = |times| {
        let text = |inner: Value, _| json!({"message": inner.to_string()});
        (0..times).fold(json!({"retry_after": 1}), text)
    };
    assert!(of_body(&texts(4)).is_some());
    assert_eq!(of_body(&texts(5)), None);
    let lists = json!({"error": [[{"retry_after": 1}]]});
    assert_eq!(of_body(&lists), None);
    let many = |count| {
        let mut items = vec![json!(0); count];
        items.push(json!({"retry_after": 1}));
        json!(items)
    };
    assert!(of_body(&many(4_000)).is_some());
    assert_eq!(of_body(&many(5_000)), None);
}

#[test]
fn sentences() {
    for (sentence, expected) in [
        ("Please try again in 11.054s.", Some(11_054_000)),
        (
            "Please try again in 644ms. Visit https://example.com to learn more.",
            Some(644_000),
        ),
        (
            "Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s.",
            Some(578_016_000),
        ),
        ("Please retry in 900.2ms", Some(900_200)),
        ("Please retry after 9 seconds.", Some(9_000_000)),
        (
            "Please retry your request after 1 minute.",
            Some(60_000_000),
        ),
        ("retry_after: 7s", Some(7_000_000)),
        (
            "Rate limit is exceeded. Try again in 12 seconds.",
            Some(12_000_000),
        ),
        ("TRY AGAIN IN 12 SECONDS", Some(12_000_000)),
        (
            "Individual quota reached. Resets in 164h27m24s.",
            Some(592_044_000_000),
        ),
        (
            "Monthly usage limit reached. Resets in 13 days.",
            Some(1_123_200_000_000),
        ),
        ("Your quota will reset after 2h30m.", Some(9_000_000_000)),
        ("Quota will be replenished in 00:05:00.", Some(300_000_000)),
        ("Request quota reached, retry in 60s.", Some(60_000_000)),
        (
            "Try again in about 1 hour and 5 minutes.",
            Some(3_900_000_000),
        ),
        ("Try again in 1 hour, 5 minutes.", Some(3_900_000_000)),
        ("Please wait 20 seconds", Some(20_000_000)),
        ("Please wait for at least 20 seconds", Some(20_000_000)),
        (
            "You will regain access on 2026-12-01 at 00:00 UTC.",
            Some(43_200_000_000),
        ),
        (
            "Your limit resets at 2026-11-30T12:00:09Z.",
            Some(9_000_000),
        ),
        ("resets on 2026-11-30 12:00:09 UTC", Some(9_000_000)),
        ("You will regain access on 2026-12-01 at 00:00.", None),
        ("You will regain access on 2026-12-01.", None),
        ("try again in 0s", Some(0)),
        ("try again in -5s", None),
        ("try again in 5", None),
        ("try again in 5 messages", None),
        ("try again in NaNs", None),
        ("try again in 99999999999999999999s", None),
        ("try again in 5000 days", None),
        ("Please try again later.", None),
        (
            "Retry after in-flight requests settle, or add credits.",
            None,
        ),
        ("Limit 10 requests in 5 minutes.", None),
        ("Limits reset every 60 minutes.", None),
        ("Try again. In 2 days the model will be removed.", None),
        (
            "Try again with a shorter prompt, or with another model in 2 days",
            None,
        ),
        ("Rate limit exceeded: free-models-per-min.", None),
        ("", None),
    ] {
        assert_eq!(
            micros(of_sentence("openai", sentence)),
            expected,
            "{sentence:?}"
        );
    }
    assert_eq!(of_sentence("bedrock", "Try again after 5 minutes."), None);
}

#[test]
fn a_long_message_is_read_to_a_length() {
    let message = |padding: usize| format!("{} Try again in 5s", "é".repeat(padding));
    assert!(of_sentence("", &message(2_000)).is_some());
    for padding in 2_041..2_051 {
        assert_eq!(of_sentence("", &message(padding)), None, "{padding}");
    }
    // What is left of a word may be another unit.
    let cut = format!("{}Try again in 5ms", " ".repeat(4_096 - 15));
    assert_eq!(of_sentence("", &cut), None);
    assert_eq!(of_sentence("", &"x".repeat(5_000)), None);
}

#[test]
fn a_limit_of_a_day_or_of_zero_lends_its_wait_to_nobody() {
    let body = |quota: &str| {
        json!({"error": {"details": [
            {"violations": [{"quotaId": "TokensPerMinute"}, {"quotaId": quota}]},
            {"retryDelay": "22s"},
        ]}})
    };
    let daily = body("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    let by_minute = body("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
    assert_eq!(of_body(&daily), None);
    assert_eq!(micros(of_body(&by_minute)), Some(22_000_000));
    let sentence = Some("Please retry in 22s.");
    let seen = HintInput {
        provider: "gemini",
        headers: &NOTHING,
        body: Some(&daily),
        sentence,
    };
    assert_eq!(wait_hint(&seen, wall()), None);
    for (limit, expected) in [
        ("limit: 0 Please retry in 12s.", None),
        ("limit: 0, model: x. Please retry in 12s.", None),
        ("limit: 0.5 Please retry in 12s.", Some(12_000_000)),
        ("limit: 20 Please retry in 12s.", Some(12_000_000)),
    ] {
        assert_eq!(micros(of_sentence("gemini", limit)), expected, "{limit}");
    }
}
