//! `Alarm`: one timer for moments that keep moving.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use fuseline_core::{Clock, Tick};
use tokio::time::{Instant, Sleep, sleep_until};

/// It is set anew only where a moment comes sooner than the one it is set to, so that an event costs nothing.
#[derive(Default)]
pub(crate) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    set_to: Option<Tick>,
}

impl Alarm {
    /// Ready at `due`, with the time.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        due: Tick,
        clock: &Clock,
    ) -> Poll<Tick> {
        loop {
            let now = clock.now();
            if due <= now {
                return Poll::Ready(now);
            }
            let wake = Instant::now() + due.since(now);
            let sleep = self
                .sleep
                .get_or_insert_with(|| Box::pin(sleep_until(wake)));
            if self.set_to.is_none_or(|set_to| due < set_to) {
                sleep.as_mut().reset(wake);
                self.set_to = Some(due);
            }
            ready!(sleep.as_mut().poll(context));
            self.set_to = None;
        }
    }
}
