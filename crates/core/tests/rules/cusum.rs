//! The `cusum` rule: what it sums, when it opens, and what it leaves alone.

use super::*;

/// What one success takes off, in failures; and the limit.
const SUCCESS: f64 = 0.070_631_798;
const LIMIT: f64 = 9.142_217_048;

fn by_evidence() -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::cusum()]),
        ..spec(1)
    }
}

fn sum(breaker: &Breaker, now: Tick) -> f64 {
    breaker.snapshot(now).rules[0].observed
}

fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-6, "{one} and {other}");
}

/// Lets every `nth` call fail until the breaker opens; the call that opened it.
fn opened_by(breaker: &Breaker, nth: u64, calls: u64) -> Option<u64> {
    (0..calls).find(|call| {
        let outcome = if call % nth == 0 { ERROR } else { OK };
        record(breaker, &outcome, at(*call));
        breaker.state(at(*call)) == State::Open
    })
}

#[test]
fn ten_failures_in_a_row_are_above_the_limit_and_nine_are_not() {
    let breaker = breaker(&by_evidence());
    (0..9).for_each(|_| record(&breaker, &ERROR, at(0)));
    let seen = &breaker.snapshot(at(0)).rules[0];
    assert_eq!((seen.rule, seen.hits, seen.calls), ("cusum", 9, None));
    assert_eq!(
        (seen.observed, seen.threshold, seen.armed),
        (9.0, LIMIT, true)
    );
    assert_eq!(breaker.state(at(0)), State::Degraded);
    record(&breaker, &ERROR, at(0));
    let why = breaker.history(0).pop().unwrap().why;
    assert_eq!(
        (why.cause, why.kind),
        (Cause::Cusum, Some(Kind::ServerError))
    );
    assert!(
        why.to_string().starts_with("cusum 10/9.142, server_error"),
        "{why}"
    );
}

#[test]
fn one_call_in_five_that_fails_opens_it_and_not_the_defaults() {
    // 13 failures, between them 12 times 4 successes, are 9.61; 12 are 8.89.
    assert_eq!(opened_by(&breaker(&by_evidence()), 5, 1_000), Some(60));
    let defaults = breaker(&PolicySpec::default());
    assert_eq!(opened_by(&defaults, 5, 10_000), None);
}

#[test]
fn one_call_in_twenty_that_fails_never_adds_up() {
    let breaker = breaker(&by_evidence());
    assert_eq!(opened_by(&breaker, 20, 10_000), None);
    record(&breaker, &ERROR, at(10_000));
    assert_near(sum(&breaker, at(10_000)), 1.0);
}

#[test]
fn successes_take_off_wherever_and_however_they_were_counted() {
    let with_rate = PolicySpec {
        trip: Some(vec![
            TripRule::cusum(),
            TripRule::Rate {
                threshold: 0.9,
                window: MINUTE,
                min_calls: 9,
            },
        ]),
        ..spec(1)
    };
    for spec in [by_evidence(), with_rate] {
        let breaker = breaker(&spec);
        (0..3).for_each(|_| record(&breaker, &ERROR, at(0)));
        // The first ends the run under the lock, the others are counted by their threads.
        for _ in 0..4 {
            let own = breaker.clone();
            thread::spawn(move || record(&own, &OK, at(1)))
                .join()
                .unwrap();
        }
        assert_near(sum(&breaker, at(1)), 3.0 - 4.0 * SUCCESS);
        record(&breaker, &ERROR, at(2));
        record(&breaker, &OK, at(2));
        assert_near(sum(&breaker, at(2)), 4.0 - 5.0 * SUCCESS);
    }
}

#[test]
fn what_does_not_count_changes_nothing() {
    let breaker = breaker(&by_evidence());
    let early = breaker.try_acquire(at(0)).unwrap();
    breaker.reset(at(0));
    record(&breaker, &ERROR, at(1));
    early.record(&ERROR, at(1));
    record(&breaker, &Outcome::failure(Kind::BadRequest), at(1));
    record(&breaker, &Outcome::Neutral, at(1));
    breaker.try_acquire(at(1)).unwrap().cancel(at(1));
    assert_near(sum(&breaker, at(1)), 1.0);
}

#[test]
fn it_begins_at_zero_with_each_closed_state() {
    let breaker = breaker(&by_evidence());
    (0..10).for_each(|_| record(&breaker, &ERROR, at(0)));
    record(&breaker, &OK, at(15_000));
    assert_eq!(breaker.state(at(15_000)), State::Closed);
    assert_near(sum(&breaker, at(15_000)), 0.0);
    (0..4).for_each(|_| record(&breaker, &ERROR, at(16_000)));
    assert_near(sum(&breaker, at(16_000)), 4.0);
    breaker.reset(at(16_000));
    assert_near(sum(&breaker, at(16_000)), 0.0);
    record(&breaker, &ERROR, at(16_000));
    assert_near(sum(&breaker, at(16_000)), 1.0);
}

#[test]
fn it_is_not_saved_and_what_is_saved_is_not_in_its_way() {
    let breaker = breaker(&by_evidence());
    record(&breaker, &OK, at(0));
    (0..4).for_each(|_| record(&breaker, &ERROR, at(0)));
    let saved = breaker.export(at(0));
    assert_eq!((saved.run, &saved.windows[..]), (4, &[][..]));
    breaker.restore(&saved, at(0));
    assert_near(sum(&breaker, at(0)), 0.0);
    record(&breaker, &ERROR, at(0));
    assert_near(sum(&breaker, at(0)), 1.0);
}

#[test]
fn it_has_no_window() {
    let breaker = breaker(&by_evidence());
    (0..9).for_each(|_| record(&breaker, &ERROR, at(0)));
    let day = at(86_400_000);
    assert_near(sum(&breaker, day), 9.0);
    record(&breaker, &ERROR, day);
    assert_eq!(breaker.state(day), State::Open);
}

#[test]
fn a_lower_limit_is_judged_at_the_next_outcome() {
    let breaker = breaker(&by_evidence());
    (0..5).for_each(|_| record(&breaker, &ERROR, at(0)));
    let nearer = PolicySpec {
        trip: Some(vec![TripRule::Cusum {
            well: TripRule::WELL,
            ill: TripRule::ILL,
            calls_per_false_alarm: 1_000.0,
        }]),
        ..spec(1)
    };
    breaker.reconfigure(policy(&nearer), at(1));
    record(&breaker, &OK, at(1));
    assert_eq!(breaker.state(at(1)), State::Open);
}

#[test]
fn a_rule_that_comes_later_begins_at_zero_among_calls_that_were_counted() {
    let other = |well| PolicySpec {
        trip: Some(vec![TripRule::Cusum {
            well,
            ill: 0.15,
            calls_per_false_alarm: 1e8,
        }]),
        ..spec(1)
    };
    let breaker = breaker(&other(0.03));
    (0..3).for_each(|_| record(&breaker, &ERROR, at(0)));
    (0..50).for_each(|_| record(&breaker, &OK, at(1)));
    breaker.reconfigure(policy(&other(0.02)), at(2));
    (0..2).for_each(|_| record(&breaker, &ERROR, at(2)));
    record(&breaker, &OK, at(2));
    assert_near(sum(&breaker, at(2)), 2.0 - SUCCESS);
}

#[test]
fn beside_it_a_fleet_still_sees_calls_by_time() {
    let breaker = breaker(&by_evidence());
    breaker.count_calls();
    record(&breaker, &OK, at(2));
    assert_eq!(breaker.evidence(at(3)).calls, [(at(999), 1)]);
}
