//! In which order a call's targets come: by the route's strategy, by what is known of them now, and by the request's size.

use fuseline_core::{State, Tick};
use fuseline_llm::{Contender, Fallback, Operation, Strategy, Tokens};

use super::Proxy;
use super::context::Context;
use super::ingress::Call;
use super::roster::{Roster, Stop};
use super::way::NO_MODEL;
use crate::config::Target;

impl Proxy {
    /// The indexes of the stops that this call may go to, in its order: the roster's own as the strategy has them, without
    /// those that its request does not fit into, and then those that only a rule leads to.
    pub(super) fn order(
        &self,
        call: &Call,
        roster: &Roster,
        context: &mut Context,
        now: Tick,
    ) -> Vec<usize> {
        let mut order: Vec<usize> = if call.facts.operation() == Operation::Other {
            (0..roster.own).collect()
        } else {
            let has_context = |stop: &Stop| self.room(call, &stop.target).is_some();
            let has_contexts = roster.stops.iter().any(has_context);
            let tokens = if has_contexts || roster.strategy == Strategy::Cheapest {
                Tokens::estimate(&call.body)
            } else {
                Tokens::default()
            };
            let ranked = self.ranked(call, roster, tokens, now);
            if has_contexts {
                self.with_room(call, roster, ranked, tokens, context)
            } else {
                ranked
            }
        };
        if call.fallback == Fallback::Off {
            order.truncate(1);
        } else {
            order.extend(roster.own..roster.stops.len());
        }
        order
    }

    fn ranked(&self, call: &Call, roster: &Roster, tokens: Tokens, now: Tick) -> Vec<usize> {
        if roster.strategy == Strategy::Priority {
            return (0..roster.own).collect();
        }
        let shape = call.facts.shape();
        let contender = |stop: &Stop| Contender {
            cost: stop.target.price.map(|price| price.of(tokens)),
            weight: stop.target.weight.unwrap_or(1),
            load: stop.seat.load(shape, now),
            is_degraded: self.is_degraded(call, stop, now),
        };
        let own = roster.stops.iter().take(roster.own);
        let contenders: Vec<_> = own.map(contender).collect();
        roster.strategy.rank(&contenders, self.seed())
    }

    /// Whether a target is under pressure. One that was left alone for as long as its cooldown is asked again in its own
    /// place: without a call it could not show that it is well.
    fn is_degraded(&self, call: &Call, stop: &Stop, now: Tick) -> bool {
        let provider = stop.target.provider.as_str();
        let model = model_at(call, &stop.target);
        let state = self.guards.state_of_model(provider, model, now);
        state == State::Degraded && {
            let policy = self.config.policy(provider, Some(model));
            stop.seat.left_alone(now) < policy.cooldown()
        }
    }

    /// The tokens that a target takes at once, as far as that is known.
    pub(super) fn room(&self, call: &Call, target: &Target) -> Option<u64> {
        let context = self.config.context(target, model_at(call, target));
        context.map(u64::from)
    }

    /// Whether a target has room for the request, as far as that is known; if not, the caller is told.
    pub(super) fn has_room(&self, call: &Call, target: &Target, context: &mut Context) -> bool {
        let room = self.room(call, target);
        let needed = room.map_or(0, |_| Tokens::estimate(&call.body).needed());
        let fits = room.is_none_or(|room| needed <= room);
        if let Some(room) = room.filter(|_| !fits) {
            tell_too_small(call, target, needed, room, context);
        }
        fits
    }

    /// The stops that have room for the request. Where none has, it is the providers' to say so: it is an estimate.
    fn with_room(
        &self,
        call: &Call,
        roster: &Roster,
        ranked: Vec<usize>,
        tokens: Tokens,
        context: &mut Context,
    ) -> Vec<usize> {
        let needed = tokens.needed();
        let (mut fitting, mut left_out) = (Vec::new(), Vec::new());
        for &at in &ranked {
            let target = roster.stops.get(at).map(|stop| &stop.target);
            let room = target.and_then(|target| Some((target, self.room(call, target)?)));
            match room {
                Some((target, room)) if room < needed => left_out.push((target, room)),
                _ => fitting.push(at),
            }
        }
        if fitting.is_empty() {
            return ranked;
        }
        for (target, room) in left_out {
            tell_too_small(call, target, needed, room, context);
        }
        fitting
    }
}

fn tell_too_small(call: &Call, target: &Target, needed: u64, room: u64, context: &mut Context) {
    let (provider, model) = (&target.provider, model_at(call, target));
    context.because(format_args!(
        "{provider}/{model}: about {needed} tokens do not fit into {room}"
    ));
}

/// The model's name as a target's provider sees it.
pub(super) fn model_at<'c>(call: &'c Call, target: &'c Target) -> &'c str {
    let written = target.model.as_deref();
    written.or_else(|| call.facts.model()).unwrap_or(NO_MODEL)
}
