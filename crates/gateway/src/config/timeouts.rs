//! `[timeouts]`: how long one attempt may take to do what. Also per provider, model and route.

use std::time::Duration;

use super::reader::Section;

/// Time limits as written in one layer; what is `None` keeps what the layers below say.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TimeoutSpec {
    /// See [`Timeouts::connect`].
    pub connect: Option<Duration>,
    /// See [`Timeouts::first_token`].
    pub first_token: Option<Duration>,
    /// See [`Timeouts::stall`].
    pub stall: Option<Duration>,
    /// See [`Timeouts::idle`].
    pub idle: Option<Duration>,
    /// See [`Timeouts::total`]; zero lifts the limit.
    pub total: Option<Duration>,
    /// See [`Timeouts::min_tokens_per_second`].
    pub min_tokens_per_second: Option<f64>,
    /// See [`Timeouts::answer`].
    pub answer: Option<Duration>,
    /// See [`Timeouts::write_idle`].
    pub write_idle: Option<Duration>,
}

/// The time limits of one attempt, all layers merged.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timeouts {
    /// To a connection, TLS included.
    pub connect: Duration,
    /// Streams: from the request's last byte to the first content event.
    pub first_token: Duration,
    /// Streams: between content events.
    pub stall: Duration,
    /// Streams: between bytes, from the first body byte on.
    pub idle: Duration,
    /// Streams: the whole of it; none = no limit.
    pub total: Option<Duration>,
    /// Streams: slower than this, measured over 10 s, is given up; 0 = any speed will do.
    pub min_tokens_per_second: f64,
    /// Plain answers: the whole of it.
    pub answer: Duration,
    /// How long a caller may leave the bytes sent to him unread. The system notices reading in steps of tens of KiB, so
    /// this is also a least speed: about 1 kB/s at 60 s.
    pub write_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_token: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            total: None,
            min_tokens_per_second: 0.0,
            answer: Duration::from_secs(600),
            write_idle: Duration::from_secs(60),
        }
    }
}

impl Timeouts {
    /// These limits with `over` laid on top.
    #[must_use]
    pub fn overlaid(&self, over: &TimeoutSpec) -> Self {
        Self {
            connect: over.connect.unwrap_or(self.connect),
            first_token: over.first_token.unwrap_or(self.first_token),
            stall: over.stall.unwrap_or(self.stall),
            idle: over.idle.unwrap_or(self.idle),
            total: over.total.map_or(self.total, |total| {
                Some(total).filter(|total| !total.is_zero())
            }),
            min_tokens_per_second: over
                .min_tokens_per_second
                .unwrap_or(self.min_tokens_per_second),
            answer: over.answer.unwrap_or(self.answer),
            write_idle: over.write_idle.unwrap_or(self.write_idle),
        }
    }
}

impl TimeoutSpec {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let slowest = section.opt(
            "min_tokens_per_second",
            Some(0.0),
            "streams: slower than this over 10 s is given up; 0 = any speed will do",
        );
        section.ensure(
            slowest.is_none_or(|slowest: f64| (0.0..=1000.0).contains(&slowest)),
            "min_tokens_per_second",
            "is out of range",
            "write 0 to 1000",
        );
        let usual = Timeouts::default();
        let mut limit = |key, usual, doc| {
            let limit = section.opt(key, Some(usual), doc);
            section.ensure_positive(limit.unwrap_or(usual), key);
            limit
        };
        Self {
            connect: limit("connect", usual.connect, "to a connection, TLS included"),
            first_token: limit(
                "first_token",
                usual.first_token,
                "streams: from the request sent to the first content",
            ),
            stall: limit("stall", usual.stall, "streams: between content events"),
            idle: limit(
                "idle",
                usual.idle,
                "streams: between bytes, from the first on",
            ),
            answer: limit("answer", usual.answer, "plain answers: the whole of it"),
            write_idle: limit(
                "write_idle",
                usual.write_idle,
                "how long a caller may leave what is sent to him unread",
            ),
            min_tokens_per_second: slowest,
            total: section.opt(
                "total",
                Some(Duration::ZERO),
                "streams: the whole of it; \"0s\" = no limit",
            ),
        }
    }
}
