//! `Plan`: what a call does next, after each verdict. No I/O, no clock; the same seed gives the same steps.
//!
//! A driver asks [`Plan::next`], makes the attempt that the step names, hands the verdict to [`Plan::after`], and
//! so on until [`Step::GiveUp`]. Where a step cannot be taken because a permit was refused or is no longer current,
//! and after a [`Step::Wait`], it asks [`Plan::next`] again.
//!
//! What holds whatever the verdicts: a target is visited at most once a call and has at most `retries` further
//! attempts in that visit; there are never more than `max_attempts` in all; no step begins after the budget's end, and
//! no wait reaches it; a target that does not admit is not tried; a probe is not repeated; each retry is paid for by the
//! [`RetryBudget`]; once a request may be running somewhere without our knowing its end, it is sent to at most one
//! other target, unless [`Limits::resend_unknown`] says otherwise.

mod beyond;
mod choice;
mod hedge;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use fuseline_core::{Kind, Scope, Tick};

use super::jitter::Jitter;
use super::step::{Admission, Reason, Standing, Step};
use super::table::{Again, Next, manners};
use super::{Detours, Limits, RetryBudget};
use crate::target::Target;
use crate::verdict::Verdict;

/// So that time passes between two questions.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// The course of one call over its targets.
#[derive(Clone, Debug)]
pub struct Plan {
    targets: Vec<Target>,
    limits: Limits,
    started: Tick,
    jitter: Jitter,
    /// By target: not to be visited any more.
    spent: Vec<bool>,
    visiting: Option<usize>,
    /// On the target being visited.
    retries: u32,
    replacement: Chance,
    /// For the one other target after an attempt whose end is unknown.
    unknown_end: Chance,
    attempts: u32,
    soonest: Option<Duration>,
    detours: Detours,
    /// Where an operator's rule sent the call: these go before the others.
    wanted: Vec<usize>,
    /// Only a larger context is of use.
    outgrown: Option<u64>,
    retry_budget: Option<Arc<RetryBudget>>,
    retry_denied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    Left,
    Used,
}

impl Chance {
    fn take(&mut self) -> bool {
        std::mem::replace(self, Self::Used) == Self::Left
    }
}

impl Plan {
    /// A plan over these targets in this order, for a call that began at `now`. `seed` spreads the delays.
    pub fn new(targets: Vec<Target>, limits: Limits, seed: u64, now: Tick) -> Self {
        Self {
            spent: vec![false; targets.len()],
            targets,
            limits,
            started: now,
            jitter: Jitter::new(seed),
            visiting: None,
            retries: 0,
            replacement: Chance::Left,
            unknown_end: Chance::Left,
            attempts: 0,
            soonest: None,
            detours: Detours::default(),
            wanted: Vec::new(),
            outgrown: None,
            retry_budget: None,
            retry_denied: false,
        }
    }

    /// The plan with an operator's rules for failures.
    #[must_use]
    pub fn with_detours(self, detours: Detours) -> Self {
        Self { detours, ..self }
    }

    /// The plan with its retries paid out of a budget that it shares with others. Other targets and replaced connections
    /// are free.
    #[must_use]
    pub fn with_retry_budget(self, budget: Arc<RetryBudget>) -> Self {
        Self {
            retry_budget: Some(budget),
            ..self
        }
    }

    /// The next target in order, but one that is due for a probe before all others: the call's first step, and the
    /// step where the last one could not be taken because a permit was refused or is no longer current. Where none
    /// admits, the shortest wait for a held key, if the call has the patience.
    pub fn next(&mut self, mut admission: impl FnMut(&Target) -> Admission, now: Tick) -> Step {
        self.visiting = None;
        self.soonest = None;
        if self.attempts >= self.limits.max_attempts {
            return Step::GiveUp(Reason::Attempts);
        }
        if self.remaining(now).is_zero() {
            return Step::GiveUp(Reason::Budget);
        }
        let mut held: Option<Duration> = None;
        let mut chosen = None;
        for list in self.eligible() {
            chosen = self.choose(&list, &mut admission, &mut held);
            if chosen.is_some() {
                break;
            }
        }
        match (chosen, held.and_then(|wait| self.sit_out(wait, now))) {
            (Some(at), _) => self.visit(at),
            (None, Some(wait)) => Step::Wait(wait),
            (None, None) if self.attempts == 0 => Step::GiveUp(Reason::Refused),
            (None, None) => Step::GiveUp(Reason::Exhausted),
        }
    }

    /// The step after an attempt's verdict.
    pub fn after(
        &mut self,
        verdict: &Verdict,
        standing: Standing,
        mut admission: impl FnMut(&Target) -> Admission,
        now: Tick,
    ) -> Step {
        let Some((at, target)) = self
            .visiting
            .and_then(|at| Some((at, self.targets.get(at)?.clone())))
        else {
            return Step::GiveUp(Reason::Final);
        };
        if self.replaces_connection(verdict, standing, now) {
            self.replacement = Chance::Used;
            return Step::RetryAfter {
                target: at,
                delay: Duration::ZERO,
            };
        }
        self.attempts = self.attempts.saturating_add(1);
        let Some(kind) = verdict.kind else {
            return Step::GiveUp(Reason::Final);
        };
        let resend = self.limits.resend_unknown;
        let (mut again, mut next) = manners(kind, &verdict.evidence, target.owner(), resend);
        if let Some(rule) = self.detours.on.get(&kind).cloned() {
            again = Again::Never;
            if !self.follow(rule, at) {
                return Step::GiveUp(Reason::Final);
            }
            if next == Next::Never {
                next = Next::Yes;
            }
        }
        if standing == Standing::Current
            && !(kind == Kind::RateLimit && self.has_other_key(&target, &mut admission))
            && let Some(delay) = self.delay(kind, verdict, again, now)
        {
            self.retries += 1;
            return Step::RetryAfter { target: at, delay };
        }
        match next {
            Next::Never => return Step::GiveUp(Reason::Final),
            Next::Once if !self.unknown_end.take() => return Step::GiveUp(Reason::UnknownEnd),
            Next::Once | Next::Yes => {}
        }
        if verdict.scope != Scope::Key {
            self.spend_model(&target);
        }
        let is_ruled = self.detours.on.contains_key(&kind);
        if kind == Kind::ContextLength && !is_ruled {
            self.spend_name(target.model());
        }
        self.next(admission, now)
    }

    /// Whether another target could still be asked, should the attempt that was last named come to no answer. `admits`
    /// says what a target's breakers say.
    pub fn has_others(&self, admits: impl Fn(&Target) -> bool) -> bool {
        let may_go_on = self.attempts + 1 < self.limits.max_attempts
            && (self.unknown_end == Chance::Left || self.limits.resend_unknown);
        let visited = self.visiting.and_then(|at| self.targets.get(at));
        let mut left = self.targets.iter().zip(&self.spent);
        may_go_on
            && left.any(|(target, spent)| {
                let is_other = visited.is_none_or(|visited| !visited.is_same_model(target));
                !spent && is_other && admits(target)
            })
    }

    /// Attempts that got a verdict. A replaced connection is none.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether a retry was left out since the calls' common budget was spent.
    pub fn is_retry_denied(&self) -> bool {
        self.retry_denied
    }

    /// What is left of the call's budget.
    pub fn remaining(&self, now: Tick) -> Duration {
        self.limits.budget.saturating_sub(now.since(self.started))
    }

    /// How long the call could still wait for one target.
    pub fn patience(&self, now: Tick) -> Duration {
        self.remaining(now).min(self.limits.max_wait)
    }

    /// The shortest wait among the targets that did not admit when the last step was looked for.
    pub fn soonest(&self) -> Option<Duration> {
        self.soonest
    }

    /// The target at an index that a step named.
    pub fn target(&self, at: usize) -> Option<&Target> {
        self.targets.get(at)
    }

    /// The wait until a hold is over, and a little more: those who wait for it shall not all come at once.
    fn sit_out(&mut self, hold: Duration, now: Tick) -> Option<Duration> {
        if hold > self.limits.max_wait || hold >= self.remaining(now) {
            return None;
        }
        let longer = self.jitter.lengthened(hold);
        let wait = if longer < self.remaining(now) {
            longer
        } else {
            hold
        };
        Some(wait.max(SHORTEST_WAIT))
    }

    fn visit(&mut self, at: usize) -> Step {
        self.spend(at);
        self.visiting = Some(at);
        self.retries = 0;
        self.replacement = Chance::Left;
        Step::Try(at)
    }

    /// The target is not visited any more, wherever it stands.
    fn spend(&mut self, at: usize) {
        if let Some(visited) = self.targets.get(at) {
            for (target, spent) in self.targets.iter().zip(&mut self.spent) {
                *spent |= target == visited;
            }
        }
    }

    /// What is too long for a model is too long for it everywhere.
    fn spend_name(&mut self, model: &str) {
        for (target, spent) in self.targets.iter().zip(&mut self.spent) {
            *spent |= target.model() == model;
        }
    }

    /// What ails one model is not mended by another key to it.
    fn spend_model(&mut self, failed: &Target) {
        for (target, spent) in self.targets.iter().zip(&mut self.spent) {
            *spent |= target.is_same_model(failed);
        }
    }
}

fn sooner(known: Option<Duration>, wait: Duration) -> Option<Duration> {
    Some(known.map_or(wait, |known| known.min(wait)))
}

#[cfg(test)]
mod tests;
