//! `Watched`: an upstream's stream under its guard, read as far as it is asked for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use fuseline_core::Clock;
use fuseline_llm::{Attempt, Classifier, Fault, StreamEnding, StreamGuard, Verdict};
use http_body::Body as _;

use super::alarm::Alarm;
use super::client::Received;
use super::heartbeat::Heartbeat;
use super::limits::Limits;

/// A stream, its guard, and what its ending is judged by.
pub(crate) struct Watched {
    pub(crate) guard: StreamGuard,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) clock: Clock,
    rest: Received,
    alarm: Alarm,
    judge: Judge,
}

/// Who judges an ending, by whose rules, and whose limits it met.
#[derive(Clone)]
pub(crate) struct Judge {
    pub(crate) classifier: Arc<Classifier>,
    pub(crate) rules: Arc<str>,
    pub(crate) limits: Limits,
}

impl Watched {
    pub(crate) fn new(
        guard: StreamGuard,
        heartbeat: Option<Heartbeat>,
        rest: Received,
        clock: Clock,
        judge: Judge,
    ) -> Self {
        Self {
            guard,
            heartbeat,
            clock,
            rest,
            alarm: Alarm::default(),
            judge,
        }
    }

    /// Reads until the caller may see the stream, or until it is over without that.
    pub(crate) async fn commit(&mut self, attempt: &mut Attempt) {
        while !self.guard.is_committed() && !self.guard.is_over() {
            std::future::poll_fn(|context| self.poll_read(context, attempt)).await;
        }
    }

    /// Reads on: until bytes have come, the stream has ended, or one of its limits has passed.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        attempt: &mut Attempt,
    ) -> Poll<()> {
        let mut now = self.clock.now();
        self.guard.resumed(now);
        match Pin::new(&mut self.rest).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers end at this hop.
                let bytes = frame.into_data().unwrap_or_default();
                self.guard.bytes(bytes, now);
            }
            Poll::Ready(Some(Err(_))) => self.guard.broke(Fault::Reset, now),
            Poll::Ready(None) => self.guard.end(now),
            Poll::Pending => {
                let Some((due, _)) = self.guard.deadline() else {
                    return Poll::Pending;
                };
                now = ready!(self.alarm.poll(context, due, &self.clock));
                self.guard.timeout(now);
            }
        }
        attempt.watched(&self.guard, now);
        Poll::Ready(())
    }

    /// The verdict on its ending, which there must be.
    pub(crate) fn verdict(&self, attempt: &mut Attempt) -> Verdict {
        let verdict = self.judged(attempt);
        match self.guard.ending() {
            Some(StreamEnding::TimedOut { limit, .. }) if self.judge.limits.is_callers(limit) => {
                attempt.acquit();
            }
            _ => {}
        }
        verdict
    }

    fn judged(&self, attempt: &mut Attempt) -> Verdict {
        #[expect(
            clippy::disallowed_methods,
            reason = "wait hints may be dates, and are compared with today's"
        )]
        let wall = SystemTime::now();
        let Judge {
            classifier, rules, ..
        } = &self.judge;
        attempt.stream_ended(classifier, rules, &self.guard, wall, self.clock.now())
    }
}
