//! The registry: names, settings, live reconfiguration, who leaves.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Clock, Kind, Outcome, Policy, PolicySpec, Registry, RegistryConfig, RegistryError, ScopeName,
    State, Tick, TripRule,
};

const GOOD: Outcome = Outcome::success(Duration::ZERO);
const SLOW: Outcome = Outcome::success(Duration::from_secs(2));
const BAD: Outcome = Outcome::failure(Kind::ServerError);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn spec() -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 2 }]),
        jitter: Some(0.0),
        ..PolicySpec::default()
    }
}

#[test]
fn the_same_name_with_other_settings_is_an_error_and_none_is_not_closed() {
    let registry = Registry::default();
    let name = ScopeName::provider("p");
    assert!(registry.find_breaker(&name).is_none());
    let policy = Policy::new(&spec()).unwrap();
    let breaker = registry.get_breaker(&name, &policy, at(0)).unwrap();
    assert!(registry.get_breaker(&name, &policy, at(0)).is_ok());
    let error = registry
        .get_breaker(&name, &Policy::default(), at(0))
        .unwrap_err();
    assert_eq!(error, RegistryError::OtherSettings(name.clone()));
    assert_eq!(
        error.to_string(),
        "breaker `p` exists with other settings; reconfigure it, or use another name"
    );
    breaker.reconfigure(Policy::default(), at(0));
    assert!(
        registry
            .get_breaker(&name, &Policy::default(), at(0))
            .is_ok()
    );
}

#[test]
fn reconfiguration_keeps_generation_run_episodes_and_the_end_of_a_cooldown() {
    let registry = Registry::default();
    let rate = |window| TripRule::Rate {
        threshold: 0.9,
        window: Duration::from_secs(window),
        min_calls: 5,
    };
    let with = |trip: Vec<TripRule>, cooldown| {
        let spec = PolicySpec {
            trip: Some(trip),
            cooldown: Some(Duration::from_secs(cooldown)),
            ..spec()
        };
        Policy::new(&spec).unwrap()
    };
    let name = ScopeName::provider("p");
    let before = with(vec![TripRule::Consecutive { failures: 4 }, rate(60)], 15);
    let breaker = registry.get_breaker(&name, &before, at(0)).unwrap();
    let fail = |now| {
        breaker
            .try_acquire(now)
            .unwrap()
            .record(&Outcome::failure(Kind::ServerError), now)
    };
    for _ in 0..3 {
        fail(at(1));
    }
    registry.reconfigure(
        &name,
        with(
            vec![TripRule::Consecutive { failures: 4 }, rate(60), rate(10)],
            99,
        ),
        at(2),
    );
    let seen = breaker.snapshot(at(2));
    assert_eq!((seen.run, seen.generation), (3, 0));
    let hits: Vec<_> = seen
        .rules
        .iter()
        .map(|rule| (rule.hits, rule.calls))
        .collect();
    assert_eq!(
        hits,
        [(3, None), (3, Some(3)), (0, Some(0))],
        "the old window kept its counts, the new one is empty"
    );
    fail(at(3));
    assert_eq!(
        breaker.check(at(3)).unwrap_err().retry_after,
        Duration::from_secs(99)
    );
    registry.reconfigure(
        &name,
        with(vec![TripRule::Consecutive { failures: 1 }], 1),
        at(4),
    );
    assert_eq!(
        breaker.check(at(3_003)).unwrap_err().retry_after,
        Duration::from_secs(96),
        "its end does not move"
    );
    assert_eq!(breaker.state(at(5)), State::Open);
}

#[test]
fn what_is_removed_is_gone_and_who_holds_it_keeps_it() {
    let clock = Clock::manual();
    let registry = Registry::new(RegistryConfig {
        clock: clock.clone(),
        ..RegistryConfig::default()
    });
    clock.advance(Duration::from_secs(3));
    assert_eq!((registry.now(), registry.now()), (clock.now(), at(3_000)));
    assert_eq!((registry.is_empty(), registry.len()), (true, 0));
    let name = ScopeName::provider("p");
    let policy = Policy::new(&spec()).unwrap();
    let held = registry
        .get_breaker(&name, &policy, registry.now())
        .unwrap();
    assert_eq!((registry.is_empty(), registry.len()), (false, 1));
    assert_eq!(registry.unguarded(), 0);
    held.force_open(None, registry.now());
    registry.remove(&name);
    assert!(registry.is_empty() && registry.find_breaker(&name).is_none());
    let anew = registry
        .get_breaker(&name, &policy, registry.now())
        .unwrap();
    assert_eq!(
        [anew, held].map(|breaker| breaker.state(registry.now())),
        [State::Closed, State::ForcedOpen]
    );
}

/// Who stays in a registry of two, once when a third comes, and once when a fourth does a minute later: `older` has these
/// outcomes and was used before `newer`.
fn who_stays(rule: TripRule, outcomes: &[Outcome]) -> [String; 2] {
    let registry = Registry::new(RegistryConfig {
        max_breakers: 2,
        ..RegistryConfig::default()
    });
    let policy = Policy::new(&PolicySpec {
        trip: Some(vec![rule]),
        ..spec()
    });
    let policy = policy.unwrap();
    let get = |name: &str, now| registry.get_breaker(&ScopeName::provider(name), &policy, now);
    let breaker = get("older", at(0)).unwrap();
    for outcome in outcomes {
        breaker.try_acquire(at(0)).unwrap().record(outcome, at(0));
    }
    drop(breaker);
    drop(get("newer", at(5)).unwrap());
    [("third", at(10)), ("fourth", at(61_000))].map(|(name, now)| {
        drop(get(name, now).unwrap());
        let breakers = registry.breakers();
        let names: Vec<_> = breakers
            .iter()
            .map(|breaker| breaker.name().to_string())
            .collect();
        names.join(" ")
    })
}

#[test]
fn of_those_that_nobody_holds_the_clean_leave_first_and_a_window_that_has_passed_is_clean() {
    let minute = Duration::from_secs(60);
    let window = TripRule::Window {
        failures: 9,
        window: minute,
    };
    let slow = TripRule::Slow {
        slower_than: Duration::from_secs(1),
        threshold: 0.5,
        window: minute,
        min_calls: 9,
    };
    let in_a_row = TripRule::Consecutive { failures: 9 };
    let forgiven = ["newer third", "fourth third"];
    let long_ago = [BAD, GOOD, GOOD, GOOD, GOOD, GOOD, GOOD, GOOD]
        .into_iter()
        .chain([GOOD; 8])
        .collect::<Vec<_>>();
    let cases: [(TripRule, &[Outcome], [&str; 2]); 8] = [
        // A run does not age.
        (in_a_row, &[BAD], ["older third", "fourth older"]),
        (in_a_row, &[BAD, GOOD], forgiven),
        (window, &[BAD, GOOD], ["older third", "fourth third"]),
        (window, &[BAD], ["older third", "fourth older"]),
        (slow, &[SLOW], ["older third", "fourth third"]),
        (slow, &[GOOD], forgiven),
        (
            TripRule::cusum(),
            &[BAD, GOOD],
            ["older third", "fourth older"],
        ),
        (TripRule::cusum(), &long_ago, forgiven),
    ];
    for (rule, outcomes, stay) in cases {
        assert_eq!(who_stays(rule, outcomes), stay, "{rule:?}");
    }
}
