//! Hints in sentences: "try again in 9m38.016s", "resets in 13 days", "regain access on 2026-12-01 at 00:00 UTC".
//!
//! One pass over the words. A wait counts where a preposition leads to it and a word about coming back stands shortly
//! before: an error's sentence is full of other numbers.

use std::time::{Duration, SystemTime};

use super::date;
use super::duration::leading;

/// More of a message is not read.
const MOST_BYTES: usize = 4_096;

/// How words about coming back begin.
#[rustfmt::skip]
const COMING_BACK: [&str; 11] = [
    "access",    // You will regain access on 2026-12-01 at 00:00 UTC
    "again",     // Please try again in 11.054s; Try again in 12 seconds
    "available", // The model will be available in 20 seconds
    "refill",
    "renew",
    "replenish", // Quota will be replenished in 00:05:00
    "reset",     // Resets in 164h27m24s; Your quota will reset after 2h30m
    "restor",    // Service is restored in ...
    "resum",     // resume, resuming
    "retry",     // Please retry in 900.2ms; Please retry after 9 seconds
    "wait",      // Please wait 20 seconds
];

/// Words that lead to a wait, or to a date.
#[rustfmt::skip]
const LEADING: [&str; 12] = [
    "in", "after", "for", "at", "on", "until", "wait", "within",
    "about", "approximately", "another", "least",
];

/// How far before the wait the word about coming back may stand.
const MOST_WORDS_BETWEEN: usize = 4;

/// As much of a message as is read, without a last word that may be cut.
pub(super) fn beginning(message: &str) -> &str {
    if message.len() <= MOST_BYTES {
        return message;
    }
    let cut = (MOST_BYTES - 3..=MOST_BYTES).rev();
    let cut = cut.filter_map(|end| message.get(..end)).next();
    cut.and_then(|start| start.rsplit_once(' '))
        .map_or("", |(whole_words, _)| whole_words)
}

/// Whether the limit is zero, as Google says: no wait lifts it.
pub(super) fn shows_limit_of_zero(sentence: &str) -> bool {
    sentence.match_indices("limit: 0").any(|(start, found)| {
        let next = sentence
            .get(start + found.len()..)
            .map(|rest| rest.trim_start_matches('.'));
        next.is_none_or(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// The first wait that a sentence asks for.
pub(super) fn wait(sentence: &str, wall: SystemTime) -> Option<Duration> {
    let mut words_since = None;
    let mut rest = sentence;
    while let Some((gap, word, after)) = next_word(rest) {
        rest = after;
        words_since = match words_since {
            _ if COMING_BACK.iter().any(|stem| starts_with(word, stem)) => Some(0),
            Some(count) if count < MOST_WORDS_BETWEEN && !ends_sentence(gap) => Some(count + 1),
            _ => None,
        };
        if words_since.is_some() && LEADING.iter().any(|lead| word.eq_ignore_ascii_case(lead)) {
            let text = after.trim_start_matches([' ', ':', '~', '\n']);
            let said = leading(text).map(|(wait, _)| wait);
            if let Some(wait) = said.or_else(|| until(text, wall)) {
                return Some(wait);
            }
        }
    }
    None
}

/// The next word, with what stands before it and what follows.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let (gap, text) = text.split_at_checked(text.find(char::is_alphanumeric)?)?;
    let end = text.find(|c: char| !c.is_alphanumeric());
    let (word, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    Some((gap, word, rest))
}

fn starts_with(word: &str, stem: &str) -> bool {
    word.get(..stem.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(stem))
}

fn ends_sentence(gap: &str) -> bool {
    gap.starts_with(['.', '!', '?'])
}

/// A date at the beginning: RFC 3339, or its parts with words between and the time zone said.
fn until(text: &str, wall: SystemTime) -> Option<Duration> {
    let mut words = text
        .split_ascii_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';', ')']));
    let date = words.next()?;
    if !date.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    date::until(date, wall).or_else(|| {
        let clock = words.find(|word| *word != "at")?;
        let seconds = if clock.len() == "00:00".len() {
            ":00"
        } else {
            ""
        };
        (words.next()? == "UTC")
            .then(|| date::until(&format!("{date}T{clock}{seconds}Z"), wall))
            .flatten()
    })
}
