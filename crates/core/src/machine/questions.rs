//! Answers to questions, of a machine that has let time pass.

use core::time::Duration;

use super::{FORCED_WAIT, Lease, Machine, Phase, SOON};
use crate::event::{Reason, Rejection};
use crate::hot::Hot;
use crate::policy::Checked;
use crate::state::State;
use crate::tick::Tick;

impl Machine {
    pub(crate) fn state_now(&self, hot: &Hot, now: Tick) -> State {
        if !matches!(self.phase, Phase::Closed { .. }) {
            return self.state();
        }
        let pressure = self
            .counts
            .evaluate(&hot.shards, self.generation, now)
            .pressure;
        if is_degraded(self.policy.checked(), pressure) {
            State::Degraded
        } else {
            State::Closed
        }
    }

    /// The rejection that a call would get.
    pub(crate) fn refusal(&self, hot: &Hot, now: Tick) -> Option<Rejection> {
        let refuse = |reason, retry_after| {
            Some(Rejection {
                reason,
                retry_after,
            })
        };
        let policy = self.policy.checked();
        match &self.phase {
            Phase::Open { end } if now < *end => refuse(Reason::Open, end.since(now)),
            Phase::Open { .. } if !self.may_probe(now) => self.unlicensed(now),
            Phase::Forced { open: true, until } => refuse(
                Reason::Forced,
                until.map_or(FORCED_WAIT, |until| until.since(now)),
            ),
            Phase::HalfOpen { leases, .. } if leases.len() >= policy.probes as usize => hot
                .saturation()
                .or_else(|| refuse(Reason::Probing, probing_wait(leases, now))),
            Phase::HalfOpen { .. } if !self.may_probe(now) => {
                hot.saturation().or_else(|| self.unlicensed(now))
            }
            Phase::Closed { ramp: Some(ramp) } if !ramp.would_admit(policy.ramp, now) => {
                hot.saturation().or_else(|| refuse(Reason::Ramping, SOON))
            }
            Phase::Closed { .. }
            | Phase::Open { .. }
            | Phase::HalfOpen { .. }
            | Phase::Forced { .. } => hot.saturation(),
        }
    }

    /// How long until asking again is of use; an `open` past its end says zero.
    pub(crate) fn retry_after(&self, hot: &Hot, now: Tick) -> Option<Duration> {
        match &self.phase {
            Phase::Open { end } if now < *end || self.may_probe(now) => Some(end.since(now)),
            Phase::Open { .. }
            | Phase::Closed { .. }
            | Phase::HalfOpen { .. }
            | Phase::Forced { .. } => self.refusal(hot, now).map(|refusal| refusal.retry_after),
        }
    }

    pub(crate) fn is_due(&self, now: Tick) -> bool {
        match &self.phase {
            Phase::Open { end } => *end <= now && self.may_probe(now),
            Phase::HalfOpen { leases, .. } => {
                leases.len() < self.policy.checked().probes as usize && self.may_probe(now)
            }
            Phase::Closed { .. } | Phase::Forced { .. } => false,
        }
    }
}

pub(super) fn probing_wait(leases: &[Lease], now: Tick) -> Duration {
    leases
        .iter()
        .map(|lease| lease.end.since(now))
        .min()
        .unwrap_or(SOON)
        .min(SOON)
}

pub(super) fn is_degraded(policy: &Checked, pressure: f64) -> bool {
    policy.degraded_at < 1.0 && pressure >= policy.degraded_at * (1.0 - 1e-9)
}
