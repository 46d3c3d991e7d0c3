//! Tests of texts of any kind, and of what is printed and read back.

use proptest::prelude::*;

use super::*;

/// As Go prints a duration.
fn go(nanos: u64) -> String {
    let fraction = |value: u64, digits: usize| {
        let whole = value / 10_u64.pow(digits as u32);
        let rest = value % 10_u64.pow(digits as u32);
        let rest = format!("{rest:0digits$}");
        match rest.trim_end_matches('0') {
            "" => whole.to_string(),
            rest => format!("{whole}.{rest}"),
        }
    };
    match nanos {
        0 => "0s".into(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(nanos, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(nanos, 6)),
        _ => {
            let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
            let seconds = fraction(rest, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics_or_asks_for_decades(
        text in "\\PC{0,40}",
        digits in "[0-9.eE+:TZ hms-]{0,40}",
        wall in 0..u64::from(u32::MAX),
    ) {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(wall);
        for value in [text.as_str(), digits.as_str()] {
            let sentence = format!("try again in {value}");
            let body = json!({"a": {"retry_after": value, "resets_at": value, "headers": {"retry-after": value}}});
            for name in ["retry-after", "retry-after-ms", "x-ratelimit-reset"] {
                let headers = [(name, value)];
                let seen = HintInput {
                    provider: "",
                    headers: &headers.as_slice(),
                    body: Some(&body),
                    sentence: Some(&sentence),
                };
                if let Some(hint) = wait_hint(&seen, wall) {
                    prop_assert!(hint.wait < ABSURD);
                }
            }
        }
    }

    #[test]
    fn what_go_prints_is_read_back(nanos in prop_oneof![0..10_000_000_000_u64, 0..99_999_999_000_000_000_u64]) {
        let printed = go(nanos);
        let hint = of_headers(&[("x-ratelimit-reset-tokens", &printed)]).unwrap();
        prop_assert_eq!(hint.wait, Duration::from_nanos(nanos), "{}", printed);
        let hint = of_sentence("", &format!("Please try again in {printed}.")).unwrap();
        prop_assert_eq!(hint.wait, Duration::from_nanos(nanos), "{}", printed);
    }

    #[test]
    fn a_longer_wait_is_never_read_as_a_shorter_one(one in 0..2_592_000_000_u64, other in 0..2_592_000_000_u64) {
        let seconds = |millis: u64| format!("{}.{:03}", millis / 1_000, millis % 1_000);
        let printed = |millis: u64| go(millis * 1_000_000);
        for form in [&printed as &dyn Fn(u64) -> String, &seconds] {
            let read = |millis| of_headers(&[("retry-after", &form(millis))]).unwrap().wait;
            prop_assert_eq!(one.cmp(&other), read(one).cmp(&read(other)));
        }
    }

    #[test]
    fn a_printed_date_is_read_back(ahead in 0..99_000_000_u64, hours in 0..24_u64, minutes in 0..60_u64) {
        let at = wall() + Duration::from_secs(ahead);
        let offset = Duration::from_secs(hours * 3_600 + minutes * 60);
        let local = |time| humantime::format_rfc3339_seconds(time).to_string().replace('Z', "");
        for text in [
            httpdate::fmt_http_date(at),
            humantime::format_rfc3339_seconds(at).to_string(),
            format!("{}+{hours:02}:{minutes:02}", local(at + offset)),
            format!("{}-{hours:02}:{minutes:02}", local(at - offset)),
        ] {
            let hint = of_headers(&[("retry-after", &text)]).map(|hint| hint.wait);
            prop_assert_eq!(hint, Some(Duration::from_secs(ahead)), "{}", text);
        }
    }
}
