//! A call that is begun, and ended later in a chosen way: as a future that is polled by hand, or on a thread.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Success,
    /// By an error of the provider's.
    Failure,
    /// By an error of the caller's own, which should count for nothing.
    Mistake,
    Panic,
    /// Its caller drops it.
    Cancelled,
}

/// An error, by whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Provider,
    Caller,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "by the {self:?}'s fault")
    }
}

impl std::error::Error for Fault {}

/// A call that was let through and has not ended. One that is dropped is cancelled, if its breaker knows of that.
pub trait Call {
    fn end(self: Box<Self>, ending: Ending);
}

/// What the provider does with a call: nothing, until it is told.
#[derive(Clone, Default)]
pub struct Work(Arc<Mutex<Option<Ending>>>);

impl Future for Work {
    type Output = Result<(), Fault>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let ending = *self.0.lock().expect("nobody panics while holding it");
        ending.map_or(Poll::Pending, |ending| Poll::Ready(result(ending)))
    }
}

fn result(ending: Ending) -> Result<(), Fault> {
    match ending {
        Ending::Success => Ok(()),
        Ending::Failure => Err(Fault::Provider),
        Ending::Mistake => Err(Fault::Caller),
        Ending::Panic | Ending::Cancelled => std::panic::resume_unwind(Box::new(())),
    }
}

struct Polled<F> {
    future: Pin<Box<F>>,
    work: Work,
}

impl<F: Future> Polled<F> {
    fn poll(&mut self) -> Poll<F::Output> {
        self.future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }
}

impl<F: Future> Call for Polled<F> {
    fn end(mut self: Box<Self>, ending: Ending) {
        if ending != Ending::Cancelled {
            *self.work.0.lock().expect("nobody panics while holding it") = Some(ending);
            let _ = catch_unwind(AssertUnwindSafe(|| assert!(self.poll().is_ready())));
        }
    }
}

/// Begins a call that is a future. It ends at once if it is refused.
pub fn polled<F: Future + 'static>(make: impl FnOnce(Work) -> F) -> Option<Box<dyn Call>> {
    let work = Work::default();
    let future = Box::pin(make(work.clone()));
    let mut call = Polled { future, work };
    call.poll()
        .is_pending()
        .then(|| Box::new(call) as Box<dyn Call>)
}

struct OnThread {
    ending: Sender<Ending>,
    thread: JoinHandle<()>,
}

impl Call for OnThread {
    fn end(self: Box<Self>, ending: Ending) {
        self.ending.send(ending).expect("the call waits for it");
        // A panic is an ending, too.
        let _ = self.thread.join();
    }
}

/// The body of a blocking call: says that it was let through, and waits for its ending.
pub struct Blocking {
    begun: Sender<()>,
    ending: Receiver<Ending>,
}

impl Blocking {
    pub fn run(self) -> Result<(), Fault> {
        self.begun.send(()).expect("somebody waits for it");
        // Nobody will say how it ends: it hangs.
        let ending = self.ending.recv().unwrap_or_else(|_| {
            loop {
                std::thread::park()
            }
        });
        result(ending)
    }
}

/// Begins a call that blocks its thread. `make` returns when the call is over, or refused.
pub fn blocking(make: impl FnOnce(Blocking) + Send + 'static) -> Option<Box<dyn Call>> {
    let ((begun, is_begun), (ending, endings)) = (channel(), channel());
    let body = Blocking {
        begun,
        ending: endings,
    };
    let thread = std::thread::spawn(move || make(body));
    is_begun
        .recv()
        .is_ok()
        .then(|| Box::new(OnThread { ending, thread }) as Box<dyn Call>)
}
