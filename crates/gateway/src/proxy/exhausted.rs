//! `Exhausted`: what is left to do when every target is out, as the route's `on_exhausted` has it.
//!
//! | step | what it does |
//! |---|---|
//! | a target, a route | the call goes on to targets that it has not been at, under their own breakers and within its own limits; after a route's targets come that route's own steps |
//! | `wait` | waits for the soonest recovery, as often as it takes and `max_wait` allows in all, and asks again |
//! | `cache` | the last good answer to the same request by the same tenant |
//! | `queue` | the call is stored, and sent when a circuit closes |
//!
//! A step that cannot be taken is passed over. Only `cache` and `queue` are left where the call's time or attempts are spent,
//! only `cache` where it may be running somewhere still; nothing is where the last answer is the caller's to mend, or where the
//! call comes from the queue.

use std::collections::VecDeque;
use std::time::Duration;

use fuseline_llm::{Fallback, Operation, Plan, Reason, Step};

use super::Proxy;
use super::cache::Kept;
use super::context::{Answerer, Context};
use super::ingress::{Call, Origin};
use super::queue::Receipt;
use super::way::{Way, admit};
use crate::config::{self, Elsewhere, OnExhausted};

/// The steps that were not taken yet.
pub(crate) struct Exhausted<'c> {
    proxy: &'c Proxy,
    call: &'c Call,
    steps: VecDeque<&'c OnExhausted>,
    waited: Duration,
    max_wait: Duration,
}

/// What a step has brought.
pub(crate) enum Left {
    /// The call goes on.
    Step(Step),
    /// The caller gets this, which is so old.
    Recalled(Kept, Duration),
    /// The caller gets this, and comes back.
    Queued(Receipt),
}

impl<'c> Exhausted<'c> {
    pub(crate) fn new(proxy: &'c Proxy, call: &'c Call) -> Self {
        let route = proxy.route(call);
        let route = route.filter(|_| {
            call.facts.operation() == Operation::Create && call.origin == Origin::Caller
        });
        Self {
            proxy,
            call,
            steps: route
                .iter()
                .flat_map(|route| &route.on_exhausted)
                .filter(|step| call.fallback == Fallback::On || **step == OnExhausted::Wait)
                .collect(),
            waited: Duration::ZERO,
            max_wait: route.map_or(Duration::ZERO, |route| route.max_wait),
        }
    }

    /// Whether somebody was waited for.
    pub(crate) fn has_waited(&self) -> bool {
        !self.waited.is_zero()
    }

    /// The next step that can be taken; none when nothing is left.
    pub(crate) async fn next(
        &mut self,
        reason: Reason,
        plan: &mut Plan,
        ways: &mut Vec<Way<'c>>,
        context: &mut Context,
    ) -> Option<Left> {
        let may_go_on = match reason {
            Reason::Exhausted | Reason::Refused => true,
            Reason::Attempts | Reason::Budget | Reason::UnknownEnd => false,
            _ => return None,
        };
        while let Some(step) = self.steps.front().copied() {
            if may_go_on
                && *step == OnExhausted::Wait
                && let Some(wait) = self.until_recovery(plan, context)
            {
                return Some(Left::Step(Step::Wait(wait)));
            }
            self.steps.pop_front();
            let left = match step {
                OnExhausted::Cache => self.recall(context).await,
                OnExhausted::Elsewhere(elsewhere) if may_go_on => {
                    let further = self.ways_to(elsewhere, ways, context);
                    (!further.is_empty()).then(|| {
                        plan.extend(further.iter().map(|way| way.aim.target.clone()));
                        ways.extend(further);
                        let now = context.now();
                        Left::Step(plan.next(|target| admit(ways, context, target, now), now))
                    })
                }
                OnExhausted::Queue if reason != Reason::UnknownEnd => {
                    let receipt = self.proxy.enqueue(self.call, context).await;
                    receipt.map(Left::Queued)
                }
                OnExhausted::Elsewhere(_) | OnExhausted::Queue | OnExhausted::Wait => None,
            };
            if left.is_some() {
                return left;
            }
        }
        None
    }

    /// How long to wait now. The step stays until the patience is used up: who finds the recovered target busy with
    /// another's probe waits on.
    fn until_recovery(&mut self, plan: &mut Plan, context: &mut Context) -> Option<Duration> {
        let wait = plan.until_recovery(context.now())?;
        let waited = self.waited + wait;
        if waited > self.max_wait {
            return None;
        }
        if !self.has_waited() {
            context.because("waits for the soonest recovery");
        }
        self.waited = waited;
        Some(wait)
    }

    /// The ways to a target, or to a route's, that the call has not been offered yet. With a route come its own steps.
    fn ways_to(
        &mut self,
        elsewhere: &'c Elsewhere,
        known: &[Way<'c>],
        context: &mut Context,
    ) -> Vec<Way<'c>> {
        let targets: &[config::Target] = match elsewhere {
            Elsewhere::Target(target) => std::slice::from_ref(target),
            Elsewhere::Route(model) => {
                let mut routes = self.proxy.config.routes.iter();
                let Some(route) = routes.find(|route| route.model.as_str() == model) else {
                    return Vec::new();
                };
                for step in route.on_exhausted.iter().rev() {
                    self.steps.push_front(step);
                }
                &route.targets
            }
        };
        let now = context.now();
        let targets = targets
            .iter()
            .filter(|target| self.proxy.has_room(self.call, target, context));
        let ways = targets.flat_map(|target| {
            self.proxy
                .ways_to(self.call, target, Answerer::LastResort, now)
        });
        let is_new = |way: &Way<'_>| {
            let mut offered = known.iter().filter(|other| !other.is_aside);
            !offered.any(|other| other.aim.target.is_same_model(&way.aim.target))
        };
        ways.filter(is_new).collect()
    }

    async fn recall(&self, context: &mut Context) -> Option<Left> {
        let slot = self.call.slot.as_ref()?;
        let cache = self.proxy.cache.as_ref()?;
        let recalled = cache.recall(slot, context.now()).await;
        if recalled.is_none() {
            context.because("nothing in the cache");
        }
        let (kept, age) = recalled?;
        Some(Left::Recalled(kept, age))
    }
}
