//! `Snapshot`: everything about a breaker at one instant, for people, dashboards and stores. It explains itself.

use core::time::Duration;

use crate::breaker::Breaker;
use crate::event::{FailureNote, Reason, Transition};
use crate::hot::Hot;
use crate::kind::Kind;
use crate::machine::{Machine, Phase};
use crate::policy::Mode;
use crate::rules::Seen;
use crate::scope::{Scope, ScopeName};
use crate::state::State;
use crate::tick::Tick;

/// A breaker at one instant. Taking it has no effect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The name, which tells the scope.
    pub name: ScopeName,
    /// The instant.
    pub at: Tick,
    /// What the breaker does with its decisions.
    pub mode: Mode,
    /// The state as the next operation would find it.
    pub state: State,
    /// When the present state was entered; `closed` and `degraded` are one.
    pub since: Tick,
    /// Counts the states entered (24 bits, wrapping).
    pub generation: u32,
    /// Why a call would be refused, if it would.
    pub reason: Option<Reason>,
    /// When asking again is of use, where it is not now. An `open` whose cooldown is over says zero.
    pub retry_after: Option<Duration>,
    /// Failures with no success between them.
    pub run: u32,
    /// Failures by kind since the last closing, less what successes took back; only kinds with any.
    pub kinds: Vec<(Kind, u32)>,
    /// Every trip rule, with what it observes.
    pub rules: Vec<RuleSnapshot>,
    /// The largest observed/threshold over the armed rules.
    pub pressure: f64,
    /// Probe episodes that failed since the breaker was last closed.
    pub episodes: u32,
    /// Live probes.
    pub live_probes: u32,
    /// Good probes so far, while half-open.
    pub good_probes: u32,
    /// Unsettled permits, where `max_in_flight` is set.
    pub in_flight: u64,
    /// Until when the provider asked this key to wait.
    pub hold_until: Option<Tick>,
    /// Outcomes whose state had passed.
    pub late: u64,
    /// Refused calls by reason.
    pub rejected: [(Reason, u64); Reason::COUNTED.len()],
    /// How often each state was entered, in the order of [`State::ALL`]; `closed` only from another state than
    /// `degraded`.
    pub entered: [u64; State::ALL.len()],
    /// How long it has been open in all; waiting for a probe after the cooldown is a part of it.
    pub open_for: Duration,
    /// Since when it has not been closed, if it opened.
    pub incident_since: Option<Tick>,
    /// The latest counted failures, oldest first, at most five.
    pub last_failures: Vec<FailureNote>,
    /// The transition that led here, with its reasons.
    pub why: Option<Transition>,
}

/// A trip rule and what it observes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleSnapshot {
    /// The rule's name.
    pub rule: &'static str,
    /// Failures, or slow successes, in the window; of `cusum` its sum, rounded up.
    pub hits: u64,
    /// Calls in the window, for rules with a share.
    pub calls: Option<u64>,
    /// What is held against the threshold.
    pub observed: f64,
    /// The threshold.
    pub threshold: f64,
    /// Whether there are calls enough for the share to mean anything.
    pub armed: bool,
}

impl From<Seen> for RuleSnapshot {
    fn from(seen: Seen) -> Self {
        Self {
            rule: seen.rule.as_str(),
            hits: seen.hits,
            calls: seen.calls,
            observed: seen.observed,
            threshold: seen.threshold,
            armed: seen.armed,
        }
    }
}

impl Snapshot {
    /// What it guards.
    pub const fn scope(&self) -> Scope {
        self.name.scope()
    }

    /// Whether so many further failures, with nothing else between them, would meet a rule by which it trips.
    pub fn trips_with(&self, failures: u32) -> bool {
        self.rules.iter().any(|rule| rule.is_met_with(failures))
    }
}

impl RuleSnapshot {
    fn is_met_with(&self, failures: u32) -> bool {
        let failures = f64::from(failures);
        match (self.rule, self.calls) {
            ("slow", _) => false,
            (_, None) => self.observed + failures >= self.threshold,
            (_, Some(calls)) => {
                let share = (self.hits as f64 + failures) / (calls as f64 + failures);
                self.armed && share >= self.threshold
            }
        }
    }
}

impl Breaker {
    /// Everything about this breaker as the next operation would find it.
    pub fn snapshot(&self, now: Tick) -> Snapshot {
        self.0.ask(now, |machine, hot, now| {
            Snapshot::of(self, machine, hot, now)
        })
    }
}

impl Snapshot {
    fn of(breaker: &Breaker, machine: &Machine, hot: &Hot, now: Tick) -> Self {
        let seen = machine.counts.view(&hot.shards, machine.generation, now);
        let (live_probes, good_probes) = match &machine.phase {
            Phase::HalfOpen { leases, successes } => (leases.len() as u32, *successes),
            Phase::Closed { .. } | Phase::Open { .. } | Phase::Forced { .. } => (0, 0),
        };
        let kinds = Kind::ALL
            .into_iter()
            .zip(machine.counts.kinds)
            .filter(|(_, count)| *count > 0);
        let mut places = 0..;
        let rejected = Reason::COUNTED
            .map(|reason| (reason, places.next().map_or(0, |at| hot.rejected_total(at))));
        let mode = machine.policy.mode();
        let refusal = machine.refusal(hot, now).filter(|_| mode == Mode::Enforce);
        Self {
            name: breaker.name().clone(),
            at: now,
            mode,
            state: machine.state_now(hot, now),
            since: machine.since,
            generation: machine.generation.get(),
            reason: refusal.map(|refusal| refusal.reason),
            retry_after: machine
                .retry_after(hot, now)
                .filter(|_| mode == Mode::Enforce),
            run: machine.counts.run,
            kinds: kinds.collect(),
            pressure: seen.iter().map(Seen::pressure).fold(0.0, f64::max),
            rules: seen.into_iter().map(RuleSnapshot::from).collect(),
            episodes: machine.episodes,
            live_probes,
            good_probes,
            in_flight: hot.in_flight(),
            hold_until: hot.held(now).map(|held| now + held.retry_after),
            late: hot.late_total(),
            rejected,
            entered: machine.entered,
            open_for: machine.open_for(now),
            incident_since: machine.incident_since,
            last_failures: machine.last_failures.iter().copied().collect(),
            why: machine.history.back().cloned(),
        }
    }
}
