//! `[pool]`: how long connections to providers are kept.

use std::time::Duration;

use super::reader::Section;

/// How long connections to providers are kept for the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSpec {
    /// `idle_timeout`: how long one may be without a call. Providers and what stands before them close theirs after 15 s
    /// or more.
    pub idle_timeout: Duration,
    /// `max_age`: how old one may become before a call takes a new one, for which the name is looked up anew.
    pub max_age: Duration,
    /// `keepalive`: how long one may be silent before the peer is asked whether it is still there. By HTTP/2 it has as long
    /// again for its answer.
    pub keepalive: Duration,
}

impl PoolSpec {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let mut limit = |key, seconds, doc| {
            let limit = section.get(key, Duration::from_secs(seconds), doc);
            section.ensure_positive(limit, key);
            limit
        };
        Self {
            idle_timeout: limit(
                "idle_timeout",
                10,
                "how long a connection to a provider may be without a call",
            ),
            max_age: limit(
                "max_age",
                300,
                "how old a connection may become; the next one looks the name up anew",
            ),
            keepalive: limit(
                "keepalive",
                15,
                "how long a connection may be silent before the peer is asked for a sign of life",
            ),
        }
    }
}
