//! What the text of a header or of a field means: the three readings there are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::duration::{MILLISECOND, SECOND, decimal, with_units};
use super::{date, sane};

/// A bare number in a field for resets is a wait in seconds up to 30 days ...
const SECONDS_SINCE_1970: Duration = Duration::from_secs(30 * 86_400);
/// ... seconds since 1970 up to here, which is the year 5138, and milliseconds since 1970 beyond.
const MILLIS_SINCE_1970: Duration = Duration::from_secs(100_000_000_000);

/// How a field's text is read.
pub(super) type Reading = fn(&str, SystemTime) -> Option<Duration>;

/// A number of milliseconds.
pub(super) fn millis(text: &str, _wall: SystemTime) -> Option<Duration> {
    decimal(text, MILLISECOND).and_then(sane)
}

/// A number of seconds, a duration with its units, or a date.
pub(super) fn seconds(text: &str, wall: SystemTime) -> Option<Duration> {
    let number = decimal(text, SECOND).and_then(sane);
    number.or_else(|| with_units_or_date(text, wall))
}

/// When a limit is lifted: a number whose size tells what it is, a duration with its units, or a date.
pub(super) fn reset(text: &str, wall: SystemTime) -> Option<Duration> {
    let Some(number) = decimal(text, SECOND) else {
        return with_units_or_date(text, wall);
    };
    let since_1970 = if number > MILLIS_SINCE_1970 {
        decimal(text, MILLISECOND)?
    } else if number > SECONDS_SINCE_1970 {
        number
    } else {
        return Some(number);
    };
    date::wait(UNIX_EPOCH.checked_add(since_1970)?, wall)
}

fn with_units_or_date(text: &str, wall: SystemTime) -> Option<Duration> {
    with_units(text).or_else(|| date::until(text, wall))
}
