//! `Again`: polls a future again at once where it was woken while it was polled.
//!
//! A request's body is asked for by the task that also reads it from the connection, so this task wakes itself, once for each
//! call at least. The runtime would put it behind all others in its queue, and wake a further thread to come and take it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// It waits: whoever wakes it wakes its task.
const WAITING: u8 = 0;
const POLLED: u8 = 1;
/// It was woken: it will be polled anyway.
const WOKEN: u8 = 2;

/// Others have a right to the thread as well.
const MOST: usize = 4;

/// A future that is polled again at once, within a bound, where it was woken meanwhile.
pub(super) struct Again<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Default)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITING {
            self.task.wake();
        }
    }
}

impl<F: Future> Again<F> {
    pub(super) fn new(future: F) -> Self {
        let bell = Arc::new(Bell::default());
        Self {
            future: Box::pin(future),
            waker: Arc::clone(&bell).into(),
            bell,
        }
    }
}

impl<F: Future> Future for Again<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self {
            future,
            bell,
            waker,
        } = &mut *self;
        bell.task.register(context.waker());
        let mut inner = Context::from_waker(waker);
        for _ in 0..MOST {
            bell.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = future.as_mut().poll(&mut inner) {
                return Poll::Ready(output);
            }
            let (order, otherwise) = (Ordering::AcqRel, Ordering::Acquire);
            let waits = bell
                .state
                .compare_exchange(POLLED, WAITING, order, otherwise);
            if waits.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_wakes_itself_is_polled_again_and_its_task_is_not_woken() {
        let mut left = MOST - 1;
        let future = poll_fn(|context| match left.checked_sub(1) {
            None => Poll::Ready(()),
            Some(fewer) => {
                left = fewer;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        });
        let task = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&task));
        let polled = Pin::new(&mut Again::new(future)).poll(&mut Context::from_waker(&waker));
        assert_eq!(polled, Poll::Ready(()));
        assert_eq!(task.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_wakes_itself_for_ever_lets_others_have_their_turn() {
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let task = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut again = Again::new(future);
        assert!(
            Pin::new(&mut again)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        drop(again);
        assert_eq!(polls, MOST);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_wakes_it_from_elsewhere_is_heard() {
        const NEWS: usize = 20_000;
        let (sender, mut news) = tokio::sync::mpsc::channel(1);
        let posting = async move {
            for number in 0..NEWS {
                sender.send(number).await.unwrap();
            }
        };
        let reading = async move {
            let mut read = 0;
            while news.recv().await.is_some() {
                read += 1;
            }
            read
        };
        #[expect(clippy::disallowed_methods, reason = "both end before the test does")]
        let (posting, reading) = (
            tokio::spawn(Again::new(posting)),
            tokio::spawn(Again::new(reading)),
        );
        posting.await.unwrap();
        assert_eq!(reading.await.unwrap(), NEWS);
    }
}
