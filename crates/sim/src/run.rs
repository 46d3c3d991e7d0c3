//! `Run`: one outage, played against one subject.
//!
//! Ten minutes of health, the incident, a quarter of an hour of health. Calls are made as the gateway makes them: leave from
//! the breaker, one retry where the failure allows it, then the next target, which answers well. Who is refused goes there
//! at once. Chance belongs to the call and not to the subject: all subjects meet the same calls and the same luck.

mod replica;

use core::time::Duration;

use fuseline_core::{Count, Failure, Kind, Outcome, Permit, Tick};

use crate::agenda::Agenda;
use crate::chance::chance;
use crate::outage::{Answer, FIRST_TOKEN};
use crate::traffic::Arrival;
use crate::{Outage, Subject, Traffic};
use replica::Replica;

/// Health before the incident.
const LEAD: Duration = Duration::from_secs(600);
/// Health after it.
const TAIL: Duration = Duration::from_secs(900);

/// One outage.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Run<'a> {
    /// Who calls, beginning anywhere in it.
    pub traffic: &'a Traffic,
    /// What happens.
    pub outage: Outage,
    /// For how long.
    pub incident: Duration,
    /// Gateways that share the calls, each with a breaker of its own; at least 1.
    pub replicas: usize,
    /// What all chance follows from.
    pub seed: u64,
}

/// What came of a run. Calls of the incident are those that began in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// Calls of the incident.
    pub calls: u64,
    /// Attempts sent in the incident that failed.
    pub wasted: u64,
    /// What callers of the incident waited longer than a healthy provider would have let them; a broken answer is all lost.
    pub lost: Duration,
    /// Calls of the incident whose answer broke off before the caller's eyes.
    pub broken: u64,
    /// Calls refused in the incident that the provider would have answered well: what a caller without a second target
    /// pays.
    pub missed: u64,
    /// Calls in health.
    pub healthy: u64,
    /// Calls in health that were refused, but for those of `lagging`.
    pub wrong: u64,
    /// Calls refused after the end of the incident, before the breaker had closed.
    pub lagging: u64,
    /// How often a breaker opened from closed.
    pub opened: u64,
    /// From the beginning of the incident until the last replica had opened.
    pub detected: Option<Duration>,
    /// From its end until the last replica had closed; zero where all were closed; none where nothing was detected.
    pub recovered: Option<Duration>,
}

impl Run<'_> {
    /// Plays it.
    pub fn play(&self, subject: &Subject) -> Measures {
        let mut stage = Stage::new(self, subject);
        let place = fastrand::Rng::with_seed(self.seed).usize(0..self.traffic.len().max(1));
        for arrival in self.traffic.from(place) {
            if arrival.at >= stage.horizon {
                break;
            }
            stage.pass(arrival.at);
            stage.arrive(arrival);
        }
        stage.pass(Tick::MAX);
        stage.finish()
    }
}

struct Stage<'r> {
    run: &'r Run<'r>,
    subject: &'r Subject,
    replicas: Vec<Replica>,
    agenda: Agenda<Step>,
    seen: Measures,
    arrived: u64,
    begin: Tick,
    end: Tick,
    horizon: Tick,
}

struct Call {
    number: u64,
    began: Tick,
    tokens: u32,
    retries: u64,
}

enum Step {
    /// An attempt that was sent then has come to this.
    Ended(Call, Permit, Answer, Tick),
    /// The retry of a call; under the same permit, where one stands for the whole call.
    Again(Call, Option<Permit>),
}

impl<'r> Stage<'r> {
    fn new(run: &'r Run<'r>, subject: &'r Subject) -> Self {
        let replicas = 0..run.replicas.max(1) as u64;
        let replica = |number| Replica::new(subject.policy.clone(), run.seed.wrapping_add(number));
        let begin = Tick::ZERO + LEAD;
        let end = begin + run.incident;
        Self {
            run,
            subject,
            replicas: replicas.map(replica).collect(),
            agenda: Agenda::new(),
            seen: Measures::default(),
            arrived: 0,
            begin,
            end,
            horizon: end + TAIL,
        }
    }

    /// Lets everything happen that is due by now.
    fn pass(&mut self, now: Tick) {
        while let Some((at, step)) = self.agenda.due(now) {
            match step {
                Step::Ended(call, permit, answer, sent) => {
                    self.ended(call, permit, answer, sent, at);
                }
                Step::Again(call, Some(permit)) if permit.is_current(at) => {
                    self.send(call, permit, at);
                }
                Step::Again(call, Some(permit)) => {
                    permit.cancel(at);
                    self.loses(&call, at.since(call.began));
                }
                Step::Again(call, None) => self.ask(call, at),
            }
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let call = Call {
            number: self.arrived,
            began: arrival.at,
            tokens: arrival.tokens,
            retries: 0,
        };
        self.arrived += 1;
        if self.is_incident(arrival.at) {
            self.seen.calls += 1;
        } else {
            self.seen.healthy += 1;
        }
        self.ask(call, arrival.at);
    }

    /// Asks the breaker for leave.
    fn ask(&mut self, call: Call, now: Tick) {
        let Some(replica) = self.replica(&call) else {
            return;
        };
        let leave = replica.breaker.try_acquire_owned(FIRST_TOKEN, now);
        replica.look();
        match leave {
            Ok(permit) => self.send(call, permit, now),
            Err(_) => self.refused(&call, now),
        }
    }

    /// What this attempt of a call meets, whoever asks.
    fn answer(&self, call: &Call, retries: u64, now: Tick) -> Answer {
        let mut chance = chance(&[self.run.seed, call.number, retries]);
        let trouble = self.trouble(now);
        let answer = self
            .run
            .outage
            .answer(trouble, self.run.seed, call.tokens, &mut chance);
        match self.subject.limit {
            Some(limit) if answer.took > limit => answer.failed(Kind::Timeout, limit),
            _ => answer,
        }
    }

    fn send(&mut self, call: Call, permit: Permit, now: Tick) {
        let answer = self.answer(&call, call.retries, now);
        let mut settles = answer.took;
        if answer.failure.is_none()
            && let Some(proof) = permit.probe_proof()
        {
            settles = settles.min(answer.first + proof);
        }
        self.agenda
            .add(now + settles, Step::Ended(call, permit, answer, now));
    }

    fn ended(&mut self, mut call: Call, permit: Permit, answer: Answer, sent: Tick, now: Tick) {
        let Some(kind) = answer.failure else {
            self.record(&call, permit, Outcome::success(answer.first), now);
            let waited = sent.since(call.began) + answer.took.saturating_sub(answer.ideal);
            return self.loses(&call, waited);
        };
        if self.is_incident(sent) {
            self.seen.wasted += 1;
        }
        let again = call.retries == 0 && is_retried(kind, &answer) && !permit.is_probe();
        let keeps = again && self.subject.policy.count() == Count::Call;
        let permit = if keeps {
            Some(permit)
        } else {
            let mut failure = Failure::new(kind);
            if let Some(hint) = answer.hint {
                // Longer than a call may wait.
                failure = failure.retry_after(hint).open_now();
            }
            self.record(&call, permit, Outcome::Failure(failure), now);
            None
        };
        if again {
            call.retries += 1;
            let wait = Duration::from_millis(375 + call.number * 97 % 250);
            return self.agenda.add(now + wait, Step::Again(call, permit));
        }
        if answer.is_committed && self.is_incident(call.began) {
            self.seen.broken += 1;
        }
        self.loses(&call, now.since(call.began));
    }

    fn record(&mut self, call: &Call, permit: Permit, outcome: Outcome, now: Tick) {
        let Some(replica) = self.replica(call) else {
            return;
        };
        permit.record(&outcome, now);
        replica.look();
    }

    fn refused(&mut self, call: &Call, now: Tick) {
        self.loses(call, now.since(call.began));
        if self.is_incident(now) {
            let first = self.answer(call, 0, now);
            let is_well = |answer: &Answer| answer.failure.is_none();
            let retried = first.failure.is_some_and(|kind| is_retried(kind, &first));
            if is_well(&first) || retried && is_well(&self.answer(call, 1, now)) {
                self.seen.missed += 1;
            }
            return;
        }
        let end = self.end;
        let is_bumpy = self.run.outage == Outage::Bumps;
        let Some(replica) = self.replica(call) else {
            return;
        };
        let lags = now >= end && !is_bumpy && !replica.has_closed_since(end);
        let count = if lags {
            &mut self.seen.lagging
        } else {
            &mut self.seen.wrong
        };
        *count += 1;
    }

    fn loses(&mut self, call: &Call, waited: Duration) {
        if self.is_incident(call.began) || self.run.outage == Outage::Bumps {
            self.seen.lost += waited;
        }
    }

    /// Whether an incident is under way; bumps are none.
    fn is_incident(&self, at: Tick) -> bool {
        self.run.outage != Outage::Bumps && self.begin <= at && at < self.end
    }

    /// How long the trouble has lasted by now, if there is any.
    fn trouble(&self, now: Tick) -> Option<Duration> {
        if self.run.outage == Outage::Bumps {
            return Some(now.since(Tick::ZERO));
        }
        self.is_incident(now).then(|| now.since(self.begin))
    }

    fn replica(&mut self, call: &Call) -> Option<&mut Replica> {
        let place = call.number % self.replicas.len() as u64;
        self.replicas.get_mut(place as usize)
    }

    fn finish(self) -> Measures {
        let mut seen = self.seen;
        let opened = self.replicas.iter().map(Replica::opened);
        seen.opened = opened.sum();
        if self.run.outage == Outage::Bumps {
            return seen;
        }
        let detected = self
            .replicas
            .iter()
            .map(|replica| replica.detected(self.begin, self.end));
        // None where one of them has not.
        let detected: Option<Vec<_>> = detected.collect();
        seen.detected = detected.and_then(|times| times.into_iter().max());
        if seen.detected.is_some() {
            let recovered = self
                .replicas
                .iter()
                .map(|replica| replica.recovered(self.end, self.horizon));
            seen.recovered = recovered.max();
        }
        seen
    }
}

/// Whether the same target is asked once more.
fn is_retried(kind: Kind, answer: &Answer) -> bool {
    let allows = matches!(kind, Kind::ServerError | Kind::Overloaded | Kind::RateLimit);
    allows && answer.hint.is_none() && !answer.is_committed
}

#[cfg(test)]
mod tests;
