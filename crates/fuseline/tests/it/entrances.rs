//! One table: five entrances, six endings, from a closed breaker and as a probe. Counters and slots must be exactly right.

use std::future::{Future, pending, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Kind, State};
use fuseline_mock::{Mock, Reply};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{breaker, by_kind, due, patient};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Entrance {
    Call,
    CallBlocking,
    Permit,
    Tower,
    Reqwest,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Success,
    Failure,
    Cancelled,
    Panic,
    Timeout,
    OutlivesItsGeneration,
}

use Ending::{Cancelled, Failure, OutlivesItsGeneration, Panic, Success, Timeout};
use Entrance::{Call, CallBlocking, Permit, Reqwest, Tower};

/// Run of failures and late outcomes after the call, which began at a run of 2 with none late; and the state that the
/// same ending leaves a half-open breaker in.
const TABLE: [(Ending, u32, u64, State); 6] = [
    (Success, 0, 0, State::Closed),
    (Failure, 3, 0, State::Open),
    (Cancelled, 2, 0, State::HalfOpen),
    (Panic, 2, 0, State::HalfOpen),
    (Timeout, 3, 0, State::Open),
    (OutlivesItsGeneration, 0, 1, State::Closed), // reset while it ran
];

const LIMIT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn every_entrance_settles_every_ending_once() {
    for entrance in [Call, CallBlocking, Permit, Tower, Reqwest] {
        for (ending, run, late, probe) in TABLE {
            let what = format!("{entrance:?}, {ending:?}");
            let (closed, _) = breaker(&patient());
            for _ in 0..2 {
                closed.try_acquire().unwrap().failure(Kind::ServerError);
            }
            go(entrance, ending, &closed).await;
            let seen = closed.snapshot();
            assert_eq!((seen.run, seen.late), (run, late), "{what}");
            assert_eq!((seen.in_flight, seen.live_probes), (0, 0), "{what}");
            let timeouts = seen.kinds.iter().any(|(kind, _)| *kind == Kind::Timeout);
            assert_eq!(timeouts, ending == Timeout, "{what}");

            let (half_open, _) = due();
            go(entrance, ending, &half_open).await;
            let seen = half_open.snapshot();
            assert_eq!(seen.state, probe, "probe: {what}");
            assert_eq!((seen.late, seen.run), (late, 0), "probe: {what}");
            assert_eq!((seen.in_flight, seen.live_probes), (0, 0), "probe: {what}");
            assert_eq!(half_open.is_available(), probe != State::Open, "{what}");
        }
    }
}

async fn go(entrance: Entrance, ending: Ending, breaker: &Breaker) {
    match entrance {
        Call => {
            let breaker = breaker.clone();
            let work = work(ending, breaker.clone());
            drive(ending, async move {
                let guarded = breaker.with_classifier(by_kind::<()>);
                let _ = guarded.call(work).await;
            })
            .await;
        }
        CallBlocking => blocking(ending, breaker.clone()),
        Permit => {
            let permit = breaker.try_acquire_owned().unwrap();
            let work = work(ending, breaker.clone());
            drive(ending, async move {
                match work.await {
                    Ok(()) => permit.success(),
                    Err(kind) => permit.failure(kind),
                };
            })
            .await;
        }
        Tower => tower(ending, breaker.clone()).await,
        Reqwest => reqwest(ending, breaker.clone()).await,
    }
}

/// The guarded work itself.
async fn work(ending: Ending, breaker: Breaker) -> Result<(), Kind> {
    match ending {
        Success => Ok(()),
        Failure => Err(Kind::ServerError),
        Cancelled => pending().await,
        Panic => panic!("the call's own"),
        Timeout => timeout(LIMIT, pending()).await.map_err(|_| Kind::Timeout),
        OutlivesItsGeneration => {
            breaker.reset();
            Err(Kind::ServerError)
        }
    }
}

/// Runs a guarded call to its end: to its panic, or to where its caller loses patience.
async fn drive(ending: Ending, call: impl Future<Output = ()> + Send + 'static) {
    match ending {
        Cancelled => {
            let mut call = pin!(call);
            poll_fn(|cx| {
                assert!(call.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        _ => {
            let mut tasks = JoinSet::new();
            tasks.spawn(call);
            let ended = tasks.join_next().await.unwrap();
            assert_eq!(ended.is_err(), ending == Panic);
        }
    }
}

/// A blocking call cannot be dropped: it is cancelled by unwinding its thread.
fn blocking(ending: Ending, breaker: Breaker) {
    let thread = std::thread::spawn(move || {
        let guarded = breaker.with_classifier(by_kind::<()>);
        let _ = guarded.call_blocking(|| match ending {
            Success => Ok(()),
            Failure => Err(Kind::ServerError),
            Cancelled => resume_unwind(Box::new(())),
            Panic => panic!("the call's own"),
            Timeout => {
                let (_open, never) = mpsc::channel();
                never.recv_timeout(LIMIT).map_err(|_| Kind::Timeout)
            }
            OutlivesItsGeneration => {
                breaker.reset();
                Err(Kind::ServerError)
            }
        });
    });
    assert_eq!(thread.join().is_err(), matches!(ending, Cancelled | Panic));
}

async fn tower(ending: Ending, breaker: Breaker) {
    let own = breaker.clone();
    let client = service_fn(move |_: ()| {
        let work = work(ending, own.clone());
        async {
            work.await
                .map(|()| http::Response::new(Full::new(Bytes::from("yes"))))
        }
    });
    let client =
        BreakerLayer::with_classifier(breaker, by_kind::<http::response::Parts>).layer(client);
    drive(ending, async move {
        if let Ok(response) = client.oneshot(()).await {
            response.into_body().collect().await.unwrap();
        }
    })
    .await;
}

async fn reqwest(ending: Ending, breaker: Breaker) {
    let reply = match ending {
        Success | OutlivesItsGeneration => Reply::ok(),
        Failure => Reply::status(503),
        Cancelled | Panic | Timeout => Reply::stall(),
    };
    let mock = Mock::start(reply).await.unwrap();
    let url = mock.url() + "/v1/models";
    let client = fuseline::reqwest::Client::new(breaker.clone(), reqwest::Client::new());
    let mut request = client.inner().get(url);
    if ending == Timeout {
        request = request.timeout(LIMIT);
    }
    let call = async move {
        if let Ok(response) = client.send(request).await {
            if ending == OutlivesItsGeneration {
                breaker.reset();
            }
            let _ = response.bytes().await;
        }
    };
    match ending {
        Cancelled => tokio::select! {
            () = call => panic!("it was to stall"),
            () = was_asked(&mock) => {}
        },
        Panic => {
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                tokio::select! {
                    () = call => {}
                    () = was_asked(&mock) => panic!("the caller's own"),
                }
            });
            assert!(tasks.join_next().await.unwrap().is_err());
        }
        _ => call.await,
    }
}

async fn was_asked(mock: &Mock) {
    let within = Duration::from_secs(10);
    mock.wait_for_hits(1, within).await.unwrap();
}
