//! Taking the state out of a machine, and putting one back.

use super::questions::is_degraded;
use super::transition::Trip;
use super::{Machine, Phase};
use crate::event::{Cause, Why};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::saved::SavedBreaker;
use crate::scope::ScopeName;
use crate::state::{State, Watch};
use crate::tick::Tick;

impl Machine {
    pub(crate) fn export(&self, hot: &Hot, name: ScopeName, now: Tick) -> SavedBreaker {
        let until = match self.phase {
            Phase::Open { end } => Some(end),
            Phase::Forced { until, .. } => until,
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        };
        let kinds = Kind::ALL.into_iter().zip(self.counts.kinds);
        SavedBreaker {
            name,
            state: self.state_now(hot, now),
            since: self.since,
            until,
            episodes: self.episodes,
            incident_since: self.incident_since,
            hold_until: hot.held(now).map(|held| now + held.retry_after),
            run: self.counts.run,
            kinds: kinds.filter(|(_, count)| *count > 0).collect(),
            windows: self.counts.export(&hot.shards, self.generation, now),
            why: self.why_restored(),
        }
    }

    /// The reasons of the last transition, for one who restores its state.
    fn why_restored(&self) -> Option<Why> {
        let is_closed = matches!(self.phase, Phase::Closed { .. });
        let last = self.history.back().filter(|_| !is_closed)?;
        // A slow trip has no kind: what opened is a model's own slowness.
        let slow = (last.why.cause == Cause::Slow).then_some(Kind::Timeout);
        Some(Why {
            cause: Cause::Restored,
            kind: last.why.kind.or(slow),
            ..last.why.clone()
        })
    }

    pub(crate) fn restore(&mut self, hot: &Hot, saved: &SavedBreaker, now: Tick) {
        let now = self.pass_time(hot, now);
        let from = self.state();
        self.phase = match saved.state {
            State::Closed | State::Degraded => Phase::Closed { ramp: None },
            State::Open => Phase::Open {
                end: saved.until.unwrap_or(now),
            },
            State::HalfOpen => Phase::Open { end: now },
            State::ForcedOpen | State::ForcedClosed => Phase::Forced {
                open: saved.state == State::ForcedOpen,
                until: saved.until,
            },
        };
        self.since = saved.since.min(now);
        self.generation = self.generation.next();
        self.episodes = saved.episodes;
        self.incident_since = saved.incident_since;
        self.counts.restore(saved, now);
        self.frozen = None;
        let is_closed = matches!(self.phase, Phase::Closed { .. });
        let pressure = self
            .counts
            .evaluate(&hot.shards, self.generation, now)
            .pressure;
        self.degraded = is_closed && is_degraded(self.policy.checked(), pressure);
        let why = saved.why.clone();
        if let Some(why) = &why {
            self.last_failures = why.last_failures.iter().copied().collect();
        }
        let (to, was_closed) = (
            self.state(),
            matches!(from, State::Closed | State::Degraded),
        );
        if !(is_closed && was_closed) {
            let untold = || self.why(&Trip::new(Cause::Restored, None));
            let why = why.unwrap_or_else(untold);
            self.record(hot, from, to, self.since, why);
        }
        // Rules are judged when an outcome is recorded: the next one, whatever it is.
        let watch = if is_closed {
            Watch::Every
        } else {
            Watch::Nothing
        };
        self.publish(hot, watch);
    }
}
