//! Virtual time: a provider's script, a timer on the breaker's clock, and a driver that goes from one moment to the next.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use fuseline::{Breaker, Clock, GuardedBytes, StreamError, StreamTerms, Tick};
use futures_core::Stream;

pub(crate) type Reset = &'static str;
pub(crate) type Guarded = GuardedBytes<Provider>;

/// The clock, and the moments at which something is to happen.
#[derive(Clone)]
pub(crate) struct World {
    clock: Clock,
    moments: Arc<Mutex<Vec<Tick>>>,
}

/// Says what it has to say at its times, counted from the beginning of the world. Then it ends, or is silent.
pub(crate) struct Provider {
    clock: Clock,
    script: VecDeque<(Tick, Option<Result<Bytes, Reset>>)>,
    left: Arc<AtomicUsize>,
}

impl World {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            moments: Arc::default(),
        }
    }

    /// A provider that says this, each at so many milliseconds; `None` is its end.
    pub(crate) fn provider<T: Into<Bytes>>(
        &self,
        script: impl IntoIterator<Item = (u64, Option<Result<T, Reset>>)>,
    ) -> Provider {
        let script = script.into_iter().map(|(at, item)| {
            let at = Tick::from_millis(at);
            self.moments.lock().unwrap().push(at);
            (at, item.map(|item| item.map(Into::into)))
        });
        let script: VecDeque<_> = script.collect();
        Provider {
            clock: self.clock.clone(),
            left: Arc::new(AtomicUsize::new(script.len())),
            script,
        }
    }

    pub(crate) fn guard(
        &self,
        breaker: &Breaker,
        provider: Provider,
        terms: impl Into<StreamTerms>,
    ) -> Guarded {
        let permit = breaker.try_acquire_owned().unwrap();
        permit.guard_bytes(provider, terms, self.sleep())
    }

    fn sleep(&self) -> impl FnMut(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + use<> {
        let world = self.clone();
        move |length| {
            let clock = world.clock.clone();
            let due = clock.now() + length;
            world.moments.lock().unwrap().push(due);
            Box::pin(poll_fn(move |_| match clock.now() >= due {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }))
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now().as_millis()
    }

    pub(crate) fn wait(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// What the stream gives next, at whatever moment; time goes from moment to moment.
    pub(crate) fn next<S: Stream + Unpin>(&self, stream: &mut S) -> Option<S::Item> {
        self.run(poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)))
    }

    /// What a future gives at last.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = Box::pin(future);
        loop {
            if let Some(output) = once(&mut future) {
                return output;
            }
            let now = self.clock.now();
            let moments = self.moments.lock().unwrap();
            let next = moments.iter().filter(|moment| **moment > now).min();
            let next = next.expect("it hangs: nothing will ever wake it");
            self.clock.advance(next.since(now));
        }
    }

    /// Time passes while somebody waits for the stream, which gives nothing.
    pub(crate) fn silence<S: Stream + Unpin>(&self, stream: &mut S, until: u64) {
        assert!(once(&mut poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx))).is_none());
        self.wait(until - self.now());
    }

    /// All of it.
    pub(crate) fn read(&self, stream: &mut Guarded) -> (Vec<u8>, Option<StreamError<Reset>>) {
        let mut out = Vec::new();
        let mut error = None;
        while let Some(item) = self.next(stream) {
            assert_eq!(error, None, "an error is the last");
            match item {
                Ok(bytes) => out.extend_from_slice(&bytes),
                Err(failed) => error = Some(failed),
            }
        }
        assert!(self.next(stream).is_none(), "the end is the end");
        (out, error)
    }
}

/// Polls once.
fn once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Provider {
    /// How much it has left to say.
    pub(crate) fn left(&self) -> Arc<AtomicUsize> {
        self.left.clone()
    }
}

impl Stream for Provider {
    type Item = Result<Bytes, Reset>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let now = self.clock.now();
        match self.script.front() {
            Some((at, _)) if *at <= now => {
                self.left.fetch_sub(1, Relaxed);
                Poll::Ready(self.script.pop_front().and_then(|(_, item)| item))
            }
            _ => Poll::Pending,
        }
    }
}

/// A stream without pauses, and its end.
pub(crate) fn at_once<'c>(
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Vec<(u64, Option<Result<Bytes, Reset>>)> {
    let chunks = chunks.into_iter();
    let items = chunks.map(|chunk| (0, Some(Ok(Bytes::copy_from_slice(chunk)))));
    items.chain([(0, None)]).collect()
}
