//! The breakers, each set to the same terms: five failures in a row open it, it stays open for `cooldown`, one good probe closes
//! it and one bad one opens it again, and a caller's own mistake counts for nothing where it can be told so.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fuseline::{Breaker, Kind, Outcome, Policy, PolicySpec, TripRule};
use tower_service::Service;

use crate::call::{Call, Fault, Work, blocking, polled};

/// A breaker under examination.
pub struct Subject {
    pub name: &'static str,
    /// Begins a call; nothing where it is refused.
    pub begin: Box<dyn Fn() -> Option<Box<dyn Call>>>,
    /// Probes that it takes to decide.
    pub probes: usize,
    /// Whether it has a rule of failures in a row.
    pub counts_runs: bool,
    /// Whether it has calls that can be dropped on their way.
    pub is_async: bool,
}

impl Subject {
    fn new(name: &'static str, begin: impl Fn() -> Option<Box<dyn Call>> + 'static) -> Self {
        let begin = Box::new(begin);
        Self {
            name,
            begin,
            probes: 1,
            counts_runs: true,
            is_async: true,
        }
    }
}

/// How long Fuseline lets a probe hang; the others have no such setting.
pub const LEASE: Duration = Duration::from_secs(1);

/// Makes a fresh breaker with this cooldown.
pub type Maker = fn(Duration) -> Subject;

pub const ALL: [Maker; 7] = [
    fuseline,
    recloser,
    failsafe,
    breaker,
    circuitbreaker_rs,
    tower_resilience,
    llm_circuit_breaker,
];

fn fuseline(cooldown: Duration) -> Subject {
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 5 }]),
        cooldown: Some(cooldown),
        jitter: Some(0.0),
        backoff: Some(1.0),
        probes: Some(1),
        successes_to_close: Some(1),
        probe_timeout: Some(LEASE),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new("openai", Policy::new(&spec).expect("settings are in range"));
    let breaker =
        breaker.with_classifier(|result: &Result<(), Fault>, took: Duration| match result {
            Ok(()) => Outcome::success(took),
            Err(Fault::Caller) => Outcome::Neutral,
            Err(Fault::Provider) => Outcome::failure(Kind::ServerError),
        });
    Subject::new("fuseline", move || {
        let breaker = breaker.clone();
        polled(|work| async move { breaker.call(work).await })
    })
}

/// It knows shares alone: all of the last four, which it judges from the fifth on, and of probes the last one, from the second on.
fn recloser(cooldown: Duration) -> Subject {
    let custom = recloser::Recloser::custom();
    let custom = custom.error_rate_closed(1.0).error_rate_half_open(0.5);
    let recloser = custom
        .closed_len(4)
        .half_open_len(1)
        .open_wait(cooldown)
        .build();
    let recloser = recloser::AsyncRecloser::from(recloser);
    let begin =
        move || polled(|work| recloser.call_with(|fault: &Fault| *fault == Fault::Provider, work));
    Subject {
        probes: 2,
        counts_runs: false,
        ..Subject::new("recloser 1.4.0", begin)
    }
}

fn failsafe(cooldown: Duration) -> Subject {
    use failsafe::futures::CircuitBreaker;
    use failsafe::{Config, backoff, failure_policy::consecutive_failures};
    let policy = consecutive_failures(5, backoff::constant(cooldown));
    let breaker = Config::new().failure_policy(policy).build();
    Subject::new("failsafe 1.3.0", move || {
        polled(|work| breaker.call_with(|fault: &Fault| *fault == Fault::Provider, work))
    })
}

fn breaker(cooldown: Duration) -> Subject {
    use breaker::{CircuitBreaker, CircuitBreakerConfig};
    let config = CircuitBreakerConfig::builder()
        .failure_rate_threshold(0.0)
        .consecutive_failures(5)
        .wait_duration(cooldown)
        .half_open_max_calls(1)
        .success_threshold(1)
        .failure_predicate(|fault: &Fault| *fault == Fault::Provider);
    let breaker = Arc::new(CircuitBreaker::new(config.build()));
    Subject::new("breaker 2.0.2", move || {
        let breaker = breaker.clone();
        polled(|work| async move { breaker.call(|| work).await })
    })
}

/// It cannot be told whose fault an error is.
fn circuitbreaker_rs(cooldown: Duration) -> Subject {
    use circuitbreaker_rs::{CircuitBreaker, DefaultPolicy};
    let builder = CircuitBreaker::<DefaultPolicy, Fault>::builder()
        .failure_threshold(2.0)
        .min_throughput(u64::MAX)
        .consecutive_failures(5)
        .consecutive_successes(1)
        .probe_interval(1)
        .cooldown(cooldown);
    let breaker: CircuitBreaker<DefaultPolicy, Fault> = builder.build();
    let begin = move || {
        let breaker = breaker.clone();
        blocking(move |body| drop(breaker.call(|| body.run())))
    };
    Subject {
        is_async: false,
        ..Subject::new("circuitbreaker-rs 0.1.1", begin)
    }
}

fn tower_resilience(cooldown: Duration) -> Subject {
    use tower_resilience_circuitbreaker::CircuitBreakerLayer;
    #[derive(Clone)]
    struct Provider;
    impl Service<Work> for Provider {
        type Response = ();
        type Error = Fault;
        type Future = Work;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, work: Work) -> Work {
            work
        }
    }
    let layer = CircuitBreakerLayer::builder()
        .consecutive_failures(5)
        .wait_duration_in_open(cooldown)
        .permitted_calls_in_half_open(1)
        .failure_classifier(|result: &Result<(), Fault>| *result == Err(Fault::Provider))
        .build();
    let service = layer.expect("settings are in range").layer_fn(Provider);
    Subject::new("tower-resilience-circuitbreaker 0.14.0", move || {
        let mut service = service.clone();
        polled(|work| service.call(work))
    })
}

fn llm_circuit_breaker(cooldown: Duration) -> Subject {
    use llm_circuit_breaker::{BreakerConfig, CircuitBreaker};
    let config = BreakerConfig::default()
        .with_failure_threshold(5)
        .with_reset_timeout(cooldown);
    let breaker = Arc::new(CircuitBreaker::new(config));
    let begin = move || {
        let breaker = breaker.clone();
        blocking(move |body| {
            let _ = breaker.call(|fault| *fault == Fault::Provider, || body.run());
        })
    };
    Subject {
        is_async: false,
        ..Subject::new("llm-circuit-breaker 0.1.0", begin)
    }
}
