//! How other breakers failed, and what is seen here instead. Numbers are those of the field reports.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};

use fuseline_core::{
    Breaker, Clock, Kind, Outcome, Permit, Policies, Policy, PolicySpec, Reason, Registry,
    RegistryConfig, ScopeName, Scopes, State, Tick, TripRule,
};

const SECOND: Duration = Duration::from_secs(1);
const OK: Outcome = Outcome::success(Duration::from_millis(200));
const ERROR: Outcome = Outcome::failure(Kind::ServerError);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn breaker(spec: PolicySpec) -> Breaker {
    Breaker::new(ScopeName::provider("a"), Policy::new(&spec).unwrap())
}

/// Five in a row, a second of cooldown, one good probe closes.
fn quick() -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 5 }]),
        cooldown: Some(SECOND),
        jitter: Some(0.0),
        backoff: Some(1.0),
        successes_to_close: Some(1),
        ..PolicySpec::default()
    }
}

fn acquire(breaker: &Breaker, now: Tick) -> Permit {
    breaker.try_acquire_owned(Duration::ZERO, now).unwrap()
}

fn fail(breaker: &Breaker, times: usize, now: Tick) {
    for _ in 0..times {
        acquire(breaker, now).record(&ERROR, now);
    }
}

fn opened(breaker: &Breaker) -> usize {
    breaker
        .history(0)
        .iter()
        .filter(|transition| transition.to == State::Open)
        .count()
}

#[test]
fn report_1_fifty_callers_at_the_end_of_a_cooldown_are_one_probe() {
    let breaker = breaker(quick());
    fail(&breaker, 5, at(0));
    let start = Arc::new(Barrier::new(50));
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (breaker, start) = (breaker.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                breaker.try_acquire_owned(Duration::ZERO, at(1_000))
            })
        })
        .collect();
    let answers: Vec<_> = callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .collect();
    let (mut probes, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((probes.len(), refused.len()), (1, 49));
    assert!(
        refused
            .iter()
            .all(|refused| refused.as_ref().unwrap_err().reason == Reason::Probing)
    );
    probes.pop().unwrap().unwrap().record(&OK, at(1_500));
    assert_eq!(breaker.state(at(1_500)), State::Closed);
    let all: Vec<_> = (0..50).map(|_| acquire(&breaker, at(1_500))).collect();
    assert_eq!(all.len(), 50);
}

#[test]
fn report_2_a_probe_on_an_early_return_path_gives_its_slot_back() {
    let breaker = breaker(quick());
    fail(&breaker, 5, at(0));
    // Run 1: a 404 says nothing about health; the very next call is a probe again.
    acquire(&breaker, at(1_000)).record(&Outcome::failure(Kind::NotFound), at(1_100));
    let probe = acquire(&breaker, at(1_100));
    assert!(probe.is_probe());
    // Run 2: the body was cut.
    probe.record(&Outcome::failure(Kind::StreamTruncated), at(1_200));
    let refused = breaker.try_acquire(at(1_200)).unwrap_err();
    assert_eq!(
        (refused.reason, refused.retry_after),
        (Reason::Open, SECOND)
    );
    // And one that is just dropped.
    drop(acquire(&breaker, at(2_200)));
    assert!(acquire(&breaker, at(2_200)).is_probe());
}

#[test]
fn report_5_a_hung_probe_is_written_off_and_lets_no_flood_out() {
    let breaker = breaker(PolicySpec {
        probe_timeout: Some(SECOND),
        ..quick()
    });
    fail(&breaker, 5, at(0));
    let mut hung = Vec::new();
    for call in 0..200_u64 {
        if let Ok(permit) = breaker.try_acquire_owned(Duration::ZERO, at(call * 50)) {
            hung.push(permit);
        }
    }
    assert!(
        (4..=6).contains(&hung.len()),
        "{} calls went out in 10 s",
        hung.len()
    );
    assert_eq!(breaker.snapshot(at(10_000)).episodes as usize, hung.len());
}

#[test]
fn report_7_results_of_an_earlier_state_change_nothing() {
    for late in [&OK, &ERROR] {
        let breaker = breaker(quick());
        let slow: Vec<_> = (0..10).map(|_| acquire(&breaker, at(0))).collect();
        fail(&breaker, 5, at(10));
        let probe = acquire(&breaker, at(3_000));
        for permit in slow {
            permit.record(late, at(3_000));
        }
        let seen = breaker.snapshot(at(3_000));
        assert_eq!(
            (seen.state, seen.late, seen.live_probes),
            (State::HalfOpen, 10, 1)
        );
        probe.record(&OK, at(3_100));
        assert_eq!(
            breaker.state(at(3_100)),
            State::Closed,
            "the probe alone decides"
        );
    }
}

#[test]
fn report_8_failures_in_the_same_instant_open_once_and_recovery_comes() {
    for callers in [6, 20, 100] {
        let breaker = breaker(quick());
        let permits: Vec<_> = (0..callers).map(|_| acquire(&breaker, at(0))).collect();
        let start = Arc::new(Barrier::new(callers));
        let threads: Vec<_> = permits
            .into_iter()
            .map(|permit| {
                let start = start.clone();
                std::thread::spawn(move || {
                    start.wait();
                    permit.record(&ERROR, at(7));
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(opened(&breaker), 1, "{callers} callers");
        assert!(breaker.try_acquire(at(1_006)).is_err());
        assert!(breaker.try_acquire(at(1_007)).unwrap().is_probe());
    }
}

#[test]
fn report_9_late_failures_do_not_push_the_cooldown_away() {
    let rate = TripRule::Rate {
        threshold: 0.5,
        window: Duration::from_secs(10),
        min_calls: 5,
    };
    let breaker = breaker(PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 5 }, rate]),
        ..quick()
    });
    let flying: Vec<_> = (0..100).map(|_| acquire(&breaker, at(0))).collect();
    fail(&breaker, 5, at(0));
    let mut probed = 0;
    for (step, permit) in (1..).zip(flying) {
        let now = at(step * 50);
        permit.record(&ERROR, now);
        if let Ok(probe) = breaker.try_acquire(now) {
            probed += 1;
            assert!(probe.is_probe() && now >= at(1_000));
            probe.record(&OK, now);
            break;
        }
    }
    assert_eq!((probed, breaker.state(at(1_050))), (1, State::Closed));
    for call in 0..50 {
        let now = at(6_000 + call * 10);
        acquire(&breaker, now).record(&OK, now);
    }
    let share = breaker.snapshot(at(16_000)).rules[1].observed;
    assert!(share.abs() < f64::EPSILON, "{share}");
}

#[test]
fn report_11_a_forced_state_outlives_the_cooldown_that_ran_before_it() {
    for open in [true, false] {
        let breaker = breaker(quick());
        fail(&breaker, 5, at(0));
        if open {
            breaker.force_open(None, at(500))
        } else {
            breaker.force_closed(None, at(500))
        }
        let mut passed = 0;
        for call in 0..100 {
            if let Ok(permit) = breaker.try_acquire(at(500 + call * 100)) {
                permit.record(&ERROR, at(500 + call * 100));
                passed += 1;
            }
        }
        assert_eq!(passed, if open { 0 } else { 100 });
        let forced = if open {
            State::ForcedOpen
        } else {
            State::ForcedClosed
        };
        assert_eq!(breaker.state(at(10_500)), forced);
        breaker.release(at(11_000));
        assert_eq!(breaker.state(at(11_000)), State::Closed);
    }
}

#[test]
fn report_12_a_blip_a_minute_never_trips() {
    let minute = Duration::from_secs(60);
    let window = TripRule::Window {
        failures: 5,
        window: minute,
    };
    let breaker = breaker(PolicySpec {
        trip: Some(vec![window]),
        ..quick()
    });
    for blip in 0..100_u64 {
        let now = at(blip * 61_000);
        fail(&breaker, 1, now);
        assert_eq!(breaker.snapshot(now).rules[0].hits, 1);
        acquire(&breaker, at(blip * 61_000 + 30_000)).record(&OK, at(blip * 61_000 + 30_000));
    }
    assert_eq!(opened(&breaker), 0);
}

#[test]
fn report_14_only_monotonic_time_counts() {
    // Nothing here can read a wall clock; a monotonic one that stumbles backwards does not stretch the cooldown.
    let clock = Clock::manual();
    let breaker = breaker(PolicySpec {
        cooldown: Some(Duration::from_secs(30)),
        ..quick()
    });
    fail(&breaker, 5, at(60_000));
    clock.advance(Duration::from_secs(1));
    let refused = breaker.try_acquire(clock.now()).unwrap_err();
    assert!(refused.retry_after <= Duration::from_secs(90));
    assert_eq!(
        breaker.check(at(60_000)).unwrap_err().retry_after,
        Duration::from_secs(30)
    );
    assert!(breaker.try_acquire(at(89_999)).is_err());
    assert!(breaker.try_acquire(at(90_000)).unwrap().is_probe());
}

#[test]
fn report_16_the_unit_is_the_call_not_the_attempt() {
    // Five attempts under one permit are one failure; the fifth call opens.
    let breaker = breaker(quick());
    for call in 1..=5 {
        let permit = acquire(&breaker, at(call));
        for _attempt in 0..5 {
            assert!(
                permit.is_current(at(call)),
                "its own retries do not open the breaker under it"
            );
        }
        assert_eq!(
            breaker.state(at(call)),
            if call == 4 || call == 5 {
                State::Degraded
            } else {
                State::Closed
            }
        );
        permit.record(&ERROR, at(call));
    }
    assert_eq!(breaker.state(at(5)), State::Open);
}

#[test]
fn report_19_one_hiccup_stays_closed_and_a_real_trip_heals_by_itself() {
    let breaker = breaker(PolicySpec {
        jitter: Some(0.0),
        ..PolicySpec::default()
    });
    for call in 0..100 {
        acquire(&breaker, at(call)).record(if call == 49 { &ERROR } else { &OK }, at(call));
    }
    assert_eq!(
        (breaker.state(at(100)), opened(&breaker)),
        (State::Closed, 0)
    );
    let mut now = 1_000;
    while now < 11_000 {
        if let Ok(permit) = breaker.try_acquire(at(now)) {
            permit.record(&ERROR, at(now));
        }
        now += 50;
    }
    assert_eq!(breaker.state(at(now)), State::Open);
    let healed = (now..now + 60_000).step_by(50).find(|ms| {
        if let Ok(permit) = breaker.try_acquire(at(*ms)) {
            permit.record(&OK, at(*ms));
        }
        breaker.state(at(*ms)) == State::Closed
    });
    let opened_at = breaker
        .history(0)
        .iter()
        .rev()
        .find(|change| change.to == State::Open)
        .unwrap()
        .at;
    assert!(
        at(healed.unwrap()).since(opened_at) <= Duration::from_millis(15_100),
        "one cooldown and the probes"
    );
}

#[test]
fn report_20_invented_models_do_not_fill_memory_and_an_open_breaker_stays() {
    let registry = Registry::new(RegistryConfig {
        clock: Clock::manual(),
        ..RegistryConfig::default()
    });
    let policies = Policies::all(&Policy::new(&quick()).unwrap());
    let scopes = |model: &str, now| {
        let names = (
            ScopeName::provider("a"),
            Some(ScopeName::model("a", model)),
            Some(ScopeName::key("a", "0")),
        );
        Scopes::new(&registry, names.0, names.1, names.2, policies.clone(), now).unwrap()
    };
    for _ in 0..5 {
        scopes("real", at(0))
            .try_acquire(Duration::ZERO, at(0))
            .unwrap()
            .record(&Outcome::failure(Kind::Overloaded), None, at(0));
    }
    let open = ScopeName::model("a", "real");
    assert_eq!(
        registry.find_breaker(&open).unwrap().state(at(0)),
        State::Open
    );
    for invented in 0..100_000_u64 {
        let (name, now) = (format!("model-{invented}"), at(1 + invented / 1_000));
        let permit = scopes(&name, now).try_acquire(Duration::ZERO, now).unwrap();
        // Most providers answer 404, which makes no entry at all; this one answers anything.
        let outcome = if invented % 3 == 0 {
            Outcome::failure(Kind::NotFound)
        } else {
            OK
        };
        permit.record(&outcome, None, now);
        assert!(registry.len() <= 500);
    }
    assert_eq!(
        registry.find_breaker(&open).unwrap().state(at(200)),
        State::Open,
        "an open one never leaves"
    );
}

#[test]
fn report_21_two_hundred_breakers_do_not_wake_as_one() {
    let spec = PolicySpec {
        jitter: Some(0.3),
        cooldown: Some(Duration::from_secs(10)),
        ..quick()
    };
    let wakes = |seed: u64| -> Vec<u64> {
        let wake = |replica: u64| {
            let policy = Policy::new(&spec).unwrap();
            let breaker = Breaker::with_seed(ScopeName::provider("a"), policy, seed + replica);
            fail(&breaker, 5, at(0));
            breaker
                .try_acquire(at(0))
                .unwrap_err()
                .retry_after
                .as_millis() as u64
        };
        (0..200).map(wake).collect()
    };
    let first = wakes(1);
    assert!(
        first.iter().all(|wait| (10_000..=13_000).contains(wait)),
        "never before the cooldown"
    );
    let mut slices = BTreeMap::<u64, usize>::new();
    first
        .iter()
        .for_each(|wait| *slices.entry(wait / 100).or_default() += 1);
    assert!(
        slices.values().all(|probes| *probes <= 20),
        "no 100 ms holds a tenth of them: {slices:?}"
    );
    assert_eq!(first, wakes(1), "a seed makes it reproducible");
    assert_ne!(first, wakes(1_000));
}
