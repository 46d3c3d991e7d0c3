//! Sixty-four threads at the end of a cooldown, through each entrance: one probe, and 63 refusals at once.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread;

use bytes::Bytes;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Reason, State};
use fuseline_mock::{Mock, Reply};
use http_body_util::{BodyExt as _, Full};
use tokio::runtime::Handle;
use tower::{Layer as _, Service as _, service_fn};

use crate::support::due;

const CROWD: u32 = 64;
/// At least so many crowds, and as many more as it takes until two callers were seen to ask at the same time.
const ROUNDS: u32 = 20;
const MOST_ROUNDS: u32 = 2_000;

/// Where the callers of a crowd meet: before they ask, and again once each has its answer.
struct Crowd {
    start: Barrier,
    answered: Barrier,
    asking: AtomicU32,
    most_asking: AtomicU32,
    passed: AtomicU32,
}

impl Crowd {
    fn new() -> Arc<Self> {
        let size = usize::try_from(CROWD).unwrap();
        Arc::new(Self {
            start: Barrier::new(size),
            answered: Barrier::new(size),
            asking: AtomicU32::new(0),
            most_asking: AtomicU32::new(0),
            passed: AtomicU32::new(0),
        })
    }

    fn ask(&self) {
        self.start.wait();
        let asking = self.asking.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_asking.fetch_max(asking, Ordering::SeqCst);
    }

    fn has_answer(&self) {
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.answered.wait();
    }

    /// The guarded work: it lasts until all others have been refused.
    fn work(&self) -> Result<(), ()> {
        self.passed.fetch_add(1, Ordering::SeqCst);
        self.has_answer();
        Ok(())
    }
}

/// `enter` makes one call, whose work is `Crowd::work`, and tells whether it was let through.
fn one_of_a_crowd_passes(enter: impl Fn(&Breaker, &Arc<Crowd>) -> bool + Sync) {
    let mut raced = false;
    let mut rounds = 0;
    while rounds < ROUNDS || !raced {
        rounds += 1;
        assert!(rounds < MOST_ROUNDS, "never did two ask at the same time");
        let (breaker, _) = due();
        let crowd = Crowd::new();
        thread::scope(|threads| {
            for _ in 0..CROWD {
                threads.spawn(|| {
                    crowd.ask();
                    if !enter(&breaker, &crowd) {
                        crowd.has_answer();
                    }
                });
            }
        });
        assert_eq!(crowd.passed.load(Ordering::SeqCst), 1);
        let seen = breaker.snapshot();
        assert_eq!((seen.state, seen.live_probes), (State::Closed, 0));
        assert!(seen.rejected.contains(&(Reason::Probing, 63)), "{seen:?}");
        raced |= crowd.most_asking.load(Ordering::SeqCst) > 1;
    }
}

/// Runs a future that is never pending.
fn at_once<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it was to block"),
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn report_1_through_call() {
    one_of_a_crowd_passes(|breaker, crowd| at_once(breaker.call(async { crowd.work() })).is_ok());
}

#[test]
fn report_1_through_call_blocking() {
    one_of_a_crowd_passes(|breaker, crowd| breaker.call_blocking(|| crowd.work()).is_ok());
}

#[test]
fn report_1_through_a_permit() {
    one_of_a_crowd_passes(|breaker, crowd| {
        let Ok(permit) = breaker.try_acquire() else {
            return false;
        };
        crowd.work().unwrap();
        permit.success();
        true
    });
}

#[test]
fn report_1_through_tower() {
    one_of_a_crowd_passes(|breaker, crowd| {
        let client = service_fn(async |()| {
            let answer = http::Response::new(Full::new(Bytes::from("yes")));
            crowd.work().map(|()| answer)
        });
        let mut client = BreakerLayer::new(breaker.clone()).layer(client);
        let Ok(answer) = at_once(client.call(())) else {
            return false;
        };
        at_once(answer.into_body().collect()).unwrap();
        true
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn report_1_through_reqwest() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let url = mock.url() + "/v1/models";
    let runtime = Handle::current();
    let client = reqwest::Client::new();
    let enter = move |breaker: &Breaker, crowd: &Arc<Crowd>| {
        let _inside = runtime.enter();
        let client = fuseline::reqwest::Client::new(breaker.clone(), client.clone());
        let mut answer = pin!(client.send(client.inner().get(&url)));
        let at_first = poll(answer.as_mut());
        if matches!(&at_first, Poll::Ready(Err(refused)) if refused.is_open()) {
            return false;
        }
        crowd.work().unwrap();
        let whole = async {
            let answer = match at_first {
                Poll::Ready(answer) => answer,
                Poll::Pending => answer.await,
            };
            answer.unwrap().bytes().await
        };
        runtime.block_on(whole).is_ok()
    };
    let crowds = tokio::task::spawn_blocking(move || one_of_a_crowd_passes(enter));
    crowds.await.unwrap();
    assert!(mock.hits() >= u64::from(ROUNDS));
}
