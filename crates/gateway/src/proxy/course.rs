//! `Course`: one call's attempts, one after the other, as its plan has them.

mod attempt;
mod hedge;

use std::sync::Arc;
use std::time::Duration;

use fuseline_core::{Kind, Reason as Refused, Scope, Tick};
use fuseline_llm::{Attempt, Evidence, Plan, Reason, Standing, Step, Tokens, Verdict};

use super::Proxy;
use super::cache::Kept;
use super::client::{Received, Reuse};
use super::context::Context;
use super::driven::Driven;
use super::exchange::{Answer, Came, Flow};
use super::exhausted::{Exhausted, Left};
use super::ingress::Call;
use super::outage::OURS;
use super::queue::Receipt;
use super::refusal::{Cause, Refusal};
use super::roster::Seat;
use super::way::{NO_ROOM, Way, admit};

/// How a call ended.
pub(crate) enum Ending {
    /// The caller gets this as it comes; the attempt goes on with it.
    Opened(Answer<Flow>, Box<Driven>, Duration),
    /// The caller gets this.
    Answered(Answer<Option<Received>>, Repeating),
    /// The caller gets an answer of the past, which is so old.
    Recalled(Kept, Duration),
    /// The caller gets no answer yet: his call waits.
    Queued(Receipt),
    /// The caller gets an answer of ours.
    Refused(Refusal),
}

/// Whether it is of use to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeating {
    /// The answer says itself what it is.
    Unsaid,
    /// It was repeated until nothing was left, or a quota is spent.
    Useless,
}

/// One call on its way.
pub(crate) struct Course<'c> {
    proxy: &'c Proxy,
    call: &'c Call,
    context: &'c mut Context,
    ways: Vec<Way<'c>>,
    plan: Plan,
    exhausted: Exhausted<'c>,
    /// The last whole answer, and the index of the way by which it came.
    kept: Option<(usize, Answer<Option<Received>>)>,
    /// The status of the last failure.
    last: Option<u16>,
    is_denial_told: bool,
    /// Its budget is the caller's own.
    is_hurried: bool,
    /// Of the next attempt's connection.
    reuse: Reuse,
}

impl<'c> Course<'c> {
    pub(crate) fn new(proxy: &'c Proxy, call: &'c Call, context: &'c mut Context) -> Self {
        let now = context.now();
        let (ways, detours) = proxy.ways(call, context, now);
        let targets = ways.iter().map(|way| way.aim.target.clone()).collect();
        let limits = proxy.limits_over(call, &ways);
        let is_hurried = limits.budget == call.budget;
        let mut plan = Plan::new(targets, limits, proxy.seed(), now).with_detours(detours);
        if let Some(roster) = proxy.roster(call) {
            plan = plan.with_retry_budget(Arc::clone(&roster.retries));
        }
        if let Some(why) = call.replay.once() {
            context.because(why);
        }
        Self {
            proxy,
            call,
            context,
            ways,
            plan,
            exhausted: Exhausted::new(proxy, call),
            kept: None,
            last: None,
            is_denial_told: false,
            is_hurried,
            reuse: Reuse::Allowed,
        }
    }

    /// Takes step after step until there is an answer.
    pub(crate) async fn run(&mut self) -> Ending {
        let now = self.context.now();
        let mut step = self.next(now);
        let mut visit: Option<Box<Driven>> = None;
        loop {
            let begun = match step {
                Step::Try(at) => self.begin(at),
                Step::RetryAfter { target, delay } => self.again(target, delay, visit.take()).await,
                Step::Wait(wait) => Err(self.sit_out(wait).await),
                Step::GiveUp(reason) => match self.give_up(reason).await {
                    Ok(ending) => return ending,
                    Err(step) => Err(step),
                },
            };
            let (at, attempt) = match begun {
                Ok(begun) => begun,
                Err(next) => {
                    step = next;
                    continue;
                }
            };
            let (at, mut attempt, came) = match self.attempt(at, attempt).await {
                Ok(done) => done,
                Err(refusal) => return Ending::Refused(refusal),
            };
            let now = self.context.now();
            let verdict = match came {
                Came::Opened(answer) => {
                    self.prove(at);
                    self.time_stream(at, &answer.rest, now);
                    self.is_ours(at, None, now);
                    return Ending::Opened(answer, attempt, self.plan.patience(now));
                }
                Came::Answered(answer, verdict) => {
                    self.context.used(answer.usage);
                    self.kept = Some((at, answer));
                    verdict
                }
                Came::Nothing(verdict) => verdict,
            };
            let standing = self.standing(at, &attempt, now);
            if self.plan.replaces_connection(&verdict, standing, now) {
                self.context.replaced();
                self.reuse = attempt.reuse;
            } else {
                self.note(at, &verdict);
            }
            if verdict.is_success() {
                self.prove(at);
            }
            self.time_answer(at, &attempt, now);
            if self.is_ours(at, Some(&verdict.evidence), now) && standing == Standing::Probe {
                attempt.acquit();
            }
            step = self.plan.after(
                &verdict,
                standing,
                |target| admit(&mut self.ways, self.context, target, now),
                now,
            );
            attempt.settle(step, self.plan.patience(now), now);
            self.tell_denied_retry();
            // Only a retry goes on under the same permit and in the same place.
            visit = matches!(step, Step::RetryAfter { .. }).then(|| self.doubted(at, attempt));
        }
    }

    /// How the attempt stands. Where others have failed and are being repeated, of which the breakers do not know yet, it
    /// may not be repeated as well: a crowd in an outage would ask twice each before the circuit opens.
    fn standing(&self, at: usize, attempt: &Driven, now: Tick) -> Standing {
        let standing = attempt.standing(now);
        let is_doubtful = || {
            let way = self.ways.get(at)?;
            let own = u32::from(attempt.doubt.is_some());
            let others = way.seat.as_ref()?.doubts().saturating_sub(own);
            Some(others > 0 && way.aim.scopes.as_ref()?.trips_with(others + 1, now))
        };
        if standing == Standing::Current && is_doubtful() == Some(true) {
            Standing::Doubtful
        } else {
            standing
        }
    }

    fn prove(&self, at: usize) {
        if let Some(seat) = self.ways.get(at).and_then(|way| way.seat.as_ref()) {
            seat.prove();
        }
    }

    /// Its failure is not known to the breakers before it has been repeated.
    fn doubted(&self, at: usize, mut attempt: Box<Driven>) -> Box<Driven> {
        let seat = self.ways.get(at).and_then(|way| way.seat.as_ref());
        attempt.doubt = seat.map(Seat::doubt);
        attempt
    }

    fn next(&mut self, now: Tick) -> Step {
        self.plan.next(
            |target| admit(&mut self.ways, self.context, target, now),
            now,
        )
    }

    /// Asks the target's breakers for leave; refused, gives the next step.
    fn begin(&mut self, at: usize) -> Result<(usize, Box<Driven>), Step> {
        let now = self.context.now();
        match self.leave(at, now) {
            Some(attempt) => Ok((at, Box::new(attempt))),
            None => Err(self.next(now)),
        }
    }

    /// A place at the target and leave from its breakers.
    fn leave(&mut self, at: usize, now: Tick) -> Option<Driven> {
        let way = self.ways.get(at)?;
        let scopes = way.aim.scopes.as_ref()?;
        let limits = self.limits(&way.aim.timeouts, now);
        let terms = self.terms(way, &limits);
        let place = way.seat.as_ref().map(|seat| seat.take(now));
        let begun = match place {
            Some(None) => None,
            Some(place) => Some((place, Attempt::begin(scopes, terms, now))),
            None => Some((None, Attempt::begin(scopes, terms, now))),
        };
        match begun {
            Some((place, Ok(attempt))) => {
                let clock = self.context.clock().clone();
                return Some(Driven::new(attempt, clock, limits, place));
            }
            Some((_, Err(refused))) => self.ways.get_mut(at)?.refuse(refused, self.context),
            None => self.ways.get_mut(at)?.tell_full(self.context),
        }
        None
    }

    /// Waits and asks whether the attempt may be repeated; denied, gives the next step.
    async fn again(
        &mut self,
        at: usize,
        delay: Duration,
        visit: Option<Box<Driven>>,
    ) -> Result<(usize, Box<Driven>), Step> {
        let Some(mut attempt) = visit else {
            return Err(Step::GiveUp(Reason::Final));
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let now = self.context.now();
        if attempt.again(now).is_ok() {
            if let Some(way) = self.ways.get(at) {
                attempt.limits = self.limits(&way.aim.timeouts, now);
            }
            return Ok((at, attempt));
        }
        let next = self.next(now);
        attempt.settle(next, self.plan.patience(now), now);
        Err(next)
    }

    /// Waits for a held key, and gives the next step.
    async fn sit_out(&mut self, wait: Duration) -> Step {
        tokio::time::sleep(wait).await;
        for way in &mut self.ways {
            way.refused
                .take_if(|refused| refused.rejection.reason == Refused::Held);
        }
        let now = self.context.now();
        self.next(now)
    }

    fn note(&mut self, at: usize, verdict: &Verdict) {
        self.last = verdict.evidence.status();
        let Some(way) = self.ways.get(at) else { return };
        self.context
            .ended_at(&way.aim.target, verdict.kind, verdict.evidence.status());
        if let Some(kind) = verdict.kind {
            self.context.failed(way.to_string(), kind, verdict);
            if kind == Kind::NotFound
                && let Ok(address) = way.upstream.address(self.call, way.model, way.key)
            {
                self.context.not_found_at(address);
            }
        }
        if verdict.is_outcome_unknown() {
            let tokens = || Tokens::estimate(&self.call.body);
            let dollars = way.price.map_or(0.0, |price| price.of(tokens()));
            self.proxy.metrics().abandoned(dollars);
        }
    }

    /// Says once that there would have been another attempt, had others not used the retries up.
    fn tell_denied_retry(&mut self) {
        if self.plan.is_retry_denied() && !std::mem::replace(&mut self.is_denial_told, true) {
            self.context
                .because("no retry, since the route's retry budget is spent");
        }
    }

    /// Whether no provider can be reached, so that the failures are our own.
    fn is_ours(&mut self, at: usize, evidence: Option<&Evidence>, now: Tick) -> bool {
        let Some(way) = self.ways.get(at) else {
            return false;
        };
        let provider = way.aim.target.provider();
        let stands = self.proxy.lasting.outage.note(provider, evidence, now);
        if stands && !self.context.why().contains(OURS) {
            self.context.because(OURS);
        }
        stands
    }

    /// No further attempt: what was answered last, or why nobody was asked. Unless something is left for when every
    /// target is out: then the step that it leads to.
    async fn give_up(&mut self, reason: Reason) -> Result<Ending, Step> {
        let Self {
            exhausted,
            plan,
            ways,
            context,
            ..
        } = self;
        match exhausted.next(reason, plan, ways, context).await {
            Some(Left::Step(step)) => Err(step),
            Some(Left::Recalled(kept, age)) => Ok(Ending::Recalled(kept, age)),
            Some(Left::Queued(receipt)) => Ok(Ending::Queued(receipt)),
            None => Ok(self.end(reason)),
        }
    }

    fn end(&mut self, reason: Reason) -> Ending {
        let repeated = self.plan.attempts() > 1 && reason != Reason::Final;
        if let Some((at, answer)) = self.kept.take() {
            if let Some(way) = self.ways.get(at) {
                self.context.answered(way);
            }
            return Ending::Answered(
                answer,
                if repeated || self.context.is_spent() {
                    Repeating::Useless
                } else {
                    Repeating::Unsaid
                },
            );
        }
        if self.plan.attempts() > 0 {
            let why = self.context.why();
            if self.last.is_some_and(|status| (300..400).contains(&status)) {
                return Ending::Refused(Refusal::redirected(why));
            }
            return Ending::Refused(Refusal::exhausted(reason.as_str(), why));
        }
        self.refused()
    }

    fn refused(&mut self) -> Ending {
        if self.proxy.lasting.outage.stands() {
            self.context.because(OURS);
        }
        let refusals = || self.ways.iter().filter_map(|way| way.refused.as_ref());
        if let Some(first) = self.ways.first() {
            self.context.refused(first);
        }
        let about_keys = refusals().all(|refused| refused.name.scope() == Scope::Key);
        let cause = if about_keys && refusals().next().is_some() {
            Cause::RateLimited
        } else {
            Cause::Open
        };
        let told = refusals()
            .map(|refused| refused.rejection.retry_after)
            .min();
        // What they said before a wait is out of date.
        let soonest = self.plan.soonest();
        let wait = soonest
            .filter(|_| self.exhausted.has_waited())
            .or(told)
            .unwrap_or(NO_ROOM);
        let model = self.call.facts.model();
        let what = model.map_or_else(
            || "this path".to_owned(),
            |model| format!("model `{model}`"),
        );
        Ending::Refused(Refusal::circuit_open(
            cause,
            &what,
            self.context.why(),
            wait,
        ))
    }
}
