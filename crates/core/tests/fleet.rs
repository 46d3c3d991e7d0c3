//! Probes by grant, openings by the sum of a fleet, and the evidence that goes into it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Breaker, Cause, Kind, Outcome, Policies, Policy, PolicySpec, Reason, Registry, Rejection,
    ScopeName, Scopes, State, Tick, TripRule,
};

const SECOND: Duration = Duration::from_secs(1);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn policy() -> Policy {
    Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 2 }]),
        cooldown: Some(SECOND),
        jitter: Some(0.0),
        successes_to_close: Some(2),
        ..PolicySpec::default()
    })
    .unwrap()
}

fn fail(breaker: &Breaker, now: Tick) {
    let permit = breaker.try_acquire(now).unwrap();
    permit.record(&Outcome::failure(Kind::ServerError), now);
}

/// Open since 0, until 1,000.
fn open() -> Breaker {
    let breaker = Breaker::new(ScopeName::provider("p"), policy());
    fail(&breaker, at(0));
    fail(&breaker, at(0));
    assert_eq!(breaker.state(at(0)), State::Open);
    breaker
}

const AWAITED: Rejection = Rejection {
    reason: Reason::Probing,
    retry_after: Duration::from_millis(250),
};

#[test]
fn without_a_grant_nobody_probes_and_the_wish_is_noted_once() {
    let breaker = open();
    breaker.probe_by_grant();
    assert_eq!(
        breaker.try_acquire(at(999)).unwrap_err().reason,
        Reason::Open
    );
    assert!(!breaker.take_wish(), "the cooldown runs");
    assert!(!breaker.is_due(at(1_000)));
    assert_eq!(breaker.check(at(1_000)), Err(AWAITED));
    assert!(!breaker.take_wish(), "a question has no effect");
    assert_eq!(breaker.try_acquire(at(1_000)).unwrap_err(), AWAITED);
    assert!(breaker.take_wish());
    assert!(!breaker.take_wish());
    assert_eq!(breaker.state(at(1_000)), State::Open);
    let snapshot = breaker.snapshot(at(1_000));
    assert_eq!(snapshot.retry_after, Some(AWAITED.retry_after));
    let later = breaker.snapshot(at(1_500));
    assert_eq!(later.retry_after, Some(AWAITED.retry_after));
}

#[test]
fn a_grant_admits_the_next_call_until_it_ends() {
    let breaker = open();
    breaker.probe_by_grant();
    breaker.grant_probes(at(2_000), 0);
    assert!(breaker.is_due(at(1_000)));
    let probe = breaker.try_acquire(at(1_999)).unwrap();
    assert!(probe.is_probe());
    let crowd = breaker.try_acquire(at(1_999)).unwrap_err();
    assert_eq!((crowd.reason, crowd.retry_after), (Reason::Probing, SECOND));
    probe.record(&Outcome::success(SECOND), at(2_500));
    assert_eq!(breaker.try_acquire(at(2_500)).unwrap_err(), AWAITED);
    assert!(breaker.take_wish());
    breaker.probe_freely();
    assert!(breaker.try_acquire(at(2_500)).unwrap().is_probe());
}

#[test]
fn at_its_end_a_grant_is_over_whatever_places_are_free() {
    let breaker = open();
    breaker.grant_probes(at(2_000), 0);
    assert!(breaker.is_due(at(1_999)) && !breaker.is_due(at(2_000)));
    assert_eq!(breaker.check(at(2_000)), Err(AWAITED));
    let two = PolicySpec {
        probes: Some(2),
        cooldown: Some(SECOND),
        jitter: Some(0.0),
        ..PolicySpec::default()
    };
    breaker.reconfigure(Policy::new(&two).unwrap(), at(0));
    let _probe = breaker.try_acquire(at(1_999)).unwrap();
    assert_eq!(breaker.check(at(1_999)), Ok(()));
    assert_eq!(breaker.check(at(2_000)), Err(AWAITED), "a place is free");
    assert_eq!(breaker.try_acquire(at(2_000)).unwrap_err(), AWAITED);
}

#[test]
fn a_grant_that_is_taken_back_leaves_the_probe_that_is_out_alone() {
    let breaker = open();
    breaker.grant_probes(at(9_000), 1);
    let probe = breaker.try_acquire(at(1_000)).unwrap();
    breaker.probe_by_grant();
    probe.record(&Outcome::success(SECOND), at(1_100));
    assert_eq!(
        breaker.state(at(1_100)),
        State::Closed,
        "one had succeeded elsewhere"
    );
}

#[test]
fn no_number_of_good_probes_elsewhere_closes_without_one_here() {
    let breaker = open();
    breaker.grant_probes(at(9_000), 99);
    let probe = breaker.try_acquire(at(1_000)).unwrap();
    assert_eq!(breaker.state(at(1_000)), State::HalfOpen);
    assert_eq!(breaker.snapshot(at(1_000)).good_probes, 1);
    probe.record(&Outcome::failure(Kind::ServerError), at(1_100));
    assert_eq!(breaker.state(at(1_100)), State::Open);
}

#[test]
fn a_plan_that_only_asks_lets_the_wish_be_known() {
    let registry = Registry::default();
    let name = ScopeName::provider("p");
    let policies = Policies::all(&policy());
    let scopes = Scopes::new(&registry, name.clone(), None, None, policies, at(0)).unwrap();
    let breaker = registry.find_breaker(&name).unwrap();
    fail(&breaker, at(0));
    fail(&breaker, at(0));
    breaker.probe_by_grant();
    assert_eq!(scopes.check(at(1_000)).unwrap_err().rejection, AWAITED);
    assert!(breaker.take_wish());
}

#[test]
fn the_fleet_opens_what_is_closed_and_nothing_else() {
    let breaker = Breaker::new(ScopeName::provider("p"), policy());
    breaker.open_by_fleet(Some(Kind::Timeout), 7.0, 2.0, at(10));
    assert_eq!(breaker.state(at(10)), State::Open);
    let opened = breaker.history(0).pop().unwrap();
    assert_eq!(
        (opened.why.cause, opened.until),
        (Cause::Fleet, Some(at(1_010)))
    );
    assert_eq!(opened.why.to_string(), "fleet 7/2, timeout");
    breaker.open_by_fleet(None, 7.0, 2.0, at(500));
    assert_eq!(breaker.changes(), 1);
}

#[test]
fn evidence_stays_as_it_was_when_the_rules_opened() {
    let window = TripRule::Window {
        failures: 2,
        window: 2 * SECOND,
    };
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 9 }, window]),
        cooldown: Some(9 * SECOND),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::new(&spec).unwrap());
    let hits = |now| {
        let evidence = breaker.evidence(now);
        evidence
            .rules
            .iter()
            .map(|rule| (rule.observed, rule.hits))
            .collect::<Vec<_>>()
    };
    fail(&breaker, at(0));
    assert_eq!(hits(at(0)), [(1.0, 1), (1.0, 1)]);
    fail(&breaker, at(100));
    assert_eq!(breaker.state(at(100)), State::Open);
    assert_eq!(hits(at(2_000)), [(2.0, 2), (2.0, 2)]);
    assert_eq!(hits(at(2_100))[1].1, 0, "older than the window");
    breaker.reset(at(2_100));
    assert_eq!(hits(at(2_100)), [(0.0, 0), (0.0, 0)]);
}

#[test]
fn evidence_that_is_too_old_tells_neither_hits_nor_calls() {
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Rate {
            threshold: 1.0,
            window: 2 * SECOND,
            min_calls: 2,
        }]),
        cooldown: Some(9 * SECOND),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::new(&spec).unwrap());
    fail(&breaker, at(0));
    fail(&breaker, at(100));
    let seen = |now| {
        let evidence = breaker.evidence(now).rules;
        let rules = evidence.iter();
        rules
            .map(|rule| (rule.hits, rule.calls))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(at(2_099)), [(2, Some(2))]);
    assert_eq!(seen(at(2_100)), [(0, Some(0))]);
}

#[test]
fn good_calls_are_seen_even_where_no_rule_counts_them() {
    let breaker = Breaker::new(ScopeName::provider("p"), policy());
    let succeed = |now| {
        let permit = breaker.try_acquire(now).unwrap();
        permit.record(&Outcome::success(SECOND), now);
    };
    succeed(at(1));
    assert_eq!(breaker.evidence(at(1)).calls, []);
    breaker.count_calls();
    succeed(at(2));
    fail(&breaker, at(3));
    assert_eq!(breaker.evidence(at(3)).calls, [(at(999), 2)]);
}
