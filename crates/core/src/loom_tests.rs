//! Models of the races: every interleaving, and every stale value that the memory model allows, of two threads.
//!
//! That they can fail was seen: without the barrier in `announce`, or without the second look at the run word, the two
//! `no_trip_is_missed_when` models find the missed trip at once; without that look after a failure, the models of failures that
//! wait do; so do those of the registry where a name is not looked up again under the lock, or a breaker that is held may go.
//!
//! Run with `RUSTFLAGS="--cfg fuseline_loom" cargo test --release -p fuseline-core --lib loom_tests`.

mod registry;
mod shares;

use core::time::Duration;

use loom::thread;

use crate::breaker::Breaker;
use crate::event::Reason;
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::policy::{Policy, PolicySpec};
use crate::scope::ScopeName;
use crate::state::State;
use crate::sync::set_slot;
use crate::tick::Tick;
use crate::trip::TripRule;

const SECOND: Duration = Duration::from_secs(1);

fn spec(rule: TripRule) -> PolicySpec {
    PolicySpec {
        trip: Some(vec![rule]),
        cooldown: Some(SECOND),
        jitter: Some(0.0),
        successes_to_close: Some(1),
        probe_timeout: Some(SECOND),
        ..PolicySpec::default()
    }
}

fn rate(threshold: f64, min_calls: u32) -> TripRule {
    TripRule::Rate {
        threshold,
        window: Duration::from_secs(60),
        min_calls,
    }
}

fn breaker(spec: &PolicySpec) -> Breaker {
    set_slot(0);
    Breaker::new(ScopeName::provider("p"), Policy::new(spec).unwrap())
}

fn in_a_row(failures: u32) -> Breaker {
    breaker(&spec(TripRule::Consecutive { failures }))
}

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn fail(breaker: &Breaker, now: Tick) {
    if let Ok(permit) = breaker.try_acquire(now) {
        permit.record(&Outcome::failure(Kind::ServerError), now);
    }
}

fn succeed(breaker: &Breaker, now: Tick) {
    if let Ok(permit) = breaker.try_acquire(now) {
        permit.record(&Outcome::success(Duration::ZERO), now);
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.max_branches = 100_000;
    model.check(check);
}

/// Runs both at once, each on a thread with a shard of its own; what each says.
fn race<T: Clone + 'static, A, B: 'static>(
    shared: &T,
    here: impl FnOnce(&T) -> A,
    there: impl FnOnce(&T) -> B + 'static,
) -> (A, B) {
    let other = shared.clone();
    let thread = thread::spawn(move || {
        set_slot(1);
        there(&other)
    });
    let said = here(shared);
    (said, thread.join().unwrap())
}

fn count(breaker: &Breaker, to: State) -> usize {
    breaker
        .history(0)
        .iter()
        .filter(|transition| transition.to == to)
        .count()
}

#[test]
fn two_callers_at_the_end_of_a_cooldown_are_one_probe() {
    model(|| {
        let breaker = in_a_row(1);
        fail(&breaker, at(0));
        let other = breaker.clone();
        let thread = thread::spawn(move || {
            set_slot(1);
            other.try_acquire_owned(Duration::ZERO, at(1_000))
        });
        let mine = breaker.try_acquire_owned(Duration::ZERO, at(1_000));
        let theirs = thread.join().unwrap();
        assert_eq!(usize::from(mine.is_ok()) + usize::from(theirs.is_ok()), 1);
        let refused = mine.as_ref().err().or(theirs.as_ref().err()).unwrap();
        assert_eq!(refused.reason, Reason::Probing);
        assert_eq!(count(&breaker, State::HalfOpen), 1, "one winner");
    });
}

#[test]
fn of_three_callers_two_become_probes_where_two_may() {
    model(|| {
        let two = PolicySpec {
            probes: Some(2),
            ..spec(TripRule::Consecutive { failures: 1 })
        };
        let breaker = breaker(&two);
        fail(&breaker, at(0));
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let breaker = breaker.clone();
                thread::spawn(move || breaker.try_acquire_owned(Duration::ZERO, at(1_000)))
            })
            .collect();
        let mine = breaker.try_acquire_owned(Duration::ZERO, at(1_000));
        let theirs = callers.into_iter().map(|caller| caller.join().unwrap());
        let all: Vec<_> = theirs.chain([mine]).collect();
        assert_eq!(all.iter().filter(|answer| answer.is_ok()).count(), 2);
        assert_eq!(breaker.snapshot(at(1_000)).live_probes, 2);
    });
}

#[test]
fn a_probe_dropped_as_its_lease_ends_is_either_gone_or_failed() {
    model(|| {
        let breaker = in_a_row(1);
        fail(&breaker, at(0));
        let probe = breaker
            .try_acquire_owned(Duration::ZERO, at(1_000))
            .unwrap();
        race(
            &breaker,
            |_| drop(probe),
            |breaker| {
                if let Ok(next) = breaker.try_acquire(at(2_000)) {
                    assert!(next.is_probe());
                    next.record(&Outcome::success(Duration::ZERO), at(2_000));
                }
            },
        );
        let seen = breaker.snapshot(at(2_000));
        assert_eq!(seen.live_probes, 0);
        match seen.state {
            State::Closed => assert_eq!(count(&breaker, State::Open), 1),
            State::Open => assert_eq!(seen.episodes, 1),
            state => panic!("{state}"),
        }
    });
}

#[test]
fn a_dropped_probe_gives_its_slot_back_exactly_once() {
    model(|| {
        let breaker = in_a_row(1);
        fail(&breaker, at(0));
        let probe = breaker
            .try_acquire_owned(Duration::ZERO, at(1_000))
            .unwrap();
        race(
            &breaker,
            |_| drop(probe),
            |breaker| {
                if let Ok(probe) = breaker.try_acquire(at(1_000)) {
                    probe.cancel(at(1_000));
                }
            },
        );
        assert_eq!(breaker.snapshot(at(1_000)).live_probes, 0);
        let first = breaker.try_acquire(at(1_000)).unwrap();
        assert!(breaker.try_acquire(at(1_000)).is_err(), "one slot, not two");
        drop(first);
    });
}

#[test]
fn a_lease_that_ends_as_its_probe_settles_has_one_outcome() {
    model(|| {
        let breaker = in_a_row(1);
        fail(&breaker, at(0));
        let probe = breaker
            .try_acquire_owned(Duration::ZERO, at(1_000))
            .unwrap();
        race(
            &breaker,
            |_| {
                probe.record(&Outcome::success(Duration::ZERO), at(1_999));
            },
            |breaker| drop(breaker.try_acquire(at(2_000))),
        );
        let seen = breaker.snapshot(at(2_000));
        match seen.state {
            State::Closed => assert_eq!((seen.late, count(&breaker, State::Open)), (0, 1)),
            State::Open => assert_eq!(
                (seen.late, count(&breaker, State::Open), seen.episodes),
                (1, 2, 1)
            ),
            state => panic!("{state}"),
        }
    });
}

#[test]
fn two_failures_at_the_threshold_are_one_transition() {
    model(|| {
        let breaker = in_a_row(2);
        fail(&breaker, at(0));
        let (mine, theirs) = (
            breaker.try_acquire(at(0)).unwrap(),
            breaker.try_acquire_owned(Duration::ZERO, at(0)).unwrap(),
        );
        race(
            &breaker,
            |_| {
                mine.record(&Outcome::failure(Kind::ServerError), at(0));
            },
            |_| {
                theirs.record(&Outcome::failure(Kind::ServerError), at(0));
            },
        );
        let seen = breaker.snapshot(at(0));
        assert_eq!(
            (seen.state, seen.late, count(&breaker, State::Open)),
            (State::Open, 1, 1)
        );
    });
}

#[test]
fn a_result_of_an_earlier_generation_moves_nothing() {
    model(|| {
        let breaker = in_a_row(1);
        let old = breaker.try_acquire_owned(Duration::ZERO, at(0)).unwrap();
        fail(&breaker, at(0));
        race(
            &breaker,
            |breaker| {
                let probe = breaker.try_acquire(at(1_000)).unwrap();
                probe.record(&Outcome::success(Duration::ZERO), at(1_000));
            },
            |_| {
                old.record(&Outcome::failure(Kind::ServerError), at(1_000));
            },
        );
        let seen = breaker.snapshot(at(1_000));
        assert_eq!((seen.state, seen.run, seen.late), (State::Closed, 0, 1));
    });
}

#[test]
fn no_success_is_lost_while_the_run_is_not_zero() {
    model(|| {
        let breaker = in_a_row(9);
        for _ in 0..4 {
            fail(&breaker, at(0));
        }
        race(
            &breaker,
            |breaker| succeed(breaker, at(1)),
            |breaker| fail(breaker, at(1)),
        );
        let run = breaker.snapshot(at(1)).run;
        assert!(
            run <= 1,
            "the success came before the failure or after it, the run is {run}"
        );
    });
}

#[test]
fn no_trip_is_missed_when_a_failure_and_a_success_race() {
    model(|| {
        let breaker = breaker(&spec(rate(0.5, 2)));
        race(
            &breaker,
            |breaker| succeed(breaker, at(1)),
            |breaker| fail(breaker, at(1)),
        );
        assert_eq!(
            breaker.state(at(1)),
            State::Open,
            "one of two calls failed, whichever came first"
        );
    });
}

#[test]
fn no_trip_is_missed_when_quiet_successes_complete_the_calls() {
    model(|| {
        let breaker = breaker(&spec(rate(0.25, 4)));
        let quiet = breaker.try_acquire_owned(Duration::ZERO, at(1)).unwrap();
        race(
            &breaker,
            |breaker| {
                succeed(breaker, at(1));
                fail(breaker, at(1));
            },
            move |breaker| {
                quiet.record(&Outcome::success(Duration::ZERO), at(1));
                succeed(breaker, at(1));
            },
        );
        assert_eq!(breaker.state(at(1)), State::Open, "one of four");
    });
}

/// Five in a row trip, and no pressure shows: a run of one leaves slack for three that wait, or one in each of two backlogs.
fn patient() -> Breaker {
    let breaker = breaker(&PolicySpec {
        degraded_at: Some(1.0),
        ..spec(TripRule::Consecutive { failures: 5 })
    });
    fail(&breaker, at(0));
    breaker
}

#[test]
fn no_failure_is_lost_or_counted_twice_where_failures_wait() {
    model(|| {
        let breaker = patient();
        race(
            &breaker,
            |breaker| fail(breaker, at(1)),
            |breaker| {
                fail(breaker, at(1));
                fail(breaker, at(2));
            },
        );
        let seen = breaker.snapshot(at(2));
        assert_eq!((seen.state, seen.run, seen.late), (State::Closed, 4, 0));
        assert_eq!(seen.kinds, [(Kind::ServerError, 4)]);
    });
}

#[test]
fn no_trip_is_missed_where_failures_wait() {
    model(|| {
        let breaker = patient();
        race(
            &breaker,
            |breaker| {
                fail(breaker, at(1));
                fail(breaker, at(2));
            },
            |breaker| {
                fail(breaker, at(1));
                fail(breaker, at(1));
            },
        );
        let seen = breaker.snapshot(at(2));
        assert_eq!((seen.state, seen.late), (State::Open, 0));
        assert_eq!(count(&breaker, State::Open), 1);
    });
}

#[test]
fn a_failure_that_waits_stands_before_a_success_or_after_it() {
    model(|| {
        let breaker = patient();
        race(
            &breaker,
            |breaker| {
                fail(breaker, at(1));
                fail(breaker, at(1));
            },
            |breaker| succeed(breaker, at(1)),
        );
        let run = breaker.snapshot(at(1)).run;
        assert!(run <= 2, "the success ended the first run, now it is {run}");
        for more in 1..=3 {
            fail(&breaker, at(2));
            let run_now = breaker.snapshot(at(2)).run;
            let opened = run + more >= 5;
            assert_eq!(run_now, if opened { 0 } else { run + more });
        }
    });
}

#[test]
fn a_failure_that_waits_is_of_its_own_generation() {
    model(|| {
        let breaker = patient();
        let permit = breaker.try_acquire_owned(Duration::ZERO, at(1)).unwrap();
        race(
            &breaker,
            |_| {
                permit.record(&Outcome::failure(Kind::ServerError), at(1));
            },
            |breaker| {
                breaker.reset(at(1));
                fail(breaker, at(1));
            },
        );
        fail(&breaker, at(1));
        let seen = breaker.snapshot(at(1));
        assert_eq!(seen.run, 2, "of the fresh state alone");
        assert!(seen.late <= 1);
    });
}

#[test]
fn a_failure_that_waits_is_judged_by_settings_that_come_meanwhile() {
    model(|| {
        let breaker = patient();
        let strict = Policy::new(&spec(TripRule::Consecutive { failures: 3 })).unwrap();
        race(
            &breaker,
            |breaker| fail(breaker, at(1)),
            move |breaker| breaker.reconfigure(strict, at(1)),
        );
        assert_eq!(breaker.snapshot(at(1)).run, 2);
        fail(&breaker, at(1));
        assert_eq!(breaker.state(at(1)), State::Open, "three in a row");
    });
}

#[test]
fn whoever_asks_sees_every_failure_that_was_recorded() {
    model(|| {
        let breaker = patient();
        race(
            &breaker,
            |breaker| {
                fail(breaker, at(1));
                assert!(breaker.snapshot(at(1)).run >= 2);
            },
            |breaker| {
                fail(breaker, at(1));
                assert!(breaker.snapshot(at(1)).run >= 2);
            },
        );
        assert_eq!(breaker.snapshot(at(1)).run, 3);
    });
}

#[test]
fn an_operators_hand_beats_what_races_with_it() {
    model(|| {
        let breaker = in_a_row(1);
        race(
            &breaker,
            |breaker| breaker.force_closed(None, at(1)),
            |breaker| fail(breaker, at(1)),
        );
        assert_eq!(breaker.state(at(1)), State::ForcedClosed);
        race(
            &breaker,
            |breaker| breaker.force_open(Some(at(5)), at(2)),
            |breaker| breaker.reset(at(2)),
        );
        assert!(matches!(
            breaker.state(at(2)),
            State::Closed | State::ForcedOpen
        ));
        assert_eq!(breaker.state(at(5)), State::Closed);
    });
}

#[test]
fn a_reconfiguration_keeps_what_it_must_and_drops_old_windows() {
    model(|| {
        let breaker = breaker(&spec(rate(0.5, 3)));
        fail(&breaker, at(0));
        let other = Policy::new(&spec(TripRule::Rate {
            threshold: 0.5,
            window: SECOND,
            min_calls: 3,
        }))
        .unwrap();
        race(
            &breaker,
            move |breaker| breaker.reconfigure(other, at(1)),
            |breaker| succeed(breaker, at(1)),
        );
        let seen = breaker.snapshot(at(1));
        assert!(seen.run == 0, "the success reset the run");
        assert!(
            seen.rules[0].calls <= Some(1),
            "the failure stood in another window: {:?}",
            seen.rules
        );
        succeed(&breaker, at(1));
        assert_eq!(breaker.state(at(1)), State::Closed);
    });
}

#[test]
fn a_success_that_races_with_a_failure_is_taken_off_a_sum_once() {
    model(|| {
        let breaker = breaker(&spec(TripRule::Cusum {
            well: 0.1,
            ill: 0.3,
            calls_per_false_alarm: 1e8,
        }));
        fail(&breaker, at(0));
        succeed(&breaker, at(0));
        race(
            &breaker,
            |breaker| fail(breaker, at(1)),
            |breaker| succeed(breaker, at(1)),
        );
        // ln(0.9 / 0.7) / ln(3) each, whichever came first.
        let sum = breaker.snapshot(at(1)).rules[0].observed;
        assert!((sum - (2.0 - 2.0 * 0.228_756_3)).abs() < 1e-6, "{sum}");
    });
}
