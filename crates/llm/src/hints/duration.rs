//! Durations as providers write them: `1.5`, `6m0s`, `900.2ms`, `13 days`, `1 hour and 5 minutes`, `PT30S`, `00:05:00`.
//!
//! Exact to the nanosecond and in integers, so that what was printed is what is read.

use std::time::Duration;

use super::sane;

const NANOS: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * NANOS;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The length of one millisecond and of one second, for numbers whose field says the unit.
pub(super) const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = NANOS;

/// Every spelling of a unit, in lower case, with its nanoseconds.
#[rustfmt::skip]
const UNITS: [(&[&str], u64); 8] = [
    (&["ns"], 1),
    (&["us", "µs", "μs"], 1_000),                       // the micro sign and the Greek letter: Go reads both
    (&["ms", "msec", "millisecond", "milliseconds"], MILLISECOND),
    (&["s", "sec", "secs", "second", "seconds"], NANOS),
    (&["m", "min", "mins", "minute", "minutes"], MINUTE),
    (&["h", "hr", "hrs", "hour", "hours"], HOUR),
    (&["d", "day", "days"], DAY),
    (&["w", "week", "weeks"], 7 * DAY),
];

/// More digits than nanoseconds are dropped.
const FRACTION_DIGITS: usize = 9;

/// The longest unit in bytes: no word beyond it is compared.
const LONGEST_UNIT: usize = 12;

/// A number without a unit, of any size: digits with an optional fraction; no sign, no exponent, no words that a parser
/// of floats would take. `unit` is in nanoseconds.
pub(super) fn decimal(text: &str, unit: u64) -> Option<Duration> {
    let (number, rest) = Number::leading(text)?;
    rest.is_empty().then(|| number.times(unit)).flatten()
}

/// A duration that is the whole text and says its units.
pub(super) fn with_units(text: &str) -> Option<Duration> {
    let (wait, rest) = leading(text.strip_prefix("PT").unwrap_or(text))?;
    rest.is_empty().then_some(wait)
}

/// The duration at the beginning of a text, and what follows it.
pub(super) fn leading(text: &str) -> Option<(Duration, &str)> {
    let (mut sum, mut rest) = clock(text).or_else(|| component(text))?;
    while let Some((more, after)) = component(without_joint(rest)) {
        sum = sum.checked_add(more)?;
        rest = after;
    }
    Some((sane(sum)?, rest))
}

/// What may stand between two components: `1h 5m`, `1 hour, 5 minutes`, `1 hour and 5 minutes`.
fn without_joint(text: &str) -> &str {
    let text = text.trim_start_matches([' ', ',']);
    text.strip_prefix("and ").unwrap_or(text)
}

fn component(text: &str) -> Option<(Duration, &str)> {
    let (number, rest) = Number::leading(text)?;
    let rest = rest.trim_start_matches(' ');
    let end = rest.find(|c: char| !c.is_alphabetic());
    let (word, rest) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
    Some((number.times(unit(word)?)?, rest))
}

fn unit(word: &str) -> Option<u64> {
    let word = (word.len() <= LONGEST_UNIT).then(|| word.to_ascii_lowercase())?;
    let mut rows = UNITS.iter();
    let row = rows.find(|(spellings, _)| spellings.contains(&word.as_str()));
    row.map(|(_, nanos)| *nanos)
}

/// `hh:mm:ss`, with a fraction of the second or without, and with days and a dot before it or without.
fn clock(text: &str) -> Option<(Duration, &str)> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | ':' | '.'));
    let (clock, _) = text.split_at_checked(end.unwrap_or(text.len()))?;
    let clock = clock.trim_end_matches('.');
    let (hours, minutes_and_seconds) = clock.split_once(':')?;
    let (minutes, seconds) = minutes_and_seconds.split_once(':')?;
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let mut sum = Duration::ZERO;
    for (part, unit, below) in [
        (days, DAY, u64::MAX),
        (hours, HOUR, u64::MAX),
        (minutes, MINUTE, 60),
        (seconds, NANOS, 60),
    ] {
        let (number, rest) = Number::leading(part)?;
        if !rest.is_empty() || number.whole >= below {
            return None;
        }
        sum = sum.checked_add(number.times(unit)?)?;
    }
    Some((sum, text.get(clock.len()..)?))
}

/// Digits with an optional fraction.
struct Number {
    whole: u64,
    billionths: u64,
}

impl Number {
    fn leading(text: &str) -> Option<(Self, &str)> {
        let (whole, rest) = split_digits(text)?;
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => split_digits(after).unwrap_or(("0", after)),
            None => ("0", rest),
        };
        let kept = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
        let missing = FRACTION_DIGITS.checked_sub(kept.len())?;
        let scale = 10_u64.checked_pow(u32::try_from(missing).ok()?)?;
        let billionths = kept.parse::<u64>().ok()?.checked_mul(scale)?;
        let whole = whole.parse().ok()?;
        Some((Self { whole, billionths }, rest))
    }

    fn times(&self, unit: u64) -> Option<Duration> {
        let billionths = u128::from(self.whole) * u128::from(NANOS) + u128::from(self.billionths);
        let nanos = billionths.checked_mul(u128::from(unit))? / u128::from(NANOS);
        let seconds = u64::try_from(nanos / u128::from(NANOS)).ok()?;
        let subsecond = u32::try_from(nanos % u128::from(NANOS)).ok()?;
        Some(Duration::new(seconds, subsecond))
    }
}

/// The digits at the beginning, at least one.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let end = end.unwrap_or(text.len());
    (end > 0).then(|| text.split_at_checked(end)).flatten()
}
