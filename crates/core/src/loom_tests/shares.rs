//! Models of what is given out in shares: the calls of a ramp, and the seats of `max_in_flight`.

use super::*;

/// Closed since 1,000, and growing for ten seconds.
fn growing() -> Breaker {
    let breaker = breaker(&PolicySpec {
        ramp: Some(10 * SECOND),
        ..spec(TripRule::Consecutive { failures: 1 })
    });
    fail(&breaker, at(0));
    succeed(&breaker, at(1_000));
    breaker
}

#[test]
fn of_calls_that_race_in_a_ramp_no_more_pass_than_its_share() {
    model(|| {
        let breaker = growing();
        // Half way, the first passes and every second one.
        let two = |breaker: &Breaker| {
            let passes = || usize::from(breaker.try_acquire(at(6_000)).is_ok());
            passes() + passes()
        };
        let (mine, theirs) = race(&breaker, two, two);
        assert_eq!(mine + theirs, 3);
        assert_eq!(breaker.state(at(6_000)), State::Closed);
    });
}

#[test]
fn a_call_after_a_ramp_passes_whatever_those_within_it_do() {
    model(|| {
        let breaker = growing();
        let (within, after) = race(
            &breaker,
            |breaker| breaker.try_acquire(at(2_000)).is_ok(),
            |breaker| breaker.try_acquire(at(11_000)).is_ok(),
        );
        assert!(within, "the first of a ramp");
        assert!(after);
    });
}

fn limited(max_in_flight: u32) -> PolicySpec {
    PolicySpec {
        max_in_flight: Some(max_in_flight),
        ..spec(TripRule::Consecutive { failures: 9 })
    }
}

#[test]
fn seats_are_never_oversold_nor_lost() {
    model(|| {
        let breaker = breaker(&limited(1));
        let ask = |breaker: &Breaker| breaker.try_acquire_owned(Duration::ZERO, at(0));
        let (mine, theirs) = race(&breaker, ask, ask);
        assert_eq!(usize::from(mine.is_ok()) + usize::from(theirs.is_ok()), 1);
        drop((mine, theirs));
        assert_eq!(breaker.snapshot(at(0)).in_flight, 0);
    });
}

#[test]
fn a_seat_that_is_given_back_is_taken_by_one_alone() {
    model(|| {
        let breaker = breaker(&limited(1));
        let ask = |breaker: &Breaker| breaker.try_acquire_owned(Duration::ZERO, at(0));
        let first = ask(&breaker);
        let give_back_and_ask = |breaker: &Breaker| {
            drop(first);
            ask(breaker)
        };
        let (mine, theirs) = race(&breaker, give_back_and_ask, ask);
        assert_eq!(usize::from(mine.is_ok()) + usize::from(theirs.is_ok()), 1);
        assert_eq!(breaker.snapshot(at(0)).in_flight, 1);
    });
}

#[test]
fn seats_are_right_when_their_number_changes_meanwhile() {
    model(|| {
        let breaker = breaker(&limited(1));
        let unlimited = Policy::new(&spec(TripRule::Consecutive { failures: 9 })).unwrap();
        race(
            &breaker,
            |breaker| drop(breaker.try_acquire(at(0))),
            move |breaker| breaker.reconfigure(unlimited, at(0)),
        );
        assert_eq!(breaker.snapshot(at(0)).in_flight, 0);
        breaker.reconfigure(Policy::new(&limited(1)).unwrap(), at(0));
        let seated = breaker.try_acquire(at(0));
        assert!(seated.is_ok() && breaker.try_acquire(at(0)).is_err());
    });
}
