//! `Alarm`: wakes a stream when a limit passes, by the caller's timer. What time it is then is the breaker's clock's to
//! say.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fuseline_core::Tick;

/// The shortest sleep: a clock's steps may be coarser than a timer's.
const SHORTEST: Duration = Duration::from_millis(1);

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) struct Alarm {
    sleep: Box<dyn FnMut(Duration) -> Sleep + Send>,
    /// When it rings. Limits mostly move ahead: it is not set anew for that, but rings too early.
    set: Option<(Tick, Sleep)>,
}

impl Alarm {
    pub(crate) fn new<F>(mut sleep: impl FnMut(Duration) -> F + Send + 'static) -> Self
    where
        F: Future + Send + 'static,
    {
        let sleep = move |length| -> Sleep {
            let sleep = sleep(length);
            Box::pin(async move {
                sleep.await;
            })
        };
        Self {
            sleep: Box::new(sleep),
            set: None,
        }
    }

    /// Ready when it has rung, no later than `at`.
    pub(super) fn poll_rung(&mut self, at: Tick, now: Tick, cx: &mut Context<'_>) -> Poll<()> {
        if self.set.as_ref().is_some_and(|(rings, _)| *rings > at) {
            self.set = None;
        }
        let sleep = &mut self.sleep;
        let (_, rung) = self
            .set
            .get_or_insert_with(|| (at, sleep(at.since(now).max(SHORTEST))));
        ready!(rung.as_mut().poll(cx));
        self.set = None;
        Poll::Ready(())
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm")
            .field("rings", &self.set.as_ref().map(|(rings, _)| rings))
            .finish_non_exhaustive()
    }
}
