//! `[heartbeats]`: signs of life to callers of a committed stream whose provider is silent.

use std::time::Duration;

use fuseline_llm::Protocol;

use super::reader::Section;

/// How long nothing may go to a caller before he gets a sign of life, by the dialect that he speaks. Off unless written:
/// what a caller gets is the provider's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heartbeats {
    /// A comment, which parsers of server-sent events pass over.
    pub openai: Option<Duration>,
    /// An event `ping`, as the provider itself sends.
    pub anthropic: Option<Duration>,
    /// A comment.
    pub gemini: Option<Duration>,
}

impl Heartbeats {
    /// The interval for callers of this dialect.
    pub fn of(&self, protocol: Protocol) -> Option<Duration> {
        match protocol {
            Protocol::Anthropic => self.anthropic,
            Protocol::Gemini => self.gemini,
            _ => self.openai,
        }
    }

    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let mut interval = |key, doc| {
            let interval = section.opt(key, None, doc);
            if let Some(interval) = interval {
                section.ensure_positive(interval, key);
            }
            interval
        };
        Self {
            openai: interval(
                "openai",
                "a comment to callers of a committed stream that is silent for this long",
            ),
            anthropic: interval(
                "anthropic",
                "a ping to callers of a committed stream that is silent for this long",
            ),
            gemini: interval(
                "gemini",
                "a comment to callers of a committed stream that is silent for this long",
            ),
        }
    }
}
