//! Wait hints: when a provider says to come back.
//!
//! A hint is reported as it was sent; whether a call waits, and for how long at most, is decided elsewhere. Nonsense
//! (negative, NaN, 31 years and more) is no hint: what looks like three decades is a Unix time in a field for seconds.

use std::time::{Duration, SystemTime};

use crate::head::Headers;

/// Milliseconds, the more exact of the two: whoever sends both rounds `retry-after` up.
const IN_MILLIS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];
const ABSURD_MILLIS: f64 = 1e12;

/// The wait that `retry-after-ms` or `retry-after` asks for; `wall` is what time it is, for dates.
///
/// The first form that can be read wins. Where a header came more than once, the longest wait counts. A date in the
/// past is a wait of zero.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use fuseline_llm::wait_hint;
///
/// let headers = [("retry-after", "2"), ("retry-after-ms", "1500")].as_slice();
/// assert_eq!(wait_hint(&headers, SystemTime::UNIX_EPOCH), Some(Duration::from_millis(1_500)));
/// ```
pub fn wait_hint(headers: &dyn Headers, wall: SystemTime) -> Option<Duration> {
    let millis = |name| longest(headers, name, |text| decimal(text, 1.0));
    IN_MILLIS.into_iter().find_map(millis).or_else(|| {
        longest(headers, "retry-after", |text| {
            decimal(text, 1e3).or_else(|| date(text, wall))
        })
    })
}

fn longest(
    headers: &dyn Headers,
    name: &str,
    parse: impl Fn(&str) -> Option<Duration>,
) -> Option<Duration> {
    let mut longest = None;
    headers.visit(name, &mut |value| {
        longest = longest.max(parse(value.trim_matches([' ', '\t'])))
    });
    longest
}

/// Digits with an optional fraction: no sign, no exponent, no unit, no words that `f64` would take for numbers.
fn decimal(text: &str, millis_per_unit: f64) -> Option<Duration> {
    let mut parts = text.splitn(2, '.');
    let whole = parts.next().filter(|digits| !digits.is_empty())?;
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !parts.next().is_none_or(all_digits) {
        return None;
    }
    let millis = (text.parse::<f64>().ok()? * millis_per_unit).round();
    (millis < ABSURD_MILLIS).then(|| Duration::from_millis(millis as u64))
}

fn date(text: &str, wall: SystemTime) -> Option<Duration> {
    let at = httpdate::parse_http_date(text).ok()?;
    let wait = at.duration_since(wall).unwrap_or(Duration::ZERO);
    (wait.as_secs_f64() * 1e3 < ABSURD_MILLIS).then_some(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Wed, 21 Oct 2015 07:28:00 GMT.
    fn wall() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480)
    }

    fn hint(headers: &[(&str, &str)]) -> Option<u128> {
        wait_hint(&headers, wall()).map(|wait| wait.as_millis())
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
            ("NaN", None),
            ("inf", None),
            ("infinity", None),
            ("1e3", None),
            ("0x10", None),
            ("5m", None),
            ("60s", None),
            ("86400", Some(86_400_000)),
            ("99999999", Some(99_999_999_000)),
            ("1793448000", None),
            ("99999999999999999999", None),
            ("", None),
            (".", None),
            ("Wed, 21 Oct 2015 07:28:04 GMT", Some(4_000)),
            ("Wednesday, 21-Oct-15 07:28:04 GMT", Some(4_000)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("Wed, 21 Oct 9015 07:27:00 GMT", None),
            ("Wed, 99 Oct 2015 07:27:00 GMT", None),
            ("soon", None),
        ] {
            assert_eq!(hint(&[("Retry-After", value)]), millis, "{value:?}");
        }
        assert_eq!(
            hint(&[("retry-after", "1"), ("retry-after", "5")]),
            Some(5_000)
        );
        assert_eq!(
            hint(&[("retry-after", "soon"), ("retry-after", "1")]),
            Some(1_000)
        );
        assert_eq!(hint(&[]), None);
    }

    #[test]
    fn report_39_milliseconds_are_read_and_win() {
        for (headers, millis) in [
            (&[("retry-after-ms", "1500")][..], Some(1_500)),
            (&[("x-ms-retry-after-ms", "1500")], Some(1_500)),
            (
                &[("retry-after", "60"), ("retry-after-ms", "100")],
                Some(100),
            ),
            (
                &[("retry-after", "7"), ("retry-after-ms", "abc")],
                Some(7_000),
            ),
            (
                &[("retry-after", "7"), ("retry-after-ms", "-1")],
                Some(7_000),
            ),
            (&[("retry-after-ms", "100.7")], Some(101)),
            (&[("retry-after-ms", "Wed, 21 Oct 2015 07:28:04 GMT")], None),
        ] {
            assert_eq!(hint(headers), millis, "{headers:?}");
        }
    }

    #[test]
    fn a_header_map_answers_like_a_list() {
        let mut map = http::HeaderMap::new();
        map.append("Retry-After", http::HeaderValue::from_static("1"));
        map.append("retry-after", http::HeaderValue::from_static("5"));
        map.append(
            "retry-after",
            http::HeaderValue::from_bytes(b"\xff9").unwrap(),
        );
        assert_eq!(wait_hint(&map, wall()), Some(Duration::from_secs(5)));
    }

    proptest! {
        #[test]
        fn no_text_panics_or_asks_for_decades(text in "\\PC{0,40}", digits in "[0-9.eE+-]{0,40}") {
            for value in [text.as_str(), digits.as_str()] {
                for name in ["retry-after", "retry-after-ms"] {
                    if let Some(millis) = hint(&[(name, value)]) {
                        prop_assert!(millis < 1_000_000_000_000);
                    }
                }
            }
        }
    }
}
