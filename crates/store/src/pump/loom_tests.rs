//! Models of the pump's hand-over: breakers change in one thread while it reads them in another, in every interleaving.
//!
//! That they can fail was seen: where the pump goes by the number that it read before the history, a transition is written twice.
//!
//! Run with `RUSTFLAGS="--cfg fuseline_loom" cargo test --release -p fuseline-store --no-default-features --lib loom_tests`.

use fuseline_core::{Clock, Kind, Outcome, Policy, PolicySpec, RegistryConfig, State, TripRule};

use super::*;
use crate::memory::Memory;

const SECOND: Duration = Duration::from_secs(1);

/// A closed breaker that one failure opens and one success closes, a second later.
fn registry() -> (Registry, Breaker) {
    let registry = Registry::new(RegistryConfig {
        clock: Clock::manual(),
        ..RegistryConfig::default()
    });
    let policy = Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 1 }]),
        cooldown: Some(SECOND),
        jitter: Some(0.0),
        successes_to_close: Some(1),
        ..PolicySpec::default()
    });
    let name = ScopeName::provider("p");
    let breaker = registry.get_breaker(&name, &policy.unwrap(), Tick::ZERO);
    (registry, breaker.unwrap())
}

fn call(breaker: &Breaker, outcome: &Outcome, ms: u64) {
    let now = Tick::from_millis(ms);
    breaker.try_acquire(now).unwrap().record(outcome, now);
}

fn moment(ms: u64) -> Moment {
    Moment {
        tick: Tick::from_millis(ms),
        wall_ms: ms,
        boot: None,
    }
}

#[test]
fn each_transition_is_written_once_and_the_newest_state_last() {
    loom::model(|| {
        let (registry, breaker) = registry();
        let kept = Memory::default();
        let mut worker = Worker::new(registry, Box::new(kept.clone()), 1);
        let thread = loom::thread::spawn(move || {
            call(&breaker, &Outcome::failure(Kind::ServerError), 0);
            call(&breaker, &Outcome::success(Duration::ZERO), 1_000);
            call(&breaker, &Outcome::failure(Kind::ServerError), 1_000);
        });
        // Counts are due at the first turn alone: from then on it goes by the number of changes.
        worker.turn(&moment(1_000), Extent::WhatIsDue);
        worker.turn(&moment(1_000), Extent::WhatIsDue);
        thread.join().unwrap();
        worker.turn(&moment(1_000), Extent::WhatIsDue);
        let numbers: Vec<_> = kept.history().iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let states: Vec<_> = kept
            .clone()
            .load()
            .unwrap()
            .iter()
            .map(|record| record.state)
            .collect();
        assert_eq!(states, [State::Open]);
        let told = worker.tally.kept();
        assert_eq!((told.transitions, told.dropped, told.failures), (4, 0, 0));
    });
}
