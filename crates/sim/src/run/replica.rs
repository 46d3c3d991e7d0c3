//! `Replica`: one gateway's breaker in a run, and every state that it entered.

use core::time::Duration;

use fuseline_core::{Breaker, Policy, ScopeName, State, Tick};

pub(super) struct Replica {
    pub(super) breaker: Breaker,
    read: u64,
    /// Every state entered, and when.
    entered: Vec<(Tick, State)>,
}

impl Replica {
    pub(super) fn new(policy: Policy, seed: u64) -> Self {
        Self {
            breaker: Breaker::with_seed(ScopeName::provider("simulated"), policy, seed),
            read: 0,
            entered: Vec::new(),
        }
    }

    /// Reads what is new in the breaker's history.
    pub(super) fn look(&mut self) {
        if self.breaker.changes() == self.read {
            return;
        }
        for transition in self.breaker.history(self.read) {
            self.read = transition.number;
            if transition.to != State::Degraded && transition.from != State::Degraded
                || transition.to == State::Open
            {
                self.entered.push((transition.at, transition.to));
            }
        }
    }

    pub(super) fn opened(&self) -> u64 {
        let mut before = State::Closed;
        let mut count = 0;
        for (_, state) in &self.entered {
            count += u64::from(before == State::Closed && *state == State::Open);
            before = *state;
        }
        count
    }

    pub(super) fn detected(&self, begin: Tick, end: Tick) -> Option<Duration> {
        let mut opened = self.entered.iter();
        let is_it =
            |(at, state): &&(Tick, State)| *state == State::Open && (begin..end).contains(at);
        opened.find(is_it).map(|(at, _)| at.since(begin))
    }

    pub(super) fn recovered(&self, end: Tick, horizon: Tick) -> Duration {
        let before = self.entered.iter().rev().find(|(at, _)| *at < end);
        if before.is_none_or(|(_, state)| *state == State::Closed) {
            return Duration::ZERO;
        }
        let mut entered = self.entered.iter();
        let closed = entered.find(|(at, state)| *at >= end && *state == State::Closed);
        closed.map_or(horizon, |(at, _)| *at).since(end)
    }

    pub(super) fn has_closed_since(&self, end: Tick) -> bool {
        let closed = |(at, state): &(Tick, State)| *at >= end && *state == State::Closed;
        self.entered.iter().any(closed)
    }
}
