//! `[cache]`: the last good answers, for routes whose `on_exhausted` names "cache".

use std::time::Duration;

use super::reader::Section;
use super::value::Size;

/// How much is kept of what was answered, and for how long. Nothing is, unless a route's `on_exhausted` names "cache".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheSpec {
    /// `max_bytes`: bytes of all answers together; the oldest leave first.
    pub max_bytes: u64,
    /// `max_entry`: bytes of one answer; a longer one is not kept.
    pub max_entry: u64,
    /// `ttl`: how old an answer may become.
    pub ttl: Duration,
}

impl CacheSpec {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let max_bytes = section.get(
            "max_bytes",
            Size::mib(64),
            "bytes of all answers kept for on_exhausted = [\"cache\"]",
        );
        let max_entry = section.get(
            "max_entry",
            Size::mib(1),
            "bytes of one answer; a longer one is not kept",
        );
        let fits = max_entry.0 <= max_bytes.0;
        section.ensure(
            fits,
            if section.has("max_entry") {
                "max_entry"
            } else {
                "max_bytes"
            },
            "leaves no room for one answer",
            "write a max_bytes of at least max_entry, which is \"1MiB\" unless written",
        );
        let ttl = section.get(
            "ttl",
            Duration::from_secs(600),
            "how old an answer may become",
        );
        section.ensure_positive(ttl, "ttl");
        Self {
            max_bytes: max_bytes.0,
            max_entry: max_entry.0,
            ttl,
        }
    }
}
