//! A state that is taken out and put back: the same decisions follow, and what was out before is late.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Breaker, Cause, Clock, Counted, Kind, KindSpec, OnSuccess, Outcome, Permit, Policy, PolicySpec,
    Registry, RegistryConfig, RegistryError, SavedBreaker, ScopeName, State, Tick, TripRule,
};
use proptest::prelude::*;

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

const WINDOW: Duration = Duration::from_secs(10);

fn spec() -> PolicySpec {
    let ninth = KindSpec {
        threshold: Some(6),
        ..KindSpec::default()
    };
    PolicySpec {
        trip: Some(vec![
            TripRule::Consecutive { failures: 4 },
            TripRule::Window {
                failures: 6,
                window: WINDOW,
            },
            TripRule::Rate {
                threshold: 0.5,
                window: WINDOW,
                min_calls: 6,
            },
            TripRule::Slow {
                slower_than: Duration::from_secs(1),
                threshold: 0.5,
                window: 2 * WINDOW,
                min_calls: 4,
            },
        ]),
        on_success: Some(OnSuccess::Decrement),
        cooldown: Some(Duration::from_secs(2)),
        successes_to_close: Some(1),
        jitter: Some(0.0),
        kinds: [(Kind::Timeout, ninth)].into(),
        ..PolicySpec::default()
    }
}

fn breaker(spec: &PolicySpec) -> Breaker {
    Breaker::new(ScopeName::provider("p"), Policy::new(spec).unwrap())
}

fn restored(spec: &PolicySpec, saved: &SavedBreaker, now: Tick) -> Breaker {
    let breaker = breaker(spec);
    breaker.restore(saved, now);
    breaker
}

fn fail(breaker: &Breaker, kind: Kind, times: u32, now: Tick) {
    for _ in 0..times {
        let permit = breaker.try_acquire(now).unwrap();
        permit.record(&Outcome::failure(kind), now);
    }
}

#[test]
fn an_open_breaker_keeps_its_end_its_episodes_and_its_reasons() {
    let before = breaker(&spec());
    fail(&before, Kind::ServerError, 4, at(1_000));
    fail(&before, Kind::Network, 1, at(3_000));
    let (saved, old) = (before.export(at(4_000)), before.snapshot(at(4_000)));
    let after = restored(&spec(), &saved, at(4_000));
    let new = after.snapshot(at(4_000));
    assert_eq!((new.state, new.episodes), (State::Open, 1));
    assert_eq!(new.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(
        (new.retry_after, new.since, new.incident_since),
        (old.retry_after, old.since, old.incident_since)
    );
    let why = new.why.unwrap();
    assert_eq!(
        (why.from, why.to, why.why.cause, why.why.kind, why.until),
        (
            State::Closed,
            State::Open,
            Cause::Restored,
            Some(Kind::Network),
            Some(at(7_000))
        )
    );
    assert_eq!(why.why.last_failures.len(), 5);
    assert_eq!(new.entered, [0; 6], "it opened once, in the process before");
    assert_eq!(
        after.export(at(4_000)),
        saved,
        "taking it again gives the same"
    );
    let probe = after.try_acquire(at(7_000)).unwrap();
    probe.record(&Outcome::failure(Kind::Network), at(7_000));
    let grown = after.snapshot(at(7_000)).retry_after;
    assert_eq!(grown, Some(Duration::from_secs(8)), "episodes go on");
}

#[test]
fn a_kind_with_a_threshold_of_its_own_goes_on_counting() {
    let sixth = PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 9 }]),
        ..spec()
    };
    let before = breaker(&sixth);
    fail(&before, Kind::Timeout, 4, at(1_000));
    let saved = before.export(at(1_000));
    assert_eq!(saved.kinds, [(Kind::Timeout, 4)]);
    let after = restored(&sixth, &saved, at(1_000));
    fail(&after, Kind::Timeout, 1, at(1_000));
    assert_ne!(after.state(at(1_000)), State::Open);
    fail(&after, Kind::Timeout, 1, at(1_000));
    assert_eq!(after.state(at(1_000)), State::Open);
}

#[test]
fn slowness_comes_back_as_a_timeout_and_what_had_no_kind_without_one() {
    let before = breaker(&spec());
    let slow = Outcome::success(Duration::from_secs(5));
    for _ in 0..4 {
        before.try_acquire(at(0)).unwrap().record(&slow, at(0));
    }
    let why = before.export(at(0)).why.unwrap();
    assert_eq!(
        (why.cause, why.kind),
        (Cause::Restored, Some(Kind::Timeout))
    );
    before.force_open(None, at(0));
    assert_eq!(before.export(at(0)).why.unwrap().kind, None);
}

#[test]
fn a_closed_breaker_without_pressure_comes_back_without_any() {
    let before = breaker(&spec());
    fail(&before, Kind::ServerError, 1, at(0));
    let after = restored(&spec(), &before.export(at(0)), at(0));
    let ok = Outcome::success(Duration::ZERO);
    after.try_acquire(at(0)).unwrap().record(&ok, at(0));
    assert_eq!((after.state(at(0)), after.changes()), (State::Closed, 0));
}

#[test]
fn half_open_comes_back_open_with_nothing_left() {
    let before = breaker(&spec());
    fail(&before, Kind::ServerError, 4, at(0));
    let _probe = before.try_acquire(at(2_000)).unwrap();
    assert_eq!(before.state(at(2_000)), State::HalfOpen);
    let saved = before.export(at(2_500));
    let after = restored(&spec(), &saved, at(2_500));
    let snapshot = after.snapshot(at(2_500));
    assert_eq!(
        (snapshot.state, snapshot.retry_after),
        (State::Open, Some(Duration::ZERO))
    );
    assert!(after.try_acquire(at(2_500)).unwrap().is_probe());
}

#[test]
fn forced_states_keep_their_expiry_and_end_in_closed() {
    for open in [true, false] {
        let before = breaker(&spec());
        if open {
            before.force_open(Some(at(9_000)), at(1_000));
        } else {
            before.force_closed(Some(at(9_000)), at(1_000));
        }
        let saved = before.export(at(2_000));
        let after = restored(&spec(), &saved, at(2_000));
        assert_eq!(after.state(at(8_999)), before.state(at(1_000)));
        assert_eq!(after.is_available(at(8_999)), !open);
        assert_eq!(after.state(at(9_000)), State::Closed);
        let late = restored(&spec(), &saved, at(30_000));
        assert_eq!(late.state(at(30_000)), State::Closed);
        assert!(late.is_available(at(30_000)));
    }
    let forever = breaker(&spec());
    forever.force_open(None, at(0));
    let after = restored(&spec(), &forever.export(at(1)), at(1));
    assert_eq!(after.state(at(u64::MAX)), State::ForcedOpen);
}

#[test]
fn permits_of_before_are_late() {
    for failures in [0, 4] {
        let breaker = breaker(&spec());
        let permit = breaker.try_acquire(at(0)).unwrap();
        fail(&breaker, Kind::ServerError, failures, at(0));
        let saved = breaker.export(at(0));
        breaker.restore(&saved, at(0));
        let state = breaker.export(at(1));
        permit.record(&Outcome::failure(Kind::ServerError), at(1));
        assert_eq!(breaker.snapshot(at(1)).late, 1);
        assert_eq!(breaker.export(at(1)), state);
    }
}

#[test]
fn what_the_windows_hold_leaves_never_early_and_a_changed_window_starts_empty() {
    let before = breaker(&spec());
    fail(&before, Kind::ServerError, 3, at(1_000));
    let saved = before.export(at(5_000));
    let after = restored(&spec(), &saved, at(5_000));
    let hits = |breaker: &Breaker, now| breaker.snapshot(now).rules[1].hits;
    assert_eq!(hits(&after, at(11_000)), 3, "10 s have not passed");
    assert_eq!(
        hits(&after, at(11_000 + 2 * 167)),
        0,
        "two sixtieths late at most"
    );
    let wider = PolicySpec {
        trip: Some(vec![TripRule::Window {
            failures: 6,
            window: 3 * WINDOW,
        }]),
        ..spec()
    };
    let after = restored(&wider, &saved, at(5_000));
    assert_eq!(after.snapshot(at(5_000)).rules[0].hits, 0);
    assert_eq!(after.snapshot(at(5_000)).run, 3, "a run has no window");
}

#[test]
fn a_restored_closed_breaker_is_judged_at_its_next_outcome_and_says_nothing_of_its_return() {
    let before = breaker(&spec());
    fail(&before, Kind::ServerError, 3, at(0));
    let after = restored(&spec(), &before.export(at(0)), at(0));
    assert_eq!(
        (after.changes(), after.state(at(0))),
        (0, before.state(at(0)))
    );
    fail(&after, Kind::ServerError, 1, at(1));
    assert_eq!(after.state(at(1)), State::Open);
}

#[test]
fn a_fresh_breaker_needs_no_keeping() {
    let breaker = breaker(&spec());
    assert!(breaker.export(at(5)).is_fresh());
    fail(&breaker, Kind::BadRequest, 1, at(5));
    assert!(
        breaker.export(at(5)).is_fresh(),
        "a neutral outcome leaves no trace"
    );
    fail(&breaker, Kind::ServerError, 1, at(5));
    let saved = breaker.export(at(5));
    assert!(!saved.is_fresh());
    assert!(
        !SavedBreaker {
            state: State::Open,
            ..SavedBreaker {
                run: 0,
                kinds: vec![],
                windows: vec![],
                ..saved
            }
        }
        .is_fresh()
    );
}

#[test]
fn successes_of_all_threads_are_among_the_calls() {
    let breaker = breaker(&spec());
    for _ in 0..3 {
        let own = breaker.clone();
        let call = move || {
            let permit = own.try_acquire(at(50)).unwrap();
            permit.record(&Outcome::success(Duration::ZERO), at(50));
        };
        std::thread::spawn(call).join().unwrap();
    }
    fail(&breaker, Kind::ServerError, 1, at(60));
    let saved = breaker.export(at(60));
    let calls = saved
        .windows
        .iter()
        .filter(|window| window.counted == Counted::Calls);
    let sums: Vec<u32> = calls
        .map(|window| window.buckets.iter().map(|(_, count)| count).sum())
        .collect();
    assert_eq!(
        sums,
        [4, 4],
        "one for each window over which calls are counted"
    );
}

#[test]
fn a_registry_takes_back_what_it_has_room_for() {
    let clock = Clock::manual();
    let config = RegistryConfig {
        max_breakers: 2,
        clock: clock.clone(),
        ..RegistryConfig::default()
    };
    let registry = Registry::new(config);
    let policy = Policy::new(&spec()).unwrap();
    let saved = |model: &str| {
        let breaker = Breaker::new(ScopeName::model("p", model), policy.clone());
        fail(&breaker, Kind::ServerError, 4, at(0));
        breaker.export(at(0))
    };
    for model in ["a", "b"] {
        let restored = registry.restore(&saved(model), &policy, at(1)).unwrap();
        assert_eq!(restored.state(at(1)), State::Open);
    }
    let error = registry.restore(&saved("c"), &policy, at(1)).unwrap_err();
    assert_eq!(error, RegistryError::Full(ScopeName::model("p", "c"), 2));
    assert_eq!(registry.len(), 2);
}

#[test]
fn a_system_clock_has_a_past() {
    let clock = Clock::system();
    assert!(clock.now() >= Tick::ZERO + Clock::PAST);
    let breaker = Breaker::with_clock(
        ScopeName::provider("p"),
        Policy::default(),
        0,
        clock.clone(),
    );
    let age = clock.now().since(breaker.snapshot(clock.now()).since);
    assert!(age < Duration::from_secs(60), "{age:?}: made just now");
}

/// One step of a schedule.
#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Fail(Kind),
    Succeed(u64),
    ForceOpen(u64),
    Reset,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let kinds = prop::sample::select(vec![
        Kind::ServerError,
        Kind::Timeout,
        Kind::QuotaExhausted,
        Kind::BadRequest,
    ]);
    let op = prop_oneof![
        6 => (1_u64..3_000).prop_map(Op::Wait),
        10 => kinds.prop_map(Op::Fail),
        10 => (0_u64..2_000).prop_map(Op::Succeed),
        1 => (0_u64..5_000).prop_map(Op::ForceOpen),
        1 => Just(Op::Reset),
    ];
    prop::collection::vec(op, 0..60)
}

/// Runs one step and tells what was decided and what came of it.
fn run(breaker: &Breaker, op: &Op, now: &mut u64) -> String {
    let settle = |outcome: &Outcome| match breaker.try_acquire(at(*now)) {
        Ok(permit) => {
            let probe = permit.is_probe();
            permit.record(outcome, at(*now));
            format!("probe {probe}, then {:?}", breaker.state(at(*now)))
        }
        Err(rejection) => format!("{rejection:?}"),
    };
    match op {
        Op::Wait(ms) => {
            *now += ms;
            String::new()
        }
        Op::Fail(kind) => settle(&Outcome::failure(*kind)),
        Op::Succeed(took) => settle(&Outcome::success(Duration::from_millis(*took))),
        Op::ForceOpen(ms) => {
            breaker.force_open(Some(at(*now + ms)), at(*now));
            String::new()
        }
        Op::Reset => {
            breaker.reset(at(*now));
            String::new()
        }
    }
}

proptest! {
    #[test]
    fn the_same_decisions_follow(before in ops(), rest in ops(), failures in 2_u32..6) {
        let mut spec = spec();
        if let Some(trip) = &mut spec.trip {
            trip[0] = TripRule::Consecutive { failures };
        }
        let one = breaker(&spec);
        let mut now = 0;
        for op in &before {
            run(&one, op, &mut now);
        }
        let saved = one.export(at(now));
        let other = restored(&spec, &saved, at(now));
        if one.state(at(now)) == State::HalfOpen {
            // Its probes are forgotten: the next call is the first of them anew.
            prop_assert_eq!(other.state(at(now)), State::Open);
            prop_assert!(other.try_acquire(at(now)).is_ok_and(|permit| permit.is_probe()));
            return Ok(());
        }
        prop_assert_eq!(one.state(at(now)), other.state(at(now)));
        let (mut now, mut also) = (now, now);
        for op in &rest {
            prop_assert_eq!(run(&one, op, &mut now), run(&other, op, &mut also), "{:?} at {}", op, now);
        }
        let (one, other) = (one.export(at(now)), other.export(at(now)));
        prop_assert_eq!(one.windows, other.windows);
        prop_assert_eq!((one.run, one.kinds, one.episodes), (other.run, other.kinds, other.episodes));
    }

    #[test]
    fn permits_held_over_a_restore_change_nothing(before in ops(), held in 1_usize..4, fails in any::<bool>()) {
        let breaker = breaker(&spec());
        let mut now = 0;
        for op in &before {
            run(&breaker, op, &mut now);
        }
        let permits: Vec<Permit<&Breaker>> =
            (0..held).filter_map(|_| breaker.try_acquire(at(now)).ok()).collect();
        let saved = breaker.export(at(now));
        breaker.restore(&saved, at(now));
        let state = breaker.export(at(now));
        let late = breaker.snapshot(at(now)).late;
        let count = permits.len() as u64;
        for permit in permits {
            let outcome = if fails {
                Outcome::failure(Kind::ServerError)
            } else {
                Outcome::success(Duration::ZERO)
            };
            permit.record(&outcome, at(now));
        }
        prop_assert_eq!(breaker.snapshot(at(now)).late, late + count);
        prop_assert_eq!(breaker.export(at(now)), state);
    }
}
