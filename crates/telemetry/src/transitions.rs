//! `TransitionReader`: what is new in the histories of all breakers, as data and as lines in the log.

use std::collections::HashMap;
use std::time::Duration;

use fuseline_core::{Breaker, Registry, ScopeName, State, Tick, Transition};

/// Reads the histories of a registry's breakers. Read every now and then: a history keeps 20 transitions, and how many
/// were missed is said.
#[derive(Debug, Default)]
pub struct TransitionReader(HashMap<ScopeName, Seen>);

/// How far one breaker's history has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    number: u64,
    opened: Option<Tick>,
}

/// A transition, and whose it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observed {
    /// The breaker's name.
    pub name: ScopeName,
    /// What happened.
    pub transition: Transition,
    /// The length of the incident that it ends, if it ends one: from the first opening to the closing.
    pub incident: Option<Duration>,
    /// How many transitions before it came and went unread.
    pub missed: u64,
}

impl TransitionReader {
    /// Everything that has happened since the last time, oldest first.
    pub fn read(&mut self, registry: &Registry) -> Vec<Observed> {
        let breakers = registry.breakers();
        if self.0.len() > breakers.len() {
            self.0
                .retain(|name, _| breakers.iter().any(|breaker| breaker.name() == name));
        }
        let mut news = Vec::new();
        for breaker in breakers.iter().filter(|breaker| breaker.changes() > 0) {
            let seen = self.0.entry(breaker.name().clone()).or_default();
            if breaker.changes() < seen.number {
                // Forgotten, and made anew under its old name.
                *seen = Seen::default();
            }
            if breaker.changes() > seen.number {
                news.extend(seen.read(breaker));
            }
        }
        news.sort_by_key(|observed| observed.transition.at);
        news
    }
}

impl Seen {
    fn read(&mut self, breaker: &Breaker) -> Vec<Observed> {
        let new = breaker.history(self.number).into_iter();
        new.map(|transition| {
            let missed = transition.number.saturating_sub(self.number + 1);
            self.number = transition.number;
            Observed {
                name: breaker.name().clone(),
                incident: self.incident(&transition),
                transition,
                missed,
            }
        })
        .collect()
    }

    /// The length of the incident that this transition ends.
    fn incident(&mut self, transition: &Transition) -> Option<Duration> {
        match transition.to {
            State::Open => {
                self.opened.get_or_insert(transition.at);
                None
            }
            State::Closed => Some(transition.at.since(self.opened.take()?)),
            State::Degraded | State::HalfOpen | State::ForcedOpen | State::ForcedClosed => None,
        }
    }
}

impl Observed {
    /// Writes the transition's line into the log.
    pub fn log(&self) {
        let (breaker, scope, missed) = (&self.name, self.name.scope().as_str(), self.missed);
        if missed > 0 {
            tracing::warn!(%breaker, missed, "transitions came faster than they were read");
        }
        let Transition { from, to, why, .. } = &self.transition;
        let incident_seconds = self.incident.map(|incident| incident.as_secs_f64());
        let (from, is_worse) = (from.as_str(), is_worse(*to));
        let to = to.as_str();
        if is_worse {
            tracing::warn!(%breaker, scope, from, to, %why, incident_seconds, "breaker");
        } else {
            tracing::info!(%breaker, scope, from, to, %why, incident_seconds, "breaker");
        }
    }
}

/// Whether an operator should look at a breaker that came into this state.
const fn is_worse(state: State) -> bool {
    match state {
        State::Open | State::ForcedOpen | State::Degraded => true,
        State::Closed | State::HalfOpen | State::ForcedClosed => false,
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::{Clock, Kind, Outcome, Policy, RegistryConfig};

    use super::*;

    #[test]
    fn an_incident_is_measured_from_its_first_opening_to_its_closing() {
        let clock = Clock::manual();
        let registry = Registry::new(RegistryConfig {
            clock: clock.clone(),
            ..RegistryConfig::default()
        });
        let breaker = registry
            .get_breaker(&ScopeName::provider("p"), &Policy::default(), clock.now())
            .unwrap();
        for _ in 0..5 {
            breaker
                .try_acquire(clock.now())
                .unwrap()
                .record(&Outcome::failure(Kind::ServerError), clock.now());
        }
        clock.advance(Duration::from_secs(20));
        for _ in 0..2 {
            breaker
                .try_acquire(clock.now())
                .unwrap()
                .record(&Outcome::success(Duration::ZERO), clock.now());
        }
        let mut reader = TransitionReader::default();
        let news = reader.read(&registry);
        let incidents: Vec<_> = news.iter().map(|observed| observed.incident).collect();
        assert_eq!(incidents.last(), Some(&Some(Duration::from_secs(20))));
        assert!(incidents.iter().rev().skip(1).all(Option::is_none));
        assert!(news.iter().all(|observed| observed.missed == 0));
        assert!(reader.read(&registry).is_empty());
        for _ in 0..21 {
            breaker.reset(clock.now());
        }
        let news = reader.read(&registry);
        assert_eq!((news.len(), news[0].missed), (20, 1));
    }
}
