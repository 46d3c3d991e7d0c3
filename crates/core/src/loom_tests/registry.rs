//! Models of the registry: one breaker a name, and room made only by those that nobody holds.

use super::*;
use crate::clock::Clock;
use crate::registry::{Registry, RegistryConfig, RegistryError};

fn registry(max_breakers: usize) -> Registry {
    set_slot(0);
    Registry::new(RegistryConfig {
        max_breakers,
        clock: Clock::manual(),
        ..RegistryConfig::default()
    })
}

fn get(registry: &Registry, name: &str, failures: u32) -> Result<Breaker, RegistryError> {
    let policy = Policy::new(&spec(TripRule::Consecutive { failures })).unwrap();
    registry.get_breaker(&ScopeName::provider(name), &policy, at(1))
}

fn state(registry: &Registry, name: &str) -> Option<State> {
    let found = registry.find_breaker(&ScopeName::provider(name));
    found.map(|breaker| breaker.state(at(1)))
}

#[test]
fn two_threads_that_ask_for_a_new_name_get_the_same_breaker() {
    model(|| {
        let registry = registry(2);
        let call = |registry: &Registry| fail(&get(registry, "a", 2).unwrap(), at(1));
        race(&registry, call, call);
        assert_eq!(registry.len(), 1);
        assert_eq!(state(&registry, "a"), Some(State::Open), "two in a row");
    });
}

#[test]
fn no_outcome_is_lost_where_room_is_made_for_another() {
    model(|| {
        let registry = registry(1);
        drop(get(&registry, "a", 1));
        let ((), other) = race(
            &registry,
            |registry| {
                // The permit alone holds the breaker.
                let permit = get(registry, "a", 1)
                    .map(|breaker| breaker.try_acquire_owned(Duration::ZERO, at(1)).unwrap());
                if let Ok(permit) = permit {
                    permit.record(&Outcome::failure(Kind::ServerError), at(1));
                    assert_eq!(state(registry, "a"), Some(State::Open));
                }
            },
            |registry| get(registry, "b", 1).map(drop),
        );
        assert_eq!(registry.len(), 1);
        let full = RegistryError::Full(ScopeName::provider("b"), 1);
        assert!(other.is_ok() || other == Err(full));
    });
}
