//! `TransitionLog`: one line in the log for each transition of each breaker.

use std::collections::HashMap;

use fuseline_core::{Breaker, Registry, ScopeName, State, Tick, Transition};

/// Reads the histories of a registry's breakers and logs what is new. Drain it every now and then; a history keeps 20
/// transitions, and what was missed is said.
#[derive(Debug, Default)]
pub struct TransitionLog(HashMap<ScopeName, Seen>);

/// How far one breaker's history has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    number: u64,
    opened: Option<Tick>,
}

impl TransitionLog {
    /// Logs everything that has happened since the last time.
    pub fn drain(&mut self, registry: &Registry) {
        let breakers = registry.breakers();
        if self.0.len() > breakers.len() {
            self.0
                .retain(|name, _| breakers.iter().any(|breaker| breaker.name() == name));
        }
        for breaker in breakers.iter().filter(|breaker| breaker.changes() > 0) {
            let seen = self.0.entry(breaker.name().clone()).or_default();
            if breaker.changes() < seen.number {
                // Forgotten, and made anew under its old name.
                *seen = Seen::default();
            }
            if breaker.changes() > seen.number {
                seen.read(breaker);
            }
        }
    }
}

impl Seen {
    fn read(&mut self, breaker: &Breaker) {
        for transition in breaker.history(self.number) {
            let missed = transition.number.saturating_sub(self.number + 1);
            if missed > 0 {
                tracing::warn!(breaker = %breaker.name(), missed, "transitions came faster than they were read");
            }
            self.number = transition.number;
            let incident = self.incident(&transition);
            log(breaker, &transition, incident);
        }
    }

    /// The length of the incident that this transition ends.
    fn incident(&mut self, transition: &Transition) -> Option<f64> {
        match transition.to {
            State::Open => {
                self.opened.get_or_insert(transition.at);
                None
            }
            State::Closed => Some(transition.at.since(self.opened.take()?).as_secs_f64()),
            State::Degraded | State::HalfOpen | State::ForcedOpen | State::ForcedClosed => None,
        }
    }
}

fn log(breaker: &Breaker, transition: &Transition, incident_seconds: Option<f64>) {
    let name = breaker.name();
    let (from, to, why) = (
        transition.from.as_str(),
        transition.to.as_str(),
        &transition.why,
    );
    let scope = name.scope().as_str();
    match transition.to {
        State::Open | State::ForcedOpen | State::Degraded => {
            tracing::warn!(breaker = %name, scope, from, to, %why, incident_seconds, "breaker");
        }
        State::Closed | State::HalfOpen | State::ForcedClosed => {
            tracing::info!(breaker = %name, scope, from, to, %why, incident_seconds, "breaker");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let mut seen = Seen::default();
        let mut incidents: Vec<Option<f64>> = Vec::new();
        for _ in 0..2 {
            breaker
                .try_acquire(clock.now())
                .unwrap()
                .record(&Outcome::success(Duration::ZERO), clock.now());
        }
        for transition in breaker.history(0) {
            incidents.push(seen.incident(&transition));
        }
        assert_eq!(incidents.last(), Some(&Some(20.0)));
        assert!(incidents.iter().rev().skip(1).all(Option::is_none));
        let mut log = TransitionLog::default();
        log.drain(&registry);
        assert_eq!(
            log.0.values().next().map(|seen| seen.number),
            Some(breaker.changes())
        );
    }
}
