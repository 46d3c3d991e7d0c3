//! Changes of state: each begins a generation, clears what belonged to the last one, is remembered with its reasons, and
//! is published to the hot path last.

use core::time::Duration;

use super::granted::Frozen;
use super::{Machine, Phase};
use crate::backoff::cooldown;
use crate::event::{Cause, Transition, Why};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::state::{Deadline, RunWord, State, Tag, Watch, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// Transitions kept.
const HISTORY: usize = 20;

/// What opens a breaker.
pub(super) struct Trip {
    pub(super) cause: Cause,
    pub(super) observed: f64,
    pub(super) threshold: f64,
    pub(super) kind: Option<Kind>,
    pub(super) hint: Option<Duration>,
}

impl Trip {
    pub(super) const fn new(cause: Cause, kind: Option<Kind>) -> Self {
        Self {
            cause,
            observed: 1.0,
            threshold: 1.0,
            kind,
            hint: None,
        }
    }
}

impl Machine {
    pub(super) fn trip(&mut self, hot: &Hot, trip: Trip, at: Tick) {
        let base = self.base(trip.kind);
        let length = cooldown(
            self.policy.checked(),
            base,
            self.episodes,
            trip.hint,
            &mut self.random,
        );
        let why = self.why(&trip);
        self.incident_since = self.incident_since.or(Some(at));
        self.good = 0;
        if matches!(self.phase, Phase::Closed { .. }) {
            let seen = self.counts.view(&hot.shards, self.generation, at);
            self.frozen = Some(Frozen { at, seen });
        }
        self.enter(hot, Phase::Open { end: at + length }, at, why);
    }

    pub(super) fn base(&self, kind: Option<Kind>) -> Duration {
        let own = self.policy.checked().cooldown;
        kind.and_then(|kind| self.policy.kind(kind).cooldown)
            .unwrap_or(own)
    }

    /// A new state without a past: no failed episodes.
    pub(super) fn fresh(&mut self, hot: &Hot, phase: Phase, cause: Cause, at: Tick) {
        self.episodes = 0;
        let why = self.why(&Trip {
            observed: 0.0,
            threshold: 0.0,
            ..Trip::new(cause, None)
        });
        self.enter(hot, phase, at, why);
    }

    pub(super) fn enter(&mut self, hot: &Hot, phase: Phase, at: Tick, why: Why) {
        let from = self.state();
        self.open_for = self.open_for(at);
        self.phase = phase;
        self.since = at;
        self.generation = self.generation.next();
        self.counts.clear();
        self.degraded = false;
        let to = self.state();
        if to == State::Closed {
            self.incident_since = None;
            self.frozen = None;
        }
        self.remember(hot, from, to, at, why);
        self.publish(hot, Watch::Nothing);
    }

    /// How long it has been open in all.
    pub(crate) fn open_for(&self, now: Tick) -> Duration {
        match &self.phase {
            Phase::Open { .. } => self.open_for.saturating_add(now.since(self.since)),
            Phase::Closed { .. } | Phase::HalfOpen { .. } | Phase::Forced { .. } => self.open_for,
        }
    }

    /// The state, `degraded` as last seen by an evaluation.
    pub(crate) const fn state(&self) -> State {
        match &self.phase {
            Phase::Closed { .. } if self.degraded => State::Degraded,
            Phase::Closed { .. } => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::Forced { open: true, .. } => State::ForcedOpen,
            Phase::Forced { open: false, .. } => State::ForcedClosed,
        }
    }

    pub(super) fn why(&self, trip: &Trip) -> Why {
        Why {
            cause: trip.cause,
            observed: trip.observed,
            threshold: trip.threshold,
            kind: trip.kind,
            last_failures: self.last_failures.iter().copied().collect(),
        }
    }

    pub(super) fn remember(&mut self, hot: &Hot, from: State, to: State, at: Tick, why: Why) {
        // A closed state that is only left behind by pressure, or made fresh, was not entered.
        let stayed = to == State::Closed && matches!(from, State::Closed | State::Degraded);
        if let Some(entered) = self.entered.get_mut(to as usize).filter(|_| !stayed) {
            *entered += 1;
        }
        self.record(hot, from, to, at, why);
    }

    /// Adds to the history.
    pub(super) fn record(&mut self, hot: &Hot, from: State, to: State, at: Tick, why: Why) {
        self.numbered += 1;
        let until = match self.phase {
            Phase::Open { end } => Some(end),
            Phase::Forced { until, .. } => until,
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        };
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let generation = self.generation.get();
        self.history.push_back(Transition {
            number: self.numbered,
            at,
            from,
            to,
            generation,
            until,
            why,
        });
        hot.changed();
    }

    /// The run word first, the state word last: who sees the new state sees its run too.
    pub(super) fn publish(&self, hot: &Hot, watch: Watch) {
        self.publish_run(hot, watch);
        self.publish_word(hot);
    }

    pub(super) fn publish_run(&self, hot: &Hot, watch: Watch) {
        let run = RunWord::new(self.generation, self.counts.run, watch);
        hot.run.store(run.to_bits(), Ordering::Release);
    }

    /// Publishes that a success decides nothing, nor do fewer failures than `slack`. Those after the first of a run may
    /// wait: no success passes them by, for while there is a run each goes through the lock.
    pub(super) fn publish_slack(&self, hot: &Hot, slack: u64) {
        let allowance = if self.counts.run == 0 {
            0
        } else {
            hot.shards.allowance(slack)
        };
        let run = RunWord::new(self.generation, self.counts.run, Watch::Nothing);
        hot.run
            .store(run.with_allowance(allowance).to_bits(), Ordering::Release);
    }

    pub(super) fn publish_word(&self, hot: &Hot) {
        let policy = self.policy.checked();
        let (tag, deadline) = match &self.phase {
            Phase::Closed { ramp: None } => (Tag::Closed, Deadline::None),
            Phase::Closed { ramp: Some(ramp) } => {
                (Tag::Closed, Deadline::At(ramp.since + policy.ramp))
            }
            Phase::Open { end } => (Tag::Open, Deadline::At(*end)),
            Phase::HalfOpen { leases, .. } => {
                let full = leases.len() >= policy.probes as usize;
                let first = leases.iter().map(|lease| lease.end).min().filter(|_| full);
                (Tag::HalfOpen, first.map_or(Deadline::None, Deadline::At))
            }
            Phase::Forced { open, until } => {
                let tag = if *open {
                    Tag::ForcedOpen
                } else {
                    Tag::ForcedClosed
                };
                (tag, until.map_or(Deadline::Never, Deadline::At))
            }
        };
        hot.word.store(
            Word::new(tag, self.generation, deadline).to_bits(),
            Ordering::Release,
        );
    }
}
