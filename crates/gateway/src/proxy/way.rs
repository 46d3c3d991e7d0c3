//! `Way`: one candidate of a call, with all that is needed to go there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fuseline_core::{Kind, Reason, ScopedRejection, Tick};
use fuseline_llm::{Admission, Detours, OnFailure, Owner, Price, Target, credential_id};
use http::header::HeaderValue;
use secrecy::ExposeSecret as _;

use super::aim::{Aim, Keyed};
use super::context::{Answerer, Context, header_text};
use super::headers::CREDENTIALS;
use super::ingress::{Call, Origin};
use super::order::model_at;
use super::roster::{Roster, Seat, Stop};
use super::upstream::{Keys, Upstream, key_in};
use super::{BuildError, Proxy};
use crate::config::{self, Credential, Provider};

/// Under this name stand the calls that no model is named in.
pub(super) const NO_MODEL: &str = "-";

/// Worth asking again, where the registry had no room for a breaker.
pub(super) const NO_ROOM: Duration = Duration::from_secs(1);

/// A target, its breakers, and how it is called.
pub(crate) struct Way<'p> {
    pub(crate) aim: Arc<Aim>,
    pub(crate) upstream: &'p Upstream,
    /// None = the caller's own.
    pub(crate) key: Option<&'p HeaderValue>,
    /// The model to put in the place of the caller's.
    pub(crate) model: Option<&'p str>,
    pub(crate) answerer: Answerer,
    /// What its breakers said when they turned the call away.
    pub(crate) refused: Option<ScopedRejection>,
    /// What the target costs, where that is written.
    pub(crate) price: Option<Price>,
    /// How the target is doing, where it stands in the route's roster.
    pub(crate) seat: Option<Arc<Seat>>,
    /// Only a rule leads there.
    pub(crate) is_aside: bool,
    /// Whether the caller has been told that all its places are taken.
    is_told_full: bool,
}

impl Call {
    /// A call that comes from the queue has no key of its caller's any more.
    fn may_go(&self, way: &Way<'_>) -> bool {
        self.origin == Origin::Caller || way.key.is_some()
    }
}

impl Way<'_> {
    /// Whether its breakers would let a call pass now.
    pub(crate) fn admits(&self, now: Tick) -> bool {
        let says = self
            .aim
            .scopes
            .as_ref()
            .map(|scopes| Admission::of(scopes, now));
        matches!(says, Some(Admission::Ready | Admission::Probe))
    }
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.aim.target;
        write!(f, "{}/{}", target.provider(), target.model())
    }
}

impl Way<'_> {
    /// Its breakers turn the call away.
    pub(super) fn refuse(&mut self, refused: ScopedRejection, context: &mut Context) {
        context.because(&refused);
        let rejection = &refused.rejection;
        context.skipped(self.to_string(), rejection.reason, rejection.retry_after);
        self.refused = Some(refused);
    }

    /// Whether all places at the target are taken.
    fn is_full(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.is_full())
    }

    /// All places at the target are taken; said once.
    pub(super) fn tell_full(&mut self, context: &mut Context) {
        if !std::mem::replace(&mut self.is_told_full, true) {
            context.because(format_args!("{self}: max_in_flight calls under way"));
            context.skipped(self.to_string(), Reason::Saturated, NO_ROOM);
        }
    }
}

impl Proxy {
    /// The candidates of a call in their order, of each target first all its keys, and the rules for its failures.
    pub(super) fn ways(
        &self,
        call: &Call,
        context: &mut Context,
        now: Tick,
    ) -> (Vec<Way<'_>>, Detours) {
        let Some(roster) = self.roster(call) else {
            return (Vec::new(), Detours::default());
        };
        let mut ways: Vec<Way<'_>> = Vec::new();
        let mut detours = Detours::default();
        let mut by_stop: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in self.order(call, roster, context, now) {
            let Some(stop) = roster.stops.get(at) else {
                continue;
            };
            let answerer = if ways.is_empty() {
                Answerer::First
            } else {
                Answerer::Fallback
            };
            let ways_there = self.ways_at(call, stop, answerer, now);
            for way in ways_there.filter(|way| call.may_go(way)) {
                let known = ways
                    .iter()
                    .position(|other| other.aim.target == way.aim.target);
                let place = known.unwrap_or(ways.len());
                if !roster.on.is_empty() {
                    by_stop.entry(at).or_default().push(place);
                }
                if known.is_none() {
                    detours.contexts.push(self.room(call, &stop.target));
                    ways.push(Way {
                        price: stop.target.price,
                        seat: Some(Arc::clone(&stop.seat)),
                        is_aside: at >= roster.own,
                        ..way
                    });
                }
            }
            if at < roster.own {
                detours.aside = ways.len()..ways.len();
            }
        }
        detours.aside.end = ways.len();
        detours.on = rules(roster, &by_stop);
        (ways, detours)
    }

    /// The ways to a stop of a roster, one for each key.
    fn ways_at<'p>(
        &'p self,
        call: &Call,
        stop: &'p Stop,
        answerer: Answerer,
        now: Tick,
    ) -> impl Iterator<Item = Way<'p>> + use<'p> {
        let target = &stop.target;
        let aims = match self.upstreams.get(&target.provider) {
            Some(Upstream {
                keys: Keys::Own(_), ..
            }) => {
                let make = || self.aims(call, target, now);
                stop.aims.at(model_at(call, target), make)
            }
            // Of its callers' keys nothing is remembered.
            _ => self.aims(call, target, now).into(),
        };
        self.ways_along(aims, target, answerer)
    }

    /// The ways to a target that stands in no roster, one for each key.
    pub(super) fn ways_to<'p>(
        &'p self,
        call: &Call,
        target: &'p config::Target,
        answerer: Answerer,
        now: Tick,
    ) -> impl Iterator<Item = Way<'p>> + use<'p> {
        self.ways_along(self.aims(call, target, now).into(), target, answerer)
    }

    fn ways_along<'p>(
        &'p self,
        aims: Keyed,
        target: &'p config::Target,
        answerer: Answerer,
    ) -> impl Iterator<Item = Way<'p>> + use<'p> {
        let upstream = self.upstreams.get(&target.provider);
        (0..aims.len()).filter_map(move |at| {
            let upstream = upstream?;
            Some(Way {
                aim: Arc::clone(aims.get(at)?),
                upstream,
                key: upstream.keys.header(at),
                model: target.model.as_deref(),
                answerer,
                refused: None,
                price: None,
                seat: None,
                is_aside: false,
                is_told_full: false,
            })
        })
    }

    /// A target under each key that its provider is called with.
    fn aims(&self, call: &Call, target: &config::Target, now: Tick) -> Vec<Arc<Aim>> {
        let (provider, model) = (target.provider.as_str(), model_at(call, target));
        let aim = |id: &str, owner| {
            let target = Target::new(provider, model, id, owner);
            let scopes = self.guards.scopes(&self.config, &target, now);
            let scopes = scopes.inspect_err(|error| tracing::warn!(%error, "a call is refused"));
            let route = self.route(call);
            Arc::new(Aim {
                name: header_text(&[provider, "/", model].concat()),
                target,
                scopes: scopes.ok(),
                timeouts: self.config.timeouts(provider, Some(model), route),
            })
        };
        match self.upstreams.get(provider).map(|upstream| &upstream.keys) {
            None => Vec::new(),
            Some(Keys::Caller) => vec![aim(&self.caller_id(call), Owner::Caller)],
            Some(Keys::Own(keys)) => {
                let ids = keys.iter().map(|(id, _)| id);
                ids.map(|id| aim(id, Owner::Gateway)).collect()
            }
        }
    }

    /// The name under which a caller's own key is known.
    fn caller_id(&self, call: &Call) -> String {
        let in_headers = CREDENTIALS
            .iter()
            .find_map(|name| call.headers.get(name))
            .map(HeaderValue::as_bytes);
        let in_query = || call.query.as_deref()?.split('&').find_map(key_in);
        let key = in_headers.or_else(|| in_query().map(str::as_bytes));
        key.map_or_else(
            || "none".to_owned(),
            |key| credential_id(&self.lasting.salt, key),
        )
    }
}

/// The roster's rules, with the places of the ways in place of the stops'.
fn rules(roster: &Roster, by_stop: &BTreeMap<usize, Vec<usize>>) -> BTreeMap<Kind, OnFailure> {
    let placed = |rule: &OnFailure| match rule {
        OnFailure::To(stops) => {
            let ways = stops.iter().filter_map(|stop| by_stop.get(stop));
            OnFailure::To(ways.flatten().copied().collect())
        }
        other => other.clone(),
    };
    let rules = roster.on.iter();
    rules.map(|(kind, rule)| (*kind, placed(rule))).collect()
}

/// What the target's breakers say now. A refusal counts as one rejected call, however often a plan asks.
pub(super) fn admit(
    ways: &mut [Way<'_>],
    context: &mut Context,
    target: &Target,
    now: Tick,
) -> Admission {
    let Some(way) = ways.iter_mut().find(|way| way.aim.target == *target) else {
        return Admission::Refused(Duration::ZERO);
    };
    let aim = Arc::clone(&way.aim);
    let Some(scopes) = &aim.scopes else {
        return Admission::Refused(NO_ROOM);
    };
    let admission = Admission::of(scopes, now);
    let passes = matches!(admission, Admission::Ready | Admission::Probe);
    if passes && way.is_full() {
        way.tell_full(context);
        return Admission::Refused(NO_ROOM);
    }
    if way.refused.is_some() || passes {
        return admission;
    }
    match scopes.try_acquire(Duration::ZERO, now) {
        // It came free in this very moment.
        Ok(permit) => {
            permit.cancel(now);
            Admission::of(scopes, now)
        }
        Err(refused) => {
            way.refuse(refused, context);
            admission
        }
    }
}

impl Upstream {
    /// How this provider is reached; each of its keys is known by its place in the configuration.
    pub(super) fn new(name: &str, provider: &Provider) -> Result<Self, BuildError> {
        let keys = match &provider.credential {
            Credential::Caller => Keys::Caller,
            Credential::Keys(keys) => {
                let keys = keys.iter().enumerate().map(|(at, key)| {
                    let header = Self::key_value(provider.protocol, key.expose_secret());
                    let header = header.map_err(|_| BuildError::Key {
                        provider: name.to_owned(),
                        at,
                    })?;
                    Ok((at.to_string(), header))
                });
                Keys::Own(keys.collect::<Result<_, BuildError>>()?)
            }
        };
        Ok(Self {
            protocol: provider.protocol,
            base: provider.base_url.uri().clone(),
            keys,
            rules: provider.rules.as_str().into(),
        })
    }
}
