//! `Heartbeat`: signs of life to the caller of a stream that is silent, where configuration asks for them.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use fuseline_core::{Clock, Tick};
use fuseline_llm::{Dialect, Framing};

use super::alarm::Alarm;

/// One stream's heartbeat. It stands between whole events, where the guard leaves off.
pub(crate) struct Heartbeat {
    every: Duration,
    event: &'static [u8],
    last: Tick,
    alarm: Alarm,
}

impl Heartbeat {
    /// None where the framing has no way to say nothing.
    pub(crate) fn new(dialect: Dialect, framing: Framing, every: Duration) -> Option<Self> {
        let event: &[u8] = match (framing, dialect) {
            (Framing::Sse, Dialect::Anthropic) => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            (Framing::Sse, _) => b": heartbeat\n\n",
            _ => return None,
        };
        Some(Self {
            every,
            event,
            last: Tick::ZERO,
            alarm: Alarm::default(),
        })
    }

    /// Something goes to the caller.
    pub(crate) fn sent(&mut self, now: Tick) {
        self.last = now;
    }

    /// The sign of life, once it is due.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<Bytes> {
        let due = self.last + self.every;
        self.last = ready!(self.alarm.poll(context, due, clock));
        Poll::Ready(Bytes::from_static(self.event))
    }
}
