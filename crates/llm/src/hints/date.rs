//! Points in time as providers write them: HTTP dates and RFC 3339.
//!
//! The calendar is left to crates. Only the offset of RFC 3339 is read here: the crate that the workspace has for
//! times knows UTC alone, and those that know offsets bring a whole library of calendars for ten lines.

use std::time::{Duration, SystemTime};

use super::sane;

/// No form of a date is longer.
const LONGEST_DATE: usize = 64;

/// How long it is until a date; zero when it has passed.
pub(super) fn until(text: &str, wall: SystemTime) -> Option<Duration> {
    if text.len() > LONGEST_DATE {
        return None;
    }
    let http = httpdate::parse_http_date(text).ok();
    wait(http.or_else(|| rfc3339(text))?, wall)
}

/// How long it is until a point in time; zero when it has passed.
pub(super) fn wait(at: SystemTime, wall: SystemTime) -> Option<Duration> {
    sane(at.duration_since(wall).unwrap_or_default())
}

/// RFC 3339, also with a space for the `T`; without an offset it is UTC.
fn rfc3339(text: &str) -> Option<SystemTime> {
    let (local, zone) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (local, offset) = offset(zone).map_or((text, Offset::Ahead(Duration::ZERO)), |offset| {
        (local, offset)
    });
    let at = humantime::parse_rfc3339_weak(local).ok()?;
    match offset {
        Offset::Ahead(by) => at.checked_sub(by),
        Offset::Behind(by) => at.checked_add(by),
    }
}

/// Where a local time is, seen from UTC.
enum Offset {
    Ahead(Duration),
    Behind(Duration),
}

fn offset(zone: &str) -> Option<Offset> {
    let (sign, clock) = zone.split_at_checked(1)?;
    let (hours, minutes) = clock.split_once(':')?;
    let is_two_digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_two_digits(hours) || !is_two_digits(minutes) {
        return None;
    }
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let by = Duration::from_secs(minutes * 60);
    match sign {
        "+" => Some(Offset::Ahead(by)),
        "-" => Some(Offset::Behind(by)),
        _ => None,
    }
}
