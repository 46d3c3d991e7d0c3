//! `[queue]`: calls that wait until a circuit closes, for routes whose `on_exhausted` names "queue".

use std::time::Duration;

use super::reader::{Choices, Section};
use super::value::Size;

const PLACES: &Choices<QueuePlace> = &[("state", QueuePlace::State), ("fleet", QueuePlace::Fleet)];

/// How many calls may wait, for how long, and how they are sent. None is, unless a route's `on_exhausted` names "queue".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSpec {
    /// `store`: where they wait; none = with the fleet where there is one, else beside `state`.
    pub store: Option<QueuePlace>,
    /// `max_calls`: calls that may wait.
    pub max_calls: u64,
    /// `max_bytes`: bytes of all requests and results together.
    pub max_bytes: u64,
    /// `max_entry`: bytes of one request, and of one result.
    pub max_entry: u64,
    /// `expires`: how long a call may wait to be sent.
    pub expires: Duration,
    /// `ttl`: how long its result is kept.
    pub ttl: Duration,
    /// `in_flight`: calls of one route and model that are sent at once.
    pub in_flight: u32,
    /// `attempts`: times that a call may fail although its circuit is closed.
    pub attempts: u32,
}

/// Where calls wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePlace {
    /// In a file beside `state`.
    State,
    /// On the fleet's Redis.
    Fleet,
}

impl QueueSpec {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let day = Duration::from_secs(86_400);
        let store = "where calls wait; \"fleet\" where there is one, unless written";
        let spec = Self {
            store: section.choice("store", PLACES, None, store),
            max_calls: section
                .get("max_calls", 1_000_u32, "calls that may wait, up to 10000")
                .into(),
            max_bytes: section
                .get(
                    "max_bytes",
                    Size::mib(256),
                    "bytes of all requests and results together",
                )
                .0,
            max_entry: section
                .get(
                    "max_entry",
                    Size::mib(8),
                    "bytes of one request, and of one result",
                )
                .0,
            expires: section.get("expires", day, "how long a call may wait to be sent"),
            ttl: section.get("ttl", day, "how long its result is kept"),
            in_flight: section.get(
                "in_flight",
                1,
                "calls of one route and model that are sent at once, up to 64",
            ),
            attempts: section.get(
                "attempts",
                5,
                "times that a call may fail although its circuit is closed, up to 100",
            ),
        };
        spec.check(section);
        spec
    }

    fn check(&self, section: &mut Section<'_, '_>) {
        for (key, value, most, remedy) in [
            ("max_calls", self.max_calls, 10_000, "write 1 to 10000"),
            ("in_flight", self.in_flight.into(), 64, "write 1 to 64"),
            ("attempts", self.attempts.into(), 100, "write 1 to 100"),
        ] {
            section.ensure((1..=most).contains(&value), key, "is out of range", remedy);
        }
        let fits = self.max_entry <= self.max_bytes;
        let key = if section.has("max_entry") {
            "max_entry"
        } else {
            "max_bytes"
        };
        section.ensure(
            fits,
            key,
            "leaves no room for one call",
            "write a max_bytes of at least max_entry, which is \"8MiB\" unless written",
        );
        section.ensure_positive(self.expires, "expires");
        section.ensure_positive(self.ttl, "ttl");
    }
}
