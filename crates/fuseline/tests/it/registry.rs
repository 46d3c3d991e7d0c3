//! Registries and their events.

use std::time::Duration;

use fuseline::{
    Clock, Policy, PolicySpec, Registry, RegistryConfig, RegistryError, ScopeName, State,
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
