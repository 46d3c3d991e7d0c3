//! Registries and their events.

use std::collections::HashSet;
use std::time::Duration;

use fuseline::{
    Breaker, Clock, Failure, Kind, Outcome, Policy, PolicySpec, Registry, RegistryConfig,
    RegistryError, ScopeName, State, TripRule,
};

fn registry() -> (Registry, Clock) {
    let clock = Clock::manual();
    let config = RegistryConfig {
        clock: clock.clone(),
        ..RegistryConfig::default()
    };
    (Registry::new(config), clock)
}

#[test]
fn a_name_has_one_breaker_with_one_policy() {
    let (registry, _) = registry();
    let policy = Policy::default();
    assert!(registry.find_breaker("a").is_none() && registry.is_available("a"));
    registry.get_breaker("a", &policy).unwrap().force_open(None);
    assert_eq!(
        registry.find_breaker("a").unwrap().state(),
        State::ForcedOpen
    );
    assert!(!registry.is_available("a"));
    let other = Policy::new(&PolicySpec {
        probes: Some(2),
        ..PolicySpec::default()
    })
    .unwrap();
    let refused = registry.get_breaker("a", &other).unwrap_err();
    assert_eq!(
        refused,
        RegistryError::OtherSettings(ScopeName::provider("a"))
    );
    registry.reconfigure_all(&other);
    assert!(registry.get_breaker("a", &other).is_ok());
    registry.remove("a");
    assert!(registry.find_breaker("a").is_none());
}

#[test]
fn events_come_in_the_order_of_time_and_once() {
    let (registry, clock) = registry();
    let mut events = registry.events();
    for name in ["b", "a"] {
        let breaker = registry.get_breaker(name, &Policy::default()).unwrap();
        breaker.force_open(None);
        clock.advance(Duration::from_secs(1));
    }
    registry.find_breaker("b").unwrap().release();
    let seen: Vec<_> = events
        .drain()
        .into_iter()
        .map(|event| (event.name.to_string(), event.transition.to))
        .collect();
    let expected = [
        ("b", State::ForcedOpen),
        ("a", State::ForcedOpen),
        ("b", State::Closed),
    ];
    assert_eq!(seen, expected.map(|(name, state)| (name.to_owned(), state)));
    assert!(events.drain().is_empty());
}

#[test]
fn a_slow_reader_is_told_what_it_missed_and_a_new_breaker_begins_anew() {
    let (registry, _) = registry();
    let mut events = registry.events();
    let breaker = registry.get_breaker("a", &Policy::default()).unwrap();
    for _ in 0..15 {
        breaker.force_open(None);
        breaker.release();
    }
    let drained = events.drain();
    assert_eq!(
        (drained.len(), drained[0].missed, drained[1].missed),
        (20, 10, 0)
    );

    registry.remove("a");
    let anew = registry.get_breaker("a", &Policy::default()).unwrap();
    anew.force_open(None);
    let drained = events.drain();
    assert_eq!((drained.len(), drained[0].transition.number), (1, 1));
}

#[test]
fn a_handle_that_is_held_sees_new_settings_and_keeps_its_state() {
    let (registry, _) = registry();
    let held = registry.get_breaker("a", &Policy::default()).unwrap();
    for _ in 0..3 {
        held.try_acquire().unwrap().failure(Kind::Timeout);
    }
    let stricter = PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 4 }]),
        ..PolicySpec::default()
    };
    let found = registry.find_breaker("a").unwrap();
    found.reconfigure(Policy::new(&stricter).unwrap());
    assert_eq!(held.state(), State::Degraded, "three of four");
    held.try_acquire().unwrap().failure(Kind::Timeout);
    assert_eq!(held.state(), State::Open);
}

#[test]
fn two_registries_share_nothing() {
    let policy = Policy::default();
    let (a, b) = (Registry::default(), Registry::default());
    a.get_breaker("x", &policy).unwrap().force_open(None);
    assert!(!a.is_available("x") && b.is_available("x"));
    assert_eq!((a.snapshots().len(), b.snapshots().len()), (1, 0));
    assert!(b.events().drain().is_empty());
}

/// How long each of 32 breakers, one of each process of a fleet, stays open.
fn cooldowns(breaker: impl Fn() -> Breaker) -> HashSet<Duration> {
    let opened = |_| {
        let failure = Failure::new(Kind::ServerError).open_now();
        let permit = breaker().try_acquire_owned().unwrap();
        let opened = permit.record(&Outcome::Failure(failure)).unwrap();
        opened.until.unwrap().since(opened.at)
    };
    (0..32).map(opened).collect()
}

#[test]
fn report_21_the_processes_of_a_fleet_do_not_come_back_in_the_same_instant() {
    let policy = Policy::default();
    let alone = cooldowns(|| Breaker::new("a", policy.clone()));
    let registered = cooldowns(|| Registry::default().get_breaker("a", &policy).unwrap());
    for cooldowns in [alone, registered] {
        assert!(cooldowns.len() > 8, "{cooldowns:?}");
        let all = Duration::from_secs(15)..=Duration::from_millis(16_500);
        assert!(cooldowns.iter().all(|cooldown| all.contains(cooldown)));
    }
}

#[test]
fn a_seed_and_a_clock_of_a_test_repeat_the_same_cooldowns() {
    let policy = Policy::default();
    let seeded = || {
        let config = RegistryConfig {
            seed: 7,
            ..RegistryConfig::default()
        };
        Registry::new(config).get_breaker("a", &policy).unwrap()
    };
    assert_eq!(cooldowns(seeded).len(), 1);
    let timed = || Breaker::with_clock("a", policy.clone(), Clock::manual());
    assert_eq!(cooldowns(timed).len(), 1);
}
