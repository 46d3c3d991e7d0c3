//! Hints in headers: the tables of their names.

use std::time::{Duration, SystemTime};

use crate::head::Headers;

use super::duration::{SECOND, decimal};
use super::value::{self, Reading};

/// The headers made for it, the most exact first: who sends milliseconds rounds `retry-after` up.
#[rustfmt::skip]
const ASKING: [(&str, Reading); 3] = [
    ("retry-after-ms",      value::millis),  // OpenAI, Azure: a number of milliseconds
    ("x-ms-retry-after-ms", value::millis),  // Azure: the same
    ("retry-after",         value::seconds), // nearly all: seconds or an HTTP date; 60s and RFC 3339 are read too
];

/// The header that says what remains of a limit, and the one that says when it is back. The units are what is known to be
/// sent; all are read alike, since form and size of a value tell what it is.
#[rustfmt::skip]
const LIMITS: [(&str, &str); 19] = [
    // OpenAI and those that follow it: a duration such as 6m0s. Azure: seconds. Groq: of a day, those of tokens of a minute.
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    // OpenAI, where a project has its own limit: a duration.
    ("x-ratelimit-remaining-project-tokens", "x-ratelimit-reset-project-tokens"),
    // Anthropic: RFC 3339, when the bucket is full again.
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    // Anthropic, subscriptions: seconds since 1970, and a word instead of what remains.
    ("anthropic-ratelimit-unified-status", "anthropic-ratelimit-unified-reset"),
    ("anthropic-ratelimit-unified-5h-status", "anthropic-ratelimit-unified-5h-reset"),
    ("anthropic-ratelimit-unified-7d-status", "anthropic-ratelimit-unified-7d-reset"),
    // Cohere: seconds since 1970, and nothing of what remains. Together: seconds. OpenRouter: milliseconds since 1970.
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    // Gateways that follow the IETF's drafts: seconds.
    ("ratelimit-remaining", "ratelimit-reset"),
    // Mistral: seconds.
    ("ratelimitbysize-remaining", "ratelimitbysize-reset"),
    // Cerebras: seconds with a fraction.
    ("x-ratelimit-remaining-requests-minute", "x-ratelimit-reset-requests-minute"),
    ("x-ratelimit-remaining-requests-hour", "x-ratelimit-reset-requests-hour"),
    ("x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day"),
    ("x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute"),
    ("x-ratelimit-remaining-tokens-hour", "x-ratelimit-reset-tokens-hour"),
    ("x-ratelimit-remaining-tokens-day", "x-ratelimit-reset-tokens-day"),
];

/// What Anthropic says where others say that nothing remains.
const REJECTED: &str = "rejected";

/// A header's name and its wait.
type Found = (&'static str, Duration);

/// The wait that the headers made for it ask for.
pub(super) fn asked(headers: &dyn Headers, wall: SystemTime) -> Option<Found> {
    ASKING.iter().find_map(|(name, reading)| {
        let wait = longest(headers, name, *reading, wall)?;
        Some((*name, wait))
    })
}

/// The longest wait until a limit that is used up is back. Where no header says what remains of any limit, every
/// reset counts.
pub(super) fn reset(headers: &dyn Headers, wall: SystemTime) -> Option<Found> {
    let resets = LIMITS.iter().filter_map(|(remaining, reset)| {
        let wait = longest(headers, reset, value::reset, wall)?;
        Some((is_used_up(headers, remaining), (*reset, wait)))
    });
    let resets = resets.collect::<Vec<_>>();
    let nothing_known = resets.iter().all(|(used_up, _)| used_up.is_none());
    let resets = resets.into_iter();
    let counting = resets.filter(|(used_up, _)| used_up.unwrap_or(nothing_known));
    counting
        .map(|(_, found)| found)
        .max_by_key(|(_, wait)| *wait)
}

/// Whether a limit is used up; none if no header says it. Less than nothing is what a broken counter says.
fn is_used_up(headers: &dyn Headers, remaining: &str) -> Option<bool> {
    let mut used_up = None;
    headers.visit(remaining, &mut |text| {
        let text = text.trim();
        let is_zero = decimal(text, SECOND).is_some_and(|number| number.is_zero());
        let is_one = is_zero || text.eq_ignore_ascii_case(REJECTED);
        used_up = used_up.max(Some(is_one));
    });
    used_up
}

/// The longest of the waits in all headers of a name: a client in the middle of two limits must heed both.
fn longest(headers: &dyn Headers, name: &str, read: Reading, wall: SystemTime) -> Option<Duration> {
    let mut longest = None;
    headers.visit(name, &mut |text| {
        longest = longest.max(read(text.trim_matches([' ', '\t']), wall));
    });
    longest
}
