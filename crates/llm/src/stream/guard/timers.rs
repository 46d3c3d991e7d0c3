//! The limits of a stream, and how long each has run.

use std::time::Duration;

use fuseline_core::Tick;

/// How long tokens may take to come up to `min_tokens_per_second`.
const RATE_WINDOW: Duration = Duration::from_secs(10);
/// What belongs to a complete answer, its usage for example, comes at once or not at all: some servers leave the
/// connection open.
const AFTER_THE_END: Duration = Duration::from_secs(3);
/// Roughly so many bytes of text make a token.
const BYTES_PER_TOKEN: usize = 4;

/// A limit of a stream, by the name of its key in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// From the last byte of the request to the first content event.
    FirstToken,
    /// Between content events.
    Stall,
    /// `min_tokens_per_second`: ten seconds' worth of tokens took longer than ten seconds.
    Rate,
    /// Between bytes, from the first byte of the body.
    Idle,
    /// The whole stream.
    Total,
}

impl Timer {
    /// The key in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstToken => "first_token",
            Self::Stall => "stall",
            Self::Rate => "min_tokens_per_second",
            Self::Idle => "idle",
            Self::Total => "total",
        }
    }
}

/// What a stream may take. The default is that of configuration.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that drivers write down"
)]
pub struct StreamTimers {
    /// From the last byte of the request to the first content event; 60 s. Pings do not help.
    pub first_token: Duration,
    /// Between content events; 30 s.
    pub stall: Duration,
    /// Between bytes, from the first byte of the body; 30 s.
    pub idle: Duration,
    /// The whole stream, from the last byte of the request; none = no limit.
    pub total: Option<Duration>,
    /// Slower than this, measured over ten seconds, is too slow to be of use; 0 = any speed will do. Tokens are
    /// estimated, in the stream's favour: each content event is one, and more where it is longer than others.
    pub min_tokens_per_second: f64,
    /// A caller who leaves after so long without a content event has waited in vain; 20 s.
    pub cancel_counts_after: Duration,
}

impl Default for StreamTimers {
    fn default() -> Self {
        Self {
            first_token: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            total: None,
            min_tokens_per_second: 0.0,
            cancel_counts_after: Duration::from_secs(20),
        }
    }
}

impl StreamTimers {
    /// These limits for a caller who says how many seconds he waits between bytes, as `x-stainless-read-timeout` does.
    /// No limit grows; what is no positive number changes nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline_llm::StreamTimers;
    ///
    /// let timers = StreamTimers::default().for_read_timeout("45");
    /// assert_eq!(timers.first_token, Duration::from_secs(45));
    /// assert_eq!(timers.stall, Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn for_read_timeout(self, seconds: &str) -> Self {
        let Some(wait) = read_timeout(seconds) else {
            return self;
        };
        Self {
            first_token: self.first_token.min(wait),
            stall: self.stall.min(wait),
            idle: self.idle.min(wait),
            ..self
        }
    }

    /// When a request whose last byte went at `sent` has waited too long for its head.
    pub fn head_deadline(&self, sent: Tick) -> (Tick, Timer) {
        match self.total {
            Some(total) if total < self.first_token => (sent + total, Timer::Total),
            _ => (sent + self.first_token, Timer::FirstToken),
        }
    }

    pub(super) fn limit(&self, timer: Timer) -> Option<Duration> {
        match timer {
            Timer::FirstToken => Some(self.first_token),
            Timer::Stall => Some(self.stall),
            Timer::Rate => (self.tokens_per_window() > 0).then_some(RATE_WINDOW),
            Timer::Idle => Some(self.idle),
            Timer::Total => self.total,
        }
    }

    fn tokens_per_window(&self) -> u64 {
        // Out of range, the cast saturates.
        (self.min_tokens_per_second * RATE_WINDOW.as_secs_f64()).ceil() as u64
    }
}

/// When what has come, and how long is waited for more.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) sent: Tick,
    pub(super) first_content: Option<Tick>,
    pub(super) last_content: Option<Tick>,
    /// Since when nobody has asked for bytes, until somebody does.
    handed: Option<Tick>,
    /// From when `first_token` runs.
    first_from: Tick,
    /// From when `idle` runs; none before the first byte.
    idle_from: Option<Tick>,
    /// From when `stall` runs.
    stall_from: Tick,
    /// From when tokens are counted, and how many there are.
    window: (Tick, u64),
    /// The shortest content event so far: what another has beyond it is text.
    shortest: usize,
}

impl Pace {
    pub(super) fn new(sent: Tick) -> Self {
        Self {
            sent,
            first_content: None,
            last_content: None,
            handed: None,
            first_from: sent,
            idle_from: None,
            stall_from: sent,
            window: (sent, 0),
            shortest: usize::MAX,
        }
    }

    pub(super) fn bytes(&mut self, now: Tick) {
        self.handed = Some(now);
        self.idle_from = Some(now);
    }

    /// Nobody asks for bytes yet.
    pub(super) fn unasked(&mut self, now: Tick) {
        self.handed = Some(now);
    }

    /// A content event of so many bytes has come.
    pub(super) fn content(&mut self, bytes: usize, timers: &StreamTimers, now: Tick) {
        if self.first_content.is_none() {
            self.first_content = Some(now);
            self.window = (now, 0);
        }
        self.last_content = Some(now);
        self.stall_from = now;
        self.shortest = self.shortest.min(bytes);
        let text = (bytes - self.shortest) / BYTES_PER_TOKEN;
        let (_, tokens) = &mut self.window;
        *tokens = tokens.saturating_add(1).saturating_add(text as u64);
        if *tokens >= timers.tokens_per_window() {
            self.window = (now, 0);
        }
    }

    /// More is asked for, and what passed since the last bytes came was not the provider's time.
    pub(super) fn resumed(&mut self, now: Tick) {
        let Some(handed) = self.handed.take() else {
            return;
        };
        let pause = now.since(handed);
        self.first_from = self.first_from + pause;
        self.idle_from = self.idle_from.map(|from| from + pause);
        self.stall_from = self.stall_from + pause;
        self.window.0 = self.window.0 + pause;
    }

    /// How long the caller has waited for content that did not come.
    pub(super) fn waited_in_vain(&self, now: Tick) -> Option<Duration> {
        let until = self.handed.unwrap_or(now);
        let is_in_vain = self.first_content.is_none();
        is_in_vain.then(|| until.since(self.first_from))
    }

    /// The limit that passes first, and when. Of a complete stream nothing is expected but its end.
    pub(super) fn deadline(
        &self,
        timers: &StreamTimers,
        is_complete: bool,
    ) -> Option<(Tick, Timer)> {
        let has_begun = self.first_content.is_some();
        let goes_on = has_begun && !is_complete;
        let lingers = |timer| match timer {
            Timer::Idle if is_complete => Some(timers.idle.min(AFTER_THE_END)),
            timer => timers.limit(timer),
        };
        let running = [
            (Timer::FirstToken, (!has_begun).then_some(self.first_from)),
            (Timer::Stall, goes_on.then_some(self.stall_from)),
            (Timer::Rate, goes_on.then_some(self.window.0)),
            (Timer::Idle, self.idle_from),
            (Timer::Total, Some(self.sent)),
        ];
        let deadlines = running
            .into_iter()
            .filter_map(|(timer, from)| Some((from? + lingers(timer)?, timer)));
        deadlines.min_by_key(|(at, _)| *at)
    }
}

/// What an SDK says in `x-stainless-read-timeout`: for how long it waits between bytes; none where that is no time.
pub fn read_timeout(seconds: &str) -> Option<Duration> {
    let seconds: Option<f64> = seconds.trim().parse().ok();
    let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    wait.filter(|wait| !wait.is_zero())
}
