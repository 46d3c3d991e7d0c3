//! Reads the primary's circuit: what is new in its history, and when it was open or half-open.

use fuseline_core::{Breaker, Cause, Registry, ScopeName, State, Tick, Transition};
use tokio::time::Instant;

use super::event::{Change, Event, Failure};
use super::plan::GOOD_PROBES;

/// One reader of the primary's circuit.
pub(super) struct Watch {
    registry: Registry,
    /// The same moment on both clocks.
    anchor: (Tick, Instant),
    /// The number of the last transition told.
    told: u64,
    good: u32,
    /// What each probe found.
    probes: Vec<String>,
    opened: Option<Tick>,
    /// Every state entered, and when; `closed` and `degraded` are one.
    spans: Vec<(State, Instant)>,
}

impl Watch {
    pub(super) fn new(registry: Registry) -> Self {
        let anchor = (registry.now(), Instant::now());
        Self {
            registry,
            anchor,
            told: 0,
            good: 0,
            probes: Vec::new(),
            opened: None,
            spans: Vec::new(),
        }
    }

    /// What has happened since the last time, and when.
    pub(super) fn news(&mut self) -> Vec<(Instant, Event)> {
        let Some(breaker) = self.breaker() else {
            return Vec::new();
        };
        let transitions = breaker.history(self.told);
        let mut news: Vec<_> = transitions
            .iter()
            .map(|transition| {
                (
                    self.instant(transition.at),
                    self.change(&breaker, transition),
                )
            })
            .collect();
        let snapshot = breaker.snapshot(self.registry.now());
        if snapshot.good_probes > self.good {
            let event = Event::GoodProbe {
                good: snapshot.good_probes,
                needed: GOOD_PROBES,
            };
            news.push((Instant::now(), event));
        }
        self.good = snapshot.good_probes;
        news
    }

    fn change(&mut self, breaker: &Breaker, transition: &Transition) -> Event {
        let Transition {
            number,
            at,
            from,
            to,
            until,
            why,
            ..
        } = transition;
        self.told = *number;
        if *to != State::Degraded {
            self.spans.push((*to, self.instant(*at)));
        }
        let incident = match to {
            State::Open => Some(*self.opened.get_or_insert(*at)),
            State::Closed => self.opened.take(),
            _ => self.opened,
        };
        if why.cause == Cause::Probe {
            let good = if *to == State::Closed {
                GOOD_PROBES
            } else {
                std::mem::take(&mut self.good)
            };
            self.probes.extend((0..good).map(|_| "good".to_owned()));
        }
        let last_failures: Vec<_> = why.last_failures.iter().map(Failure::from).collect();
        if *from == State::HalfOpen && *to == State::Open {
            self.probes
                .extend(last_failures.last().map(ToString::to_string));
        }
        Event::Transition(Change {
            from: *from,
            to: *to,
            cause: why.cause,
            observed: why.observed,
            threshold: why.threshold,
            kind: why.kind,
            last_failures,
            open_for: until.map(|until| until.since(*at)),
            saved: rejected(breaker, self.registry.now()),
            incident: incident.map(|since| at.since(since)),
        })
    }

    /// Since when it has been in the state it is in; none before its first transition.
    pub(super) fn standing(&self) -> Option<(State, Instant)> {
        self.spans.last().copied()
    }

    /// From when to when it was in a state, each time; the end may still be to come.
    pub(super) fn times(&self, state: State) -> impl Iterator<Item = (Instant, Option<Instant>)> {
        let ends = self.spans.iter().skip(1).map(|(_, at)| Some(*at));
        let spans = self.spans.iter().zip(ends.chain([None]));
        spans
            .filter(move |((entered, _), _)| *entered == state)
            .map(|((_, from), to)| (*from, to))
    }

    /// What each probe has found.
    pub(super) fn probes(&self) -> &[String] {
        &self.probes
    }

    /// Calls refused so far, without being sent.
    pub(super) fn saved(&self) -> u64 {
        self.breaker()
            .map_or(0, |breaker| rejected(&breaker, self.registry.now()))
    }

    fn breaker(&self) -> Option<Breaker> {
        self.registry.find_breaker(&ScopeName::provider("primary"))
    }

    fn instant(&self, tick: Tick) -> Instant {
        let (zero, instant) = self.anchor;
        instant + tick.since(zero)
    }
}

fn rejected(breaker: &Breaker, now: Tick) -> u64 {
    let snapshot = breaker.snapshot(now);
    snapshot.rejected.iter().map(|(_, count)| count).sum()
}
