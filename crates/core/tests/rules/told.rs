//! What is told of a state, and of a change: reasons with their numbers, who is refused and why, how long it was open.

use fuseline_core::Reason;

use super::*;

#[test]
fn the_end_of_a_cooldown_has_nothing_that_was_observed() {
    let breaker = breaker(&spec(1));
    record(&breaker, &ERROR, at(0));
    let _probe = breaker.try_acquire(at(15_000)).unwrap();
    let why = breaker.history(0).pop().unwrap().why;
    assert_eq!(
        (why.cause, why.observed, why.threshold),
        (Cause::Cooldown, 0.0, 0.0)
    );
}

/// Closed since 15,000, and growing for ten seconds or as long.
fn growing(ramp: Duration) -> (Breaker, PolicySpec) {
    let spec = PolicySpec {
        ramp: Some(ramp),
        ..spec(1)
    };
    let breaker = breaker(&spec);
    record(&breaker, &ERROR, at(0));
    record(&breaker, &OK, at(15_000));
    (breaker, spec)
}

/// How many of ten calls pass.
fn of_ten(breaker: &Breaker, now: Tick) -> usize {
    (0..10).filter(|_| breaker.try_acquire(now).is_ok()).count()
}

#[test]
fn a_ramp_goes_on_under_other_settings_and_one_that_is_over_stays_over() {
    let secs = Duration::from_secs;
    let (breaker, spec) = growing(secs(10));
    assert_eq!(of_ten(&breaker, at(15_000)), 2, "a tenth, and the first");
    breaker.reconfigure(policy(&spec), at(15_500));
    assert_eq!(of_ten(&breaker, at(16_000)), 1);
    let longer = PolicySpec {
        ramp: Some(secs(100)),
        ..spec
    };
    breaker.reconfigure(policy(&longer), at(25_000));
    assert_eq!(of_ten(&breaker, at(25_000)), 10);
}

#[test]
fn who_asks_in_a_ramp_is_told_what_the_next_call_would_be() {
    let (breaker, _) = growing(Duration::from_secs(10));
    let reason = |now| breaker.snapshot(now).reason;
    assert_eq!(reason(at(16_000)), None, "the first passes");
    drop(breaker.try_acquire(at(16_000)).unwrap());
    assert_eq!(reason(at(16_000)), Some(Reason::Ramping));
    assert_eq!(reason(at(25_000)), None);
}

#[test]
fn a_probe_that_is_due_and_finds_no_seat_is_told_so() {
    let seats = |max| PolicySpec {
        max_in_flight: Some(max),
        ..spec(1)
    };
    let breaker = breaker(&seats(2));
    let held = breaker.try_acquire(at(0)).unwrap();
    record(&breaker, &ERROR, at(0));
    breaker.reconfigure(policy(&seats(1)), at(0));
    let reason = |now| breaker.snapshot(now).reason;
    assert_eq!(reason(at(14_999)), Some(Reason::Open));
    assert_eq!(reason(at(15_000)), Some(Reason::Saturated));
    drop(held);
    assert_eq!(reason(at(15_000)), None);
}

#[test]
fn no_probe_is_due_while_all_that_may_are_out() {
    let breaker = breaker(&spec(1));
    record(&breaker, &ERROR, at(0));
    assert!(!breaker.is_due(at(14_999)) && breaker.is_due(at(15_000)));
    let probe = breaker.try_acquire(at(15_000)).unwrap();
    assert!(!breaker.is_due(at(15_000)));
    probe.cancel(at(15_000));
    assert!(breaker.is_due(at(15_000)));
}

/// Opens by slowness, or by nine failures in a row.
fn by_slowness() -> PolicySpec {
    let slow = TripRule::Slow {
        slower_than: Duration::from_secs(1),
        threshold: 0.9,
        window: MINUTE,
        min_calls: 9,
    };
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 9 }, slow]),
        ..spec(1)
    }
}

#[test]
fn a_success_is_slow_beyond_the_limit_and_not_at_it() {
    let breaker = breaker(&by_slowness());
    let hits = |took, now| {
        record(&breaker, &ERROR, now);
        record(&breaker, &Outcome::success(took), now);
        let rules = breaker.snapshot(now).rules;
        rules.iter().map(|rule| rule.hits).sum::<u64>()
    };
    assert_eq!(hits(Duration::from_secs(1), at(0)), 0);
    assert_eq!(hits(Duration::from_millis(1_001), at(1)), 1);
}

#[test]
fn a_probe_is_slow_beyond_the_limit_and_not_at_it() {
    for (took, to) in [(1_000, State::Closed), (1_001, State::Open)] {
        let breaker = breaker(&by_slowness());
        (0..9).for_each(|_| record(&breaker, &ERROR, at(0)));
        let probe = Outcome::success(Duration::from_millis(took));
        record(&breaker, &probe, at(15_000));
        assert_eq!(breaker.state(at(15_000)), to, "{took} ms");
    }
}

#[test]
fn degraded_tells_the_pressure_and_from_where_it_counts() {
    let breaker = breaker(&spec(4));
    (0..3).for_each(|_| record(&breaker, &ERROR, at(0)));
    let why = breaker.history(0).pop().unwrap().why;
    assert_eq!(
        (why.cause, why.observed, why.threshold),
        (Cause::Pressure, 0.75, 0.6)
    );
}

#[test]
fn a_closing_tells_how_many_probes_it_took() {
    let breaker = breaker(&PolicySpec {
        successes_to_close: Some(2),
        ..spec(1)
    });
    record(&breaker, &ERROR, at(0));
    record(&breaker, &OK, at(15_000));
    record(&breaker, &OK, at(15_000));
    let closed = breaker.history(0).pop().unwrap();
    let why = closed.why;
    assert_eq!(
        (closed.to, why.cause, why.observed, why.threshold),
        (State::Closed, Cause::Probe, 2.0, 2.0)
    );
}

#[test]
fn an_operators_change_has_nothing_that_was_observed() {
    let breaker = breaker(&spec(1));
    breaker.reset(at(0));
    let why = breaker.history(0).pop().unwrap().why;
    assert_eq!(
        (why.cause, why.observed, why.threshold),
        (Cause::Operator, 0.0, 0.0)
    );
}

#[test]
fn the_time_spent_open_adds_up_with_that_of_waiting_for_a_probe() {
    let breaker = breaker(&spec(1));
    let open_for = |now| breaker.snapshot(now).open_for.as_secs();
    record(&breaker, &ERROR, at(10_000));
    assert_eq!(open_for(at(30_000)), 20);
    record(&breaker, &OK, at(30_000));
    assert_eq!(
        (breaker.state(at(90_000)), open_for(at(90_000))),
        (State::Closed, 20)
    );
    record(&breaker, &ERROR, at(90_000));
    assert_eq!(open_for(at(95_000)), 25);
}
