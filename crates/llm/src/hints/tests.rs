//! Tests of wait hints: answers as providers send them, every format at its edges, and texts of any kind.

mod any_text;
mod words;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::*;

/// Mon, 30 Nov 2026 12:00:00 GMT.
const WALL: u64 = 1_796_040_000;

fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(WALL)
}

const NOTHING: &[(&str, &str)] = &[];

fn of_headers(headers: &[(&str, &str)]) -> Option<Hint> {
    let seen = HintInput {
        provider: "",
        headers: &headers,
        body: None,
        sentence: None,
    };
    wait_hint(&seen, wall())
}

fn of_body(body: &Value) -> Option<Hint> {
    let seen = HintInput {
        provider: "",
        headers: &NOTHING,
        body: Some(body),
        sentence: None,
    };
    wait_hint(&seen, wall())
}

fn of_sentence(provider: &str, sentence: &str) -> Option<Hint> {
    let seen = HintInput {
        provider,
        headers: &NOTHING,
        body: None,
        sentence: Some(sentence),
    };
    wait_hint(&seen, wall())
}

fn micros(hint: Option<Hint>) -> Option<u128> {
    hint.map(|hint| hint.wait.as_micros())
}

/// An answer as a provider sent it, with the waits that count as right, the best first.
#[derive(Deserialize)]
struct Case {
    id: String,
    provider: String,
    headers: BTreeMap<String, String>,
    body: String,
    wait_ms: Vec<Option<u64>>,
}

/// The message of an error, as far as a test needs it.
fn message(body: &Value) -> Option<&str> {
    let error = body
        .pointer("/response/error")
        .or_else(|| body.get("error"));
    let error = error.unwrap_or(body);
    error.as_str().or_else(|| error.get("message")?.as_str())
}

#[test]
fn answers_as_providers_send_them() {
    let (mut wrong, mut best, mut all) = (Vec::new(), 0, 0);
    for line in include_str!("cases.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let headers = case.headers.iter().map(|(name, value)| (&**name, &**value));
        let headers = headers.collect::<Vec<_>>();
        let body = serde_json::from_str::<Value>(&case.body).ok();
        let seen = HintInput {
            provider: &case.provider,
            headers: &headers.as_slice(),
            body: body.as_ref(),
            sentence: body.as_ref().and_then(message),
        };
        let found = wait_hint(&seen, wall()).map(|hint| hint.wait);
        let is = |wanted: &Option<u64>| match (wanted, found) {
            (Some(wanted), Some(found)) => {
                found.abs_diff(Duration::from_millis(*wanted)) <= Duration::from_millis(1)
            }
            (None, None) => true,
            _ => false,
        };
        all += 1;
        best += usize::from(case.wait_ms.first().is_some_and(is));
        if !case.wait_ms.iter().any(is) {
            wrong.push(format!("{}: {found:?}, not {:?}", case.id, case.wait_ms));
        }
    }
    println!("{best} of {all} answers give the best wait");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(best + 4 >= all, "{best} of {all}");
}

#[test]
fn report_35_every_form_of_retry_after() {
    for (value, millis) in [
        ("2", Some(2_000)),
        ("0", Some(0)),
        ("-5", None),
        ("1.5", Some(1_500)),
        (" 3 ", Some(3_000)),
        ("\t3", Some(3_000)),
        ("11.054", Some(11_054)),
        ("5.", Some(5_000)),
        (".5", None),
        ("+5", None),
        ("1.2.3", None),
        ("1,5", None),
        ("NaN", None),
        ("inf", None),
        ("infinity", None),
        ("1e3", None),
        ("0x10", None),
        ("٣", None),
        ("60s", Some(60_000)),
        ("5m", Some(300_000)),
        ("5 minutes", Some(300_000)),
        ("PT1M30S", Some(90_000)),
        ("5 parsecs", None),
        ("5m later", None),
        ("86400", Some(86_400_000)),
        ("99999999", Some(99_999_999_000)),
        ("100000000", None),
        ("1793448000", None),
        ("99999999999999999999", None),
        ("99999999999999999999999999", None),
        ("", None),
        (".", None),
        ("Mon, 30 Nov 2026 12:00:04 GMT", Some(4_000)),
        ("Monday, 30-Nov-26 12:00:04 GMT", Some(4_000)),
        ("Mon Nov 30 12:00:04 2026", Some(4_000)),
        ("Mon, 30 Nov 2026 11:59:00 GMT", Some(0)),
        ("Sun, 30 Nov 9025 12:00:00 GMT", None),
        ("Mon, 99 Nov 2026 12:00:04 GMT", None),
        ("2026-11-30T12:00:04Z", Some(4_000)),
        ("soon", None),
    ] {
        let hint = of_headers(&[("Retry-After", value)]);
        let found = hint.map(|hint| hint.wait.as_millis());
        assert_eq!(found, millis, "{value:?}");
        let source = millis.map(|_| HintSource::RetryAfter("retry-after"));
        assert_eq!(hint.map(|hint| hint.source), source, "{value:?}");
    }
    let twice = |first, second| {
        micros(of_headers(&[
            ("retry-after", first),
            ("retry-after", second),
        ]))
    };
    assert_eq!(twice("1", "5"), Some(5_000_000));
    assert_eq!(twice("soon", "1"), Some(1_000_000));
    assert_eq!(of_headers(&[]), None);
}

#[test]
fn report_36_a_day_is_told_as_a_day() {
    let hint = of_headers(&[("retry-after", "86400")]).unwrap();
    assert_eq!(hint.wait, Duration::from_secs(86_400));
}

#[test]
fn report_37_resets_in_every_dialect() {
    for (header, value, millis) in [
        ("x-ratelimit-reset-requests", "6m0s", 360_000),
        ("x-ratelimit-reset-requests", "1s", 1_000),
        ("x-ratelimit-reset-requests", "500ms", 500),
        ("x-ratelimit-reset-requests", "2m30.5s", 150_500),
        ("x-ratelimit-reset-requests", "120ms", 120),
        ("x-ratelimit-reset-requests", "1h2m", 3_720_000),
        ("x-ratelimit-reset-requests", "60", 60_000),
        (
            "anthropic-ratelimit-requests-reset",
            "2026-11-30T12:01:30Z",
            90_000,
        ),
        (
            "anthropic-ratelimit-requests-reset",
            "2026-11-30T14:01:30+02:00",
            90_000,
        ),
        ("x-ratelimit-reset", "1796040030", 30_000),
        ("x-ratelimit-reset", "1796040030000", 30_000),
    ] {
        let hint = of_headers(&[(header, value)]).unwrap();
        assert_eq!(hint.wait.as_millis(), millis, "{header}: {value}");
        assert_eq!(hint.source, HintSource::ResetHeader(header));
        let with = of_headers(&[(header, value), ("retry-after", "7")]).unwrap();
        assert_eq!(with.wait, Duration::from_secs(7), "{header}: {value}");
    }
    let both = of_headers(&[
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "5s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "60s"),
    ]);
    assert_eq!(micros(both), Some(60_000_000));
}

#[test]
fn report_39_milliseconds_are_read_and_win() {
    for (headers, expected) in [
        (&[("retry-after-ms", "1500")][..], Some(1_500_000)),
        (&[("x-ms-retry-after-ms", "1500")], Some(1_500_000)),
        (
            &[("retry-after", "60"), ("retry-after-ms", "100")],
            Some(100_000),
        ),
        (
            &[("retry-after", "60"), ("x-ms-retry-after-ms", "0")],
            Some(0),
        ),
        (
            &[("retry-after", "7"), ("retry-after-ms", "abc")],
            Some(7_000_000),
        ),
        (
            &[("retry-after", "7"), ("retry-after-ms", "-1")],
            Some(7_000_000),
        ),
        (&[("retry-after-ms", "100.7")], Some(100_700)),
        (&[("retry-after-ms", "1500ms")], None),
        (&[("retry-after-ms", "100000000000")], None),
        (&[("retry-after-ms", "Mon, 30 Nov 2026 12:00:04 GMT")], None),
    ] {
        assert_eq!(micros(of_headers(headers)), expected, "{headers:?}");
    }
}

#[test]
fn a_header_map_answers_like_a_list() {
    let mut map = http::HeaderMap::new();
    map.append("Retry-After", http::HeaderValue::from_static("1"));
    map.append("retry-after", http::HeaderValue::from_static("5"));
    let unreadable = http::HeaderValue::from_bytes(b"\xff9").unwrap();
    map.append("retry-after", unreadable);
    let seen = HintInput {
        provider: "",
        headers: &map,
        body: None,
        sentence: None,
    };
    assert_eq!(micros(wait_hint(&seen, wall())), Some(5_000_000));
}

#[test]
fn a_reset_of_any_form() {
    for (value, expected) in [
        ("12ms", Some(12_000)),
        ("8.64s", Some(8_640_000)),
        ("2m59.56s", Some(179_560_000)),
        ("1h2m3s", Some(3_723_000_000)),
        ("250µs", Some(250)),
        ("250us", Some(250)),
        ("0s", Some(0)),
        ("1d2h", Some(93_600_000_000)),
        ("00:05:00", Some(300_000_000)),
        ("1.00:00:01.5", Some(86_401_500_000)),
        ("11.1", Some(11_100_000)),
        ("33011.38", Some(33_011_380_000)),
        ("2592000", Some(2_592_000_000_000)),
        ("2592001", Some(0)),
        ("1796040045", Some(45_000_000)),
        ("1796040045.5", Some(45_500_000)),
        ("1796039500", Some(0)),
        ("1796040033000", Some(33_000_000)),
        ("99999999999", None),
        ("18446744073709551615", None),
        ("18446744073709551616", None),
        ("2026-11-30 12:00:45", Some(45_000_000)),
        ("2026-11-30T12:00:45.25Z", Some(45_250_000)),
        ("2026-11-30T07:00:45-05:00", Some(45_000_000)),
        ("2026-11-30T12:00:45+24:99", Some(0)),
        ("2026-11-30T12:00:45+2:00", None),
        ("2026-02-30T12:00:45Z", None),
        ("9026-11-30T12:00:45Z", None),
        ("1970-01-01T00:00:00+01:00", Some(0)),
        ("Mon, 30 Nov 2026 12:00:45 GMT", Some(45_000_000)),
        ("-1", None),
        ("-1s", None),
        ("1h-5m", None),
        ("1h5", None),
        ("1 fortnight", None),
        ("00:60:00", None),
        ("00:05", None),
        ("584942417355y", None),
        ("18446744073709551615h", None),
        ("s", None),
        ("", None),
    ] {
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", value)];
        assert_eq!(micros(of_headers(&headers)), expected, "{value:?}");
    }
}

#[test]
fn only_limits_that_are_used_up_count() {
    let reset = |remaining: &str| {
        micros(of_headers(&[
            ("x-ratelimit-remaining-requests", "14"),
            ("x-ratelimit-reset-requests", "2h"),
            ("x-ratelimit-remaining-tokens", remaining),
            ("x-ratelimit-reset-tokens", "7s"),
        ]))
    };
    for used_up in ["0", "0.0", " 0 ", "000"] {
        assert_eq!(reset(used_up), Some(7_000_000), "{used_up:?}");
    }
    for other in ["1", "-1", "10", "0x", "", ".", "none"] {
        assert_eq!(reset(other), None, "{other:?}");
    }
    // A limit that says nothing of what remains does not count beside those that do.
    let beside = of_headers(&[
        ("x-ratelimit-remaining-requests", "14"),
        ("x-ratelimit-reset-requests", "2h"),
        ("x-ratelimit-reset-tokens", "7s"),
    ]);
    assert_eq!(beside, None);
    let unified = |status| {
        of_headers(&[
            ("anthropic-ratelimit-unified-status", status),
            (
                "anthropic-ratelimit-unified-representative-claim",
                "five_hour",
            ),
            ("anthropic-ratelimit-unified-reset", "1796058000"),
        ])
    };
    assert_eq!(micros(unified("rejected")), Some(18_000_000_000));
    assert_eq!(unified("allowed_warning"), None);
    let window = of_headers(&[
        ("anthropic-ratelimit-unified-5h-status", "allowed"),
        ("anthropic-ratelimit-unified-5h-reset", "1796058000"),
        ("anthropic-ratelimit-unified-7d-status", "rejected"),
        ("anthropic-ratelimit-unified-7d-reset", "1796126400"),
    ]);
    assert_eq!(micros(window), Some(86_400_000_000));
}

#[test]
fn a_reset_that_cannot_be_read_leaves_the_others() {
    let hint = of_headers(&[
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "tomorrow"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "5s"),
    ]);
    let source = HintSource::ResetHeader("x-ratelimit-reset-tokens");
    let wait = Duration::from_secs(5);
    assert_eq!(hint, Some(Hint { wait, source }));
}

#[test]
fn the_most_trusted_source_wins_and_nonsense_hands_on() {
    let headers = [
        ("retry-after-ms", "1000"),
        ("retry-after", "2"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "5s"),
    ];
    let body = json!({"retry_after": 3});
    let expected = [
        (
            HintSource::RetryAfter("retry-after-ms"),
            "retry_after",
            "header retry-after-ms",
        ),
        (
            HintSource::RetryAfter("retry-after"),
            "retry_after",
            "header retry-after",
        ),
        (
            HintSource::BodyField("retry_after"),
            "body_field",
            "body field retry_after",
        ),
        (HintSource::Sentence, "sentence", "message"),
        (
            HintSource::ResetHeader("x-ratelimit-reset-tokens"),
            "reset_header",
            "header x-ratelimit-reset-tokens",
        ),
    ];
    for (readable, (source, label, shown)) in expected.into_iter().enumerate() {
        // Every source before this one holds nonsense.
        let headers = headers.map(|(name, value)| match name {
            "retry-after-ms" if readable > 0 => (name, "-1"),
            "retry-after" if readable > 1 => (name, "NaN"),
            _ => (name, value),
        });
        let body = if readable > 2 {
            json!({"retry_after": -3})
        } else {
            body.clone()
        };
        let sentence = if readable > 3 {
            "Retry in -4s"
        } else {
            "Retry in 4s"
        };
        let seen = HintInput {
            provider: "",
            headers: &headers.as_slice(),
            body: Some(&body),
            sentence: Some(sentence),
        };
        let hint = wait_hint(&seen, wall()).unwrap();
        assert_eq!(hint.source, source);
        assert_eq!(hint.wait.as_secs(), readable as u64 + 1);
        assert_eq!(
            (source.as_str(), source.to_string().as_str()),
            (label, shown)
        );
    }
}
