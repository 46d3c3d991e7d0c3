//! `Limits`: what bounds the process as a whole.

use std::time::Duration;

use super::reader::Section;
use super::value::Size;

/// Sizes, counts and times that bound the process; top-level keys of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// `max_body`: bytes of a request; a longer one is refused with 413.
    pub max_body: u64,
    /// `replay_limit`: bytes up to which a request can be sent a second time.
    pub replay_limit: u64,
    /// `replay_memory`: bytes that all requests kept for sending again may take together.
    pub replay_memory: u64,
    /// `max_breakers`: breakers at once.
    pub max_breakers: usize,
    /// `drain_delay`: how long calls are still taken once a shutdown has begun, so that whoever sends them can notice.
    pub drain_delay: Duration,
    /// `drain`: how long calls in flight may go on once no more are taken.
    pub drain: Duration,
    /// `cancel_counts_after`: a caller who leaves after this long without content counts as a timeout.
    pub cancel_counts_after: Duration,
}

impl Limits {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let secs = Duration::from_secs;
        let max_body = section.get(
            "max_body",
            Size::mib(32),
            "bytes of a request; a longer one is refused with 413",
        );
        section.ensure(
            max_body.0 > 0,
            "max_body",
            "leaves no room for a request",
            "write at least \"1B\"",
        );
        let replay = section.get(
            "replay_limit",
            Size::mib(8),
            "bytes up to which a request can be sent a second time",
        );
        let memory = section.get(
            "replay_memory",
            Size::mib(256),
            "bytes that all requests kept for that may take",
        );
        let breakers = section.get("max_breakers", 500, "breakers at once, 1 to 100000");
        let allowed = (1..=100_000).contains(&breakers);
        section.ensure(
            allowed,
            "max_breakers",
            "is out of range",
            "write 1 to 100000",
        );
        Self {
            max_body: max_body.0,
            replay_limit: replay.0,
            replay_memory: memory.0,
            max_breakers: usize::try_from(breakers).unwrap_or(usize::MAX),
            drain_delay: section.get(
                "drain_delay",
                Duration::ZERO,
                "how long calls are still taken once a shutdown has begun and readiness is off",
            ),
            drain: section.get(
                "drain",
                secs(30),
                "how long calls in flight may go on once no more are taken",
            ),
            cancel_counts_after: section.get(
                "cancel_counts_after",
                secs(20),
                "a caller who leaves after this long without content counts as a timeout",
            ),
        }
    }
}
