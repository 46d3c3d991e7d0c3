//! The others, each through its own way to make a call, set so that it does what its name says and nothing else.

use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tower_service::Service;

use crate::measure::{Contestant, looped};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

pub fn contestants() -> Vec<Contestant> {
    vec![
        recloser(),
        failsafe(),
        breaker(),
        circuitbreaker_rs(),
        tower_resilience(),
        llm_circuit_breaker(),
    ]
}

/// A ring of the last 100 calls, 50 %.
fn recloser() -> Contestant {
    let with_rate = |rate| {
        let custom = recloser::Recloser::custom()
            .error_rate(rate)
            .closed_len(100);
        custom.open_wait(HOUR).build()
    };
    let (closed, open, failing) = (with_rate(0.5), with_rate(0.5), with_rate(1.1));
    for _ in 0..200 {
        let _ = open.call(|| Err::<(), _>(()));
    }
    assert!(matches!(
        open.call(|| Ok::<_, ()>(())),
        Err(recloser::Error::Rejected)
    ));
    never_trips(|| {
        matches!(
            failing.call(|| Err::<(), _>(())),
            Err(recloser::Error::Inner(()))
        )
    });
    Contestant {
        name: "recloser 1.4.0",
        success: looped(move || closed.call(|| Ok::<_, ()>(1)).is_ok()),
        refusal: looped(move || open.call(|| Ok::<_, ()>(1)).is_ok()),
        failure: looped(move || failing.call(|| Err::<u8, _>(())).is_ok()),
    }
}

/// 50 % over 60 s, or 5 in a row.
fn failsafe() -> Contestant {
    use failsafe::failure_policy::{consecutive_failures, success_rate_over_time_window};
    use failsafe::{CircuitBreaker, Config, Error, FailurePolicy, backoff};
    let with = |rate, run| {
        let wait = || backoff::constant(HOUR);
        let by_rate = success_rate_over_time_window(rate, 10, MINUTE, wait());
        let policy = by_rate.or_else(consecutive_failures(run, wait()));
        Config::new().failure_policy(policy).build()
    };
    let (closed, open, failing) = (with(0.5, 5), with(0.5, 5), with(0.0, u32::MAX));
    for _ in 0..20 {
        let _ = open.call(|| Err::<(), _>(()));
    }
    assert!(matches!(
        open.call(|| Ok::<_, ()>(())),
        Err(Error::Rejected)
    ));
    never_trips(|| matches!(failing.call(|| Err::<(), _>(())), Err(Error::Inner(()))));
    Contestant {
        name: "failsafe 1.3.0",
        success: looped(move || closed.call(|| Ok::<_, ()>(1)).is_ok()),
        refusal: looped(move || open.call(|| Ok::<_, ()>(1)).is_ok()),
        failure: looped(move || failing.call(|| Err::<u8, _>(())).is_ok()),
    }
}

/// 50 % of the last 100 calls, or 5 in a row; 0 % switches the rate off.
fn breaker() -> Contestant {
    use breaker::{BackoffStrategy, CircuitBreaker, CircuitBreakerConfig};
    let with = |rate, run| {
        let config = CircuitBreakerConfig::builder()
            .failure_rate_threshold(rate)
            .consecutive_failures(run)
            .sliding_window_size(100)
            .minimum_calls(10)
            .backoff(BackoffStrategy::Fixed(HOUR));
        CircuitBreaker::new(config.build())
    };
    let call = |breaker: &CircuitBreaker, result: Result<u8, Failed>| {
        let called = pin!(breaker.call(|| ready(result)));
        matches!(poll_once(called), Poll::Ready(Ok(_)))
    };
    let (closed, open, failing) = (with(0.5, 5), with(0.5, 5), with(0.0, u32::MAX));
    for _ in 0..20 {
        call(&open, Err(Failed));
    }
    assert!(open.is_open());
    never_trips(|| !call(&failing, Err(Failed)) && failing.is_closed());
    Contestant {
        name: "breaker 2.0.2",
        success: looped(move || call(&closed, Ok(1))),
        refusal: looped(move || call(&open, Ok(1))),
        failure: looped(move || call(&failing, Err(Failed))),
    }
}

/// Its default policy: 50 %, or 5 in a row.
fn circuitbreaker_rs() -> Contestant {
    use circuitbreaker_rs::{BreakerError, CircuitBreaker, DefaultPolicy};
    let with = |rate, run| -> CircuitBreaker<DefaultPolicy, Failed> {
        let builder = CircuitBreaker::<DefaultPolicy, Failed>::builder()
            .failure_threshold(rate)
            .min_throughput(10)
            .consecutive_failures(run)
            .cooldown(HOUR);
        builder.build()
    };
    let (closed, open, failing) = (with(0.5, 5), with(0.5, 5), with(2.0, u64::MAX));
    for _ in 0..20 {
        let _ = open.call(|| Err::<(), _>(Failed));
    }
    assert!(matches!(open.call(|| Ok(())), Err(BreakerError::Open)));
    never_trips(|| {
        let failed = failing.call(|| Err::<(), _>(Failed));
        matches!(failed, Err(BreakerError::Operation(_)))
    });
    Contestant {
        name: "circuitbreaker-rs 0.1.1",
        success: looped(move || closed.call(|| Ok(1)).is_ok()),
        refusal: looped(move || open.call(|| Ok(1)).is_ok()),
        failure: looped(move || failing.call(|| Err::<u8, _>(Failed)).is_ok()),
    }
}

/// 50 % of the last 100 calls: over a time instead, its cost grows with the traffic.
fn tower_resilience() -> Contestant {
    use tower_resilience_circuitbreaker::{CircuitBreaker, CircuitBreakerLayer, SlidingWindowType};
    #[derive(Clone)]
    struct Provider(bool);
    impl Service<()> for Provider {
        type Response = u8;
        type Error = Failed;
        type Future = Ready<Result<u8, Failed>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, (): ()) -> Self::Future {
            ready(if self.0 { Ok(1) } else { Err(Failed) })
        }
    }
    let with = |rate, min_calls, well| {
        let layer = CircuitBreakerLayer::builder()
            .failure_rate_threshold(rate)
            .sliding_window_type(SlidingWindowType::CountBased)
            .sliding_window_size(100)
            .minimum_number_of_calls(min_calls)
            .wait_duration_in_open(HOUR)
            .build();
        layer
            .expect("settings are in range")
            .layer_fn(Provider(well))
    };
    let (closed, open, failing) = (
        with(0.5, 10, true),
        with(0.5, 10, false),
        with(1.0, usize::MAX, false),
    );
    let mut opening = open.clone();
    for _ in 0..20 {
        let _ = poll_once(pin!(opening.call(())));
    }
    let mut failed = failing.clone();
    never_trips(|| {
        let result = poll_once(pin!(failed.call(())));
        matches!(result, Poll::Ready(Err(error)) if !error.is_circuit_open())
    });
    // A service is called through `&mut`, so each loop has a clone, which shares the circuit.
    let cloned = |service: CircuitBreaker<Provider, _>| {
        Box::new(move |times| {
            let mut own = service.clone();
            for _ in 0..times {
                std::hint::black_box(poll_once(pin!(own.call(()))).is_ready());
            }
        })
    };
    Contestant {
        name: "tower-resilience-circuitbreaker 0.14.0",
        success: cloned(closed),
        refusal: cloned(open),
        failure: cloned(failing),
    }
}

/// 5 in a row; it has no rate.
fn llm_circuit_breaker() -> Contestant {
    use llm_circuit_breaker::{BreakerConfig, BreakerError, CircuitBreaker};
    let with = |run| {
        let config = BreakerConfig::default().with_failure_threshold(run);
        CircuitBreaker::new(config.with_reset_timeout(HOUR))
    };
    let (closed, open, failing) = (with(5), with(5), with(u32::MAX));
    for _ in 0..20 {
        let _ = open.call(|_| true, || Err::<(), _>(()));
    }
    assert!(matches!(
        open.call(|_| true, || Ok::<_, ()>(())),
        Err(BreakerError::Open)
    ));
    never_trips(|| {
        let failed = failing.call(|_| true, || Err::<(), _>(()));
        matches!(failed, Err(BreakerError::Inner(())))
    });
    Contestant {
        name: "llm-circuit-breaker 0.1.0",
        success: looped(move || closed.call(|_: &()| true, || Ok(1)).is_ok()),
        refusal: looped(move || open.call(|_: &()| true, || Ok(1)).is_ok()),
        failure: looped(move || failing.call(|_| true, || Err::<u8, _>(())).is_ok()),
    }
}

/// A breaker that shall only count failures must not refuse one.
fn never_trips(mut fails: impl FnMut() -> bool) {
    assert!((0..1_000).all(|_| fails()));
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
