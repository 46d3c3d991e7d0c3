//! `Course`: one call's attempts, one after the other, as its plan has them.

use std::time::Duration;

use fuseline_core::{Count, Policy, Reason as Refused, Scope, Tick};
use fuseline_llm::{Attempt, Evidence, Plan, Reason, Standing, Step, Terms, Verdict};
use hyper::body::Incoming;

use super::Proxy;
use super::context::Context;
use super::driven::Driven;
use super::exchange::{Answer, Came, Exchange, Flow};
use super::ingress::Call;
use super::limits::Limits;
use super::outage::OURS;
use super::refusal::{Cause, Refusal};
use super::watched::Judge;
use super::way::{NO_ROOM, Way, admit};
use crate::config::Timeouts;

/// For how many seconds an SDK waits between bytes.
const READ_TIMEOUT: &str = "x-stainless-read-timeout";

/// How a call ended.
pub(crate) enum Ending {
    /// The caller gets this as it comes; the attempt goes on with it.
    Opened(Answer<Flow>, Box<Driven>, Duration),
    /// The caller gets this.
    Answered(Answer<Option<Incoming>>, Repeating),
    /// The caller gets an answer of ours.
    Refused(Refusal),
}

/// Whether it is of use to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeating {
    /// The answer says itself what it is.
    Unsaid,
    /// It was repeated until nothing was left.
    Useless,
}

/// One call on its way.
pub(crate) struct Course<'c> {
    proxy: &'c Proxy,
    call: &'c Call,
    context: &'c mut Context,
    ways: Vec<Way<'c>>,
    plan: Plan,
    /// The last whole answer, and the index of the way by which it came.
    kept: Option<(usize, Answer<Option<Incoming>>)>,
    /// The status of the last failure.
    last: Option<u16>,
}

impl<'c> Course<'c> {
    pub(crate) fn new(proxy: &'c Proxy, call: &'c Call, context: &'c mut Context) -> Self {
        let now = context.now();
        let ways = proxy.ways(call, now);
        let targets = ways.iter().map(|way| way.target.clone()).collect();
        let limits = proxy.limits_over(call, &ways);
        let plan = Plan::new(targets, limits, proxy.seed(), now);
        if !proxy.may_repeat(call) {
            context.because("the request is longer than replay_limit, so it is sent once");
        }
        Self {
            proxy,
            call,
            context,
            ways,
            plan,
            kept: None,
            last: None,
        }
    }

    /// Takes step after step until there is an answer.
    pub(crate) async fn run(mut self) -> Ending {
        let now = self.context.now();
        let mut step = self.next(now);
        let mut visit: Option<Box<Driven>> = None;
        loop {
            let begun = match step {
                Step::Try(at) => self.begin(at),
                Step::RetryAfter { target, delay } => self.again(target, delay, visit.take()).await,
                Step::Wait(wait) => Err(self.sit_out(wait).await),
                Step::GiveUp(reason) => return self.give_up(reason),
            };
            let (at, mut attempt) = match begun {
                Ok(begun) => begun,
                Err(next) => {
                    step = next;
                    continue;
                }
            };
            let came = match self.attempt(at, &mut attempt).await {
                Ok(came) => came,
                Err(refusal) => return Ending::Refused(refusal),
            };
            let now = self.context.now();
            let verdict = match came {
                Came::Opened(answer) => {
                    self.is_ours(at, None, now);
                    return Ending::Opened(answer, attempt, self.plan.patience(now));
                }
                Came::Answered(answer, verdict) => {
                    self.kept = Some((at, answer));
                    verdict
                }
                Came::Nothing(verdict) => verdict,
            };
            self.note(at, &verdict);
            let standing = attempt.standing(now);
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
            visit = Some(attempt);
        }
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
        let begun = self.ways.get(at).and_then(|way| {
            Some(Attempt::begin(
                way.scopes.as_ref()?,
                self.terms(way, now),
                now,
            ))
        });
        match begun {
            Some(Ok(attempt)) => {
                return Ok((
                    at,
                    Box::new(Driven::new(attempt, self.context.clock().clone())),
                ));
            }
            Some(Err(refused)) => {
                self.context.because(&refused);
                if let Some(way) = self.ways.get_mut(at) {
                    way.refused = Some(refused);
                }
            }
            None => {}
        }
        Err(self.next(now))
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

    async fn attempt(&mut self, at: usize, attempt: &mut Driven) -> Result<Came, Refusal> {
        let Some(way) = self.ways.get(at) else {
            return Err(Refusal::unreadable());
        };
        self.context.attempt(&way.target, way.answerer);
        let request = way
            .upstream
            .request(self.call, way.model.as_deref(), way.key)
            .map_err(|_| Refusal::unreadable())?;
        let now = self.context.now();
        let timeouts = self.timeouts(way);
        self.context.caller().set_write_idle(timeouts.write_idle);
        let limits = self.limits(&timeouts, now);
        let pool = self.proxy.clients.with_connect_timeout(timeouts.connect);
        tracing::debug!(request_id = self.context.id(), target = %way, host = request.uri().host(), path = request.uri().path(), "attempt");
        let exchange = Exchange {
            facts: &self.call.facts,
            judge: Judge {
                classifier: self.proxy.classifier().clone(),
                rules: way.upstream.rules.clone(),
                limits,
            },
            heartbeat: self.proxy.config.heartbeats.of(self.call.facts.protocol()),
        };
        Ok(exchange.run(attempt, &pool, request).await)
    }

    fn terms(&self, way: &Way<'_>, now: Tick) -> Terms {
        let policy = way.scopes.as_ref().map(|scopes| &scopes.policies().model);
        let shape = self.call.facts.shape();
        Terms {
            operation: self.call.facts.operation(),
            shape,
            count: policy.map_or(Count::Call, Policy::count),
            limit: self.limits(&self.timeouts(way), now).silence(shape),
            probe_proof: policy.map_or(Duration::ZERO, Policy::probe_proof),
            cancel_counts_after: self.proxy.config.limits.cancel_counts_after,
        }
    }

    fn timeouts(&self, way: &Way<'_>) -> Timeouts {
        self.proxy.timeouts(self.call, &way.target)
    }

    fn limits(&self, timeouts: &Timeouts, now: Tick) -> Limits {
        let route = self.proxy.route(self.call);
        let read_timeout = self.call.headers.get(READ_TIMEOUT);
        Limits::new(
            timeouts,
            self.proxy.config.limits.cancel_counts_after,
            route.map_or(Duration::ZERO, |route| route.hold_back),
            self.plan.remaining(now),
            read_timeout.and_then(|seconds| seconds.to_str().ok()),
        )
    }

    fn note(&mut self, at: usize, verdict: &Verdict) {
        self.context.ended(verdict.kind);
        self.last = verdict.evidence.status();
        if let (Some(kind), Some(way)) = (verdict.kind, self.ways.get(at)) {
            self.context
                .because(format_args!("{way}: {kind} ({})", verdict.evidence));
        }
    }

    /// Whether no provider can be reached, so that the failures are our own.
    fn is_ours(&mut self, at: usize, evidence: Option<&Evidence>, now: Tick) -> bool {
        let Some(way) = self.ways.get(at) else {
            return false;
        };
        let provider = way.target.provider();
        let stands = self.proxy.outage.note(provider, evidence, now);
        if stands && !self.context.why().contains(OURS) {
            self.context.because(OURS);
        }
        stands
    }

    /// No further attempt: what was answered last, or why nobody was asked.
    fn give_up(mut self, reason: Reason) -> Ending {
        let repeated = self.plan.attempts() > 1 && reason != Reason::Final;
        if let Some((at, answer)) = self.kept.take() {
            if let Some(way) = self.ways.get(at) {
                self.context.answered(&way.target, way.answerer);
            }
            return Ending::Answered(
                answer,
                if repeated {
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

    fn refused(self) -> Ending {
        if self.proxy.outage.stands() {
            self.context.because(OURS);
        }
        let refusals = || self.ways.iter().filter_map(|way| way.refused.as_ref());
        if let Some(first) = self.ways.first() {
            self.context.refused(&first.target);
        }
        let about_keys = refusals().all(|refused| refused.name.scope() == Scope::Key);
        let cause = if about_keys && refusals().next().is_some() {
            Cause::RateLimited
        } else {
            Cause::Open
        };
        let wait = refusals()
            .map(|refused| refused.rejection.retry_after)
            .min()
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
