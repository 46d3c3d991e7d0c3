//! Wait hints: when a provider says to come back.
//!
//! A hint is reported as it was sent; whether a call waits, and for how long at most, is decided elsewhere. Nonsense
//! (negative, NaN, more than three years) is no hint, and the next source is asked. Providers, and whoever sits in
//! between, write these texts: all work here is linear in what came and bounded where it could be large.

mod body;
mod date;
mod duration;
mod header;
mod sentence;
mod value;

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::head::Headers;

/// Everything from here on is a date in a field for seconds, a sentinel or a mistake. The longest wait that somebody
/// is known to have sent is 99999999 seconds.
const ABSURD: Duration = Duration::from_secs(100_000_000);

/// Providers whose sentences advise what to do after a repair ("try again after 5 minutes") and never say when a limit
/// ends.
const ADVISE_ONLY: [&str; 1] = ["bedrock"];

/// What an answer shows that may hold a hint. Only answers that failed should be asked: some providers send
/// `retry-after` with success.
#[derive(Clone, Copy)]
pub struct HintInput<'a> {
    /// The provider's name in the rules, such as `openai`; empty where it is not known.
    pub provider: &'a str,
    /// The headers of the answer.
    pub headers: &'a dyn Headers,
    /// The body, where it is JSON.
    pub body: Option<&'a Value>,
    /// The error's message.
    pub sentence: Option<&'a str>,
}

// Headers and bodies may hold secrets.
impl fmt::Debug for HintInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HintInput")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// How long a provider asks to be left alone, and where it said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The wait as sent, shorter than 100,000,000 s; zero for a date in the past.
    pub wait: Duration,
    /// Where it stood.
    pub source: HintSource,
}

/// Where a hint stood, the most trusted place first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HintSource {
    /// The header of this name: `retry-after`, or one of its twins in milliseconds.
    RetryAfter(&'static str),
    /// A field of the body that has this meaning, whatever its spelling.
    BodyField(&'static str),
    /// A header of this name that the body quotes.
    BodyHeader(&'static str),
    /// The words of the error's message.
    Sentence,
    /// The header of this name, whose limit is used up.
    ResetHeader(&'static str),
}

impl HintSource {
    /// The name in logs and labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryAfter(_) => "retry_after",
            Self::BodyField(_) => "body_field",
            Self::BodyHeader(_) => "body_header",
            Self::Sentence => "sentence",
            Self::ResetHeader(_) => "reset_header",
        }
    }
}

impl fmt::Display for HintSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetryAfter(name) | Self::ResetHeader(name) => write!(f, "header {name}"),
            Self::BodyField(name) => write!(f, "body field {name}"),
            Self::BodyHeader(name) => write!(f, "header {name} in the body"),
            Self::Sentence => f.write_str("message"),
        }
    }
}

/// The wait that a failed answer asks for; `wall` is what time it is, for dates.
///
/// The first of these that can be read wins: `retry-after-ms`, `retry-after`, a field of the body, the words of the
/// message, the reset of a limit that is used up. Where one of them says several waits, the longest counts: a shorter
/// one would run into the other limit.
///
/// A body or message that shows a limit of a day, or of zero, is not believed: providers put the wait of their
/// shortest limit beside it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use fuseline_llm::{HintInput, wait_hint};
///
/// let headers = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
/// let seen = HintInput { provider: "openai", headers: &headers.as_slice(), body: None, sentence: None };
/// let hint = wait_hint(&seen, SystemTime::UNIX_EPOCH).expect("the tokens are used up");
/// assert_eq!(hint.wait, Duration::from_secs(360));
/// assert_eq!(hint.source.to_string(), "header x-ratelimit-reset-tokens");
///
/// let sentence = Some("Please try again in 11.054s.");
/// let hint = wait_hint(&HintInput { sentence, ..seen }, SystemTime::UNIX_EPOCH).expect("it says so");
/// assert_eq!(hint.wait, Duration::from_millis(11_054));
/// ```
pub fn wait_hint(seen: &HintInput<'_>, wall: SystemTime) -> Option<Hint> {
    let hint = |(name, wait), source: fn(&'static str) -> HintSource| Hint {
        wait,
        source: source(name),
    };
    header::asked(seen.headers, wall)
        .map(|found| hint(found, HintSource::RetryAfter))
        .or_else(|| in_words(seen, wall))
        .or_else(|| {
            header::reset(seen.headers, wall).map(|found| hint(found, HintSource::ResetHeader))
        })
}

fn in_words(seen: &HintInput<'_>, wall: SystemTime) -> Option<Hint> {
    let body = seen.body.map(|body| body::read(body, wall));
    let body = body.unwrap_or_default();
    let sentence = seen.sentence.map(sentence::beginning).unwrap_or_default();
    if body.shows_daily_limit || sentence::shows_limit_of_zero(sentence) {
        return None;
    }
    let said = || {
        let wait = sentence::wait(sentence, wall)?;
        (!ADVISE_ONLY.contains(&seen.provider)).then_some(Hint {
            wait,
            source: HintSource::Sentence,
        })
    };
    body.hint.or_else(said)
}

fn sane(wait: Duration) -> Option<Duration> {
    (wait < ABSURD).then_some(wait)
}

#[cfg(test)]
mod tests;
