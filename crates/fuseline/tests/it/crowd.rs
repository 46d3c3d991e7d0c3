//! Sixty-four callers at the end of a cooldown, through each entrance: one probe, and 63 refusals at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, State};
use fuseline_mock::{Mock, Reply};
use http_body_util::{BodyExt as _, Full};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::due;

const CROWD: u32 = 64;

/// Work that counts who does it, and lasts until it is let go.
#[derive(Clone)]
struct Work {
    done: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
}

impl Work {
    async fn run(self) -> Result<(), ()> {
        self.done.fetch_add(1, Ordering::Relaxed);
        let _passed = self.gate.acquire().await;
        Ok(())
    }
}

/// Whether the caller was let through.
type Callers = JoinSet<bool>;

async fn one_of_the_crowd_passes(enter: impl Fn(&mut Callers, Breaker, Work)) {
    let (breaker, _) = due();
    let work = Work {
        done: Arc::default(),
        gate: Arc::new(Semaphore::new(0)),
    };
    let mut callers = Callers::new();
    for _ in 0..CROWD {
        enter(&mut callers, breaker.clone(), work.clone());
    }
    for _ in 1..CROWD {
        assert!(!callers.join_next().await.unwrap().unwrap());
    }
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(breaker.snapshot().live_probes, 1);
    work.gate.add_permits(1);
    assert!(callers.join_next().await.unwrap().unwrap());
    assert_eq!(work.done.load(Ordering::Relaxed), 1);
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn through_call() {
    one_of_the_crowd_passes(|callers, breaker, work| {
        callers.spawn(async move { breaker.call(work.run()).await.is_ok() });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_call_blocking() {
    one_of_the_crowd_passes(|callers, breaker, work| {
        let runtime = Handle::current();
        callers.spawn_blocking(move || {
            let call = || runtime.block_on(work.run());
            breaker.call_blocking(call).is_ok()
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_permit() {
    one_of_the_crowd_passes(|callers, breaker, work| {
        callers.spawn(async move {
            let Ok(permit) = breaker.try_acquire() else {
                return false;
            };
            work.run().await.unwrap();
            permit.success();
            true
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_tower() {
    one_of_the_crowd_passes(|callers, breaker, work| {
        let client = service_fn(move |_: ()| {
            let work = work.clone();
            async {
                let worked = work.run().await;
                worked.map(|()| http::Response::new(Full::new(Bytes::from("yes"))))
            }
        });
        let client = BreakerLayer::new(breaker).layer(client);
        callers.spawn(async move {
            let Ok(response) = client.oneshot(()).await else {
                return false;
            };
            response.into_body().collect().await.is_ok()
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_reqwest() {
    let mock = Mock::start(Reply::ok().delay(Duration::from_millis(300)))
        .await
        .unwrap();
    let (breaker, _) = due();
    let client = fuseline::reqwest::Client::new(breaker.clone(), reqwest::Client::new());
    let mut callers = Callers::new();
    for _ in 0..CROWD {
        let (client, url) = (client.clone(), mock.url() + "/v1/models");
        callers.spawn(async move {
            let request = client.inner().get(url);
            let Ok(response) = client.send(request).await else {
                return false;
            };
            response.bytes().await.is_ok()
        });
    }
    let passed = callers
        .join_all()
        .await
        .into_iter()
        .filter(|passed| *passed);
    assert_eq!((passed.count(), mock.hits()), (1, 1));
    assert_eq!(breaker.state(), State::Closed);
}
