//! Calls and permits need no runtime: here a thread that parks is all there is.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use fuseline::classify::Dialect;
use fuseline::{Breaker, Chain, Kind, Policy, Registry, State};

use crate::support::{breaker, due, items, next, patient};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Work that another thread does, and that is pending until then.
fn elsewhere<T: Send + 'static>(result: T) -> impl Future<Output = T> {
    let (wakers, woken) = channel::<Waker>();
    let (sender, receiver): (_, Receiver<T>) = channel();
    thread::spawn(move || {
        let waker = woken.recv().unwrap();
        sender.send(result).unwrap();
        waker.wake();
    });
    poll_fn(move |cx| {
        let _ = wakers.send(cx.waker().clone());
        match receiver.try_recv() {
            Ok(result) => Poll::Ready(result),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => panic!("it was given up"),
        }
    })
}

#[test]
fn calls_settle_without_a_runtime() {
    let (breaker, _) = breaker(&patient());
    let failed = block_on(breaker.call(elsewhere(Err::<(), _>("503"))));
    assert_eq!(failed.unwrap_err().into_inner(), Some("503"));
    assert_eq!(breaker.snapshot().run, 1);
    assert_eq!(
        block_on(breaker.call(elsewhere(Ok::<_, ()>("yes")))),
        Ok("yes")
    );
    let seen = breaker.snapshot();
    assert_eq!((seen.run, seen.in_flight), (0, 0));
}

#[test]
fn permits_and_streams_settle_without_a_runtime() {
    let (breaker, _) = due();
    block_on(async {
        let stream = async { Ok::<_, Kind>(items([Ok(1), Ok(2)])) };
        let mut stream = breaker.call_stream(stream).await.unwrap();
        while next(&mut stream).await.is_some() {}
    });
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn a_chain_that_need_not_wait_needs_no_runtime() {
    let (first, _) = breaker(&patient());
    first.force_open(None);
    let second = Breaker::new("anthropic", Policy::default());
    let chain = Chain::builder().target(first, 1).target(second, 2);
    let answer = chain.call(|target| elsewhere(Ok::<_, ()>(target)));
    assert_eq!(block_on(answer), Ok(2));
}

#[test]
fn what_is_spawned_can_be_spawned() {
    fn is_send(_: &(impl Send + 'static)) {}
    fn is_shared<T: Send + Sync + Unpin + 'static>(_: &T) {}

    let registry = Registry::default();
    let breaker = registry.get_breaker("a", &Policy::default()).unwrap();
    let chain = Chain::builder()
        .target(breaker.clone(), 1)
        .max_wait(Duration::from_secs(1));
    let permit = breaker.try_acquire_owned().unwrap();
    is_shared(&registry);
    is_shared(&breaker);
    is_shared(&chain);
    is_send(&permit);
    is_send(&registry.events());
    let caller = breaker.clone();
    is_send(&async move { caller.call(async { Ok::<_, ()>(()) }).await });
    is_send(&async move { chain.call(async |target| Ok::<_, ()>(target)).await });
    is_send(&permit.guard(items([])));
    let permit = breaker.try_acquire_owned().unwrap();
    let sleep = tokio::time::sleep;
    is_shared(&permit.guard_bytes(items([]), Dialect::Ollama, sleep));
}
