//! `Worker`: brings a registry's breakers and the fleet's server together, turn by turn.
//!
//! **No call waits for it.** It reads what breakers keep, and tells them what the fleet says by the hooks that the core has
//! for it. It looks every 25 ms; a change here goes out at once, counts every 100 ms: half of what would do, so that a trip
//! is everywhere within 250 ms on a busy machine too.
//!
//! **Only trouble is exchanged.** A breaker that has counted no failure and that no other replica names costs nothing.
//!
//! **The server's own trouble** is a breaker's business, ours: three turns that fail open it, and while it is not closed the
//! fleet is degraded: every breaker decides by itself, probes included. It is told once when that begins and once when it
//! ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fuseline_core::{
    Breaker, Evidence, Kind, Outcome, Policy, PolicySpec, Registry, ScopeName, Snapshot, State,
    Tick, TripRule,
};

use super::counts::{Counted, Counting};
use super::error::FleetError;
use super::member::{Member, Orders, Probing, Sent, View};
use super::message::{Reply, Request};
use super::translate::{Meeting, news, saved, view};
use super::turn::{Index, Server, Turn};
use crate::moment::Moment;

/// How often counts are exchanged.
const EXCHANGE_EVERY: Duration = Duration::from_millis(100);
/// Wall clocks that differ by more are told of, in ms.
const SKEW: u64 = 5_000;
/// How far back others' breakers are looked for, in ms.
const LOOK_BACK: u64 = 1_000;

/// The settings of a breaker of this name; none where the fleet is not to share it.
pub(crate) type Shares = Box<dyn Fn(&ScopeName) -> Option<Policy> + Send>;

/// What the worker tells of itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) is_degraded: AtomicBool,
    pub(crate) turns: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) replicas: AtomicU64,
    pub(crate) resets: AtomicU64,
}

pub(crate) struct Worker {
    registry: Registry,
    server: Box<dyn Server>,
    shares: Shares,
    me: String,
    parts: HashMap<ScopeName, Part>,
    /// Breakers that matter to somebody.
    named: HashSet<ScopeName>,
    guard: Breaker,
    meeting: Option<Meeting>,
    due: Tick,
    alive: u64,
    /// That the wall clocks differ has been said.
    told_skew: bool,
    counters: Arc<Counters>,
}

/// What is known of one breaker.
struct Part {
    policy: Policy,
    member: Member,
    counting: Counting,
    /// Its changes when it was last looked at.
    changes: u64,
}

/// One breaker's share of a turn.
struct Asked {
    name: ScopeName,
    breaker: Option<Breaker>,
    view: View,
    sent: Sent,
    own: Counted,
}

impl Worker {
    pub(crate) fn new(
        registry: Registry,
        server: Box<dyn Server>,
        shares: Shares,
        me: String,
        counters: Arc<Counters>,
    ) -> Self {
        let spec = PolicySpec {
            trip: Some(vec![TripRule::Consecutive { failures: 3 }]),
            cooldown: Some(Duration::from_secs(1)),
            max_cooldown: Some(Duration::from_secs(2)),
            successes_to_close: Some(1),
            ..PolicySpec::default()
        };
        // The settings are ours, and right.
        let policy = Policy::new(&spec).unwrap_or_default();
        // Until the first turn has been, each decides by itself.
        counters.is_degraded.store(true, Ordering::Relaxed);
        Self {
            guard: Breaker::new(ScopeName::provider("fleet"), policy),
            registry,
            server,
            shares,
            me,
            parts: HashMap::new(),
            named: HashSet::new(),
            meeting: None,
            due: Tick::ZERO,
            alive: 1,
            told_skew: false,
            counters,
        }
    }

    /// A look at all breakers, and an exchange where one is due.
    pub(crate) fn look(&mut self) {
        let now = self.registry.now();
        let has_changed = |breaker: &Breaker| {
            let known = self
                .parts
                .get(breaker.name())
                .map_or(0, |part| part.changes);
            breaker.changes() != known
        };
        let is_due = now >= self.due;
        if !is_due && !self.registry.breakers().iter().any(has_changed) {
            return;
        }
        let Ok(permit) = self.guard.clone().try_acquire_owned(Duration::ZERO, now) else {
            return;
        };
        self.due = now + EXCHANGE_EVERY;
        let result = self.exchange();
        let outcome = match &result {
            Ok(()) => Outcome::success(Duration::ZERO),
            Err(_) => Outcome::failure(Kind::Network),
        };
        permit.record(&outcome, self.registry.now());
        self.counters.turns.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(()) => self.well(),
            Err(error) => self.failed(&error),
        }
    }

    fn exchange(&mut self) -> Result<(), FleetError> {
        let asked = match self.meeting {
            None => Vec::new(), // the server's time first
            Some(meeting) => self.ask_all(&meeting),
        };
        let look_back = if self.meeting.is_none() { 0 } else { LOOK_BACK };
        let names = asked.iter().filter(|one| one.matters(self));
        let index = Index {
            look_back,
            names: names.map(|one| one.name.clone()).collect(),
        };
        let requests = asked.iter().map(|one| self.request(one)).collect();
        let turn = Turn {
            requests,
            index: Some(index),
        };
        let answers = self.server.turn(&turn)?;
        let Some(present) = answers.present else {
            return Err(FleetError::Garbled);
        };
        let meeting = Meeting {
            tick: self.registry.now(),
            server: present.now,
        };
        let is_first = self.meeting.replace(meeting).is_none();
        self.alive = present.alive;
        self.tell_skew(present.now);
        self.counters
            .replicas
            .store(present.alive, Ordering::Relaxed);
        let known: HashSet<_> = asked.iter().map(|one| one.name.clone()).collect();
        for (one, reply) in asked.into_iter().zip(answers.replies) {
            self.hear(one, &reply, &meeting);
        }
        self.named = present.names.into_iter().collect();
        let new: Vec<_> = self.named.difference(&known).cloned().collect();
        if is_first || !new.is_empty() {
            self.catch_up(new, &meeting)?;
        }
        Ok(())
    }

    /// Asks at once for what others have just named.
    fn catch_up(&mut self, new: Vec<ScopeName>, meeting: &Meeting) -> Result<(), FleetError> {
        let asked: Vec<_> = new
            .into_iter()
            .filter_map(|name| {
                let breaker = self.registry.find_breaker(&name);
                self.ask(name, breaker, meeting, true)
            })
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let turn = Turn {
            requests: asked.iter().map(|one| self.request(one)).collect(),
            index: None,
        };
        let answers = self.server.turn(&turn)?;
        for (one, reply) in asked.into_iter().zip(answers.replies) {
            self.hear(one, &reply, meeting);
        }
        Ok(())
    }

    fn ask_all(&mut self, meeting: &Meeting) -> Vec<Asked> {
        let breakers = self.registry.breakers();
        let live: HashSet<_> = breakers.iter().map(|one| one.name().clone()).collect();
        let named = self.named.clone();
        self.parts
            .retain(|name, _| live.contains(name) || named.contains(name));
        let absent: Vec<_> = named.difference(&live).cloned().collect();
        let mut asked = Vec::new();
        for breaker in breakers {
            let name = breaker.name().clone();
            let is_named = named.contains(&name);
            asked.extend(self.ask(name, Some(breaker), meeting, is_named));
        }
        for name in absent {
            asked.extend(self.ask(name, None, meeting, true));
        }
        asked
    }

    /// What to say of one breaker; none where there is nothing to say.
    fn ask(
        &mut self,
        name: ScopeName,
        breaker: Option<Breaker>,
        meeting: &Meeting,
        is_named: bool,
    ) -> Option<Asked> {
        let now = self.registry.now();
        if !self.parts.contains_key(&name) {
            let policy = (self.shares)(&name)?;
            if let Some(breaker) = &breaker {
                breaker.count_calls();
            }
            let part = Part {
                policy,
                member: Member::default(),
                counting: Counting::default(),
                changes: 0,
            };
            self.parts.insert(name.clone(), part);
        }
        let part = self.parts.get_mut(&name)?;
        let changes = breaker.as_ref().map_or(0, Breaker::changes);
        if changes < part.changes {
            // Forgotten, and made anew under its old name.
            part.member = Member::default();
        }
        part.changes = changes;
        let view = view(breaker.as_ref(), &self.me, meeting, now);
        let snapshot = breaker.as_ref().map(|one| one.snapshot(now));
        if !is_named && snapshot.as_ref().is_none_or(is_quiet) && !part.member.is_busy(&view) {
            return None;
        }
        let evidence = breaker
            .as_ref()
            .map_or_else(Evidence::default, |one| one.evidence(now));
        let hold_until = snapshot.as_ref().and_then(|seen| seen.hold_until);
        let hold_until = hold_until.map_or(0, |until| meeting.server_at(until));
        let last = snapshot.as_ref().and_then(|seen| seen.last_failures.last());
        let kind = last.map(|failure| failure.kind.as_str().to_owned());
        let own = part.counting.tell(&evidence, kind, hold_until, now);
        let sent = part.member.send(&view);
        Some(Asked {
            name,
            breaker,
            view,
            sent,
            own,
        })
    }

    fn request(&self, asked: &Asked) -> Request {
        Request {
            name: asked.name.clone(),
            sent: asked.view.server_now,
            counts: serde_json::to_string(&asked.own).unwrap_or_default(),
            offer: asked.sent.offer.clone(),
            ask: asked.sent.ask,
        }
    }

    fn hear(&mut self, asked: Asked, reply: &Reply, meeting: &Meeting) {
        let Some(part) = self.parts.get_mut(&asked.name) else {
            return;
        };
        let was_lost = part.member.is_lost();
        let orders = part.member.hear(&self.me, &asked.sent, reply, &asked.view);
        if part.member.is_lost() && !was_lost {
            self.counters.resets.fetch_add(1, Ordering::Relaxed);
        }
        let others: Vec<(String, Counted)> = reply
            .counts
            .iter()
            .filter(|(who, ..)| *who != self.me)
            .filter_map(|(who, _, told)| Some((who.clone(), serde_json::from_str(told).ok()?)))
            .collect();
        let breaker = part.obey(&self.registry, &asked, orders, meeting);
        let sum = part.counting.judge(
            part.policy.trip(),
            &asked.own,
            &others,
            self.alive,
            self.registry.now(),
        );
        let Some(breaker) = breaker else { return };
        let now = self.registry.now();
        for hold in others.iter().map(|(_, counted)| counted.hold_until) {
            if hold > reply.now {
                breaker.hold(meeting.tick_at(hold));
            }
        }
        let Some(sum) = sum.filter(|_| part.member.shared().is_none()) else {
            return;
        };
        match breaker.state(now) {
            State::Closed | State::Degraded => {
                let told = others
                    .iter()
                    .filter_map(|(_, counted)| counted.kind.as_ref());
                let kind = asked.own.kind.as_ref().into_iter().chain(told).next();
                let kind = kind.and_then(|kind| kind.parse().ok());
                breaker.open_by_fleet(kind, sum.observed, sum.threshold, now);
            }
            State::Open => part.member.confirm(),
            State::HalfOpen | State::ForcedOpen | State::ForcedClosed => {}
        }
    }

    /// Nothing here goes by wall clocks, but logs of replicas are read side by side.
    fn tell_skew(&mut self, server: u64) {
        let here = Moment::read(self.registry.clock()).wall_ms;
        if here.abs_diff(server) > SKEW && !self.told_skew {
            self.told_skew = true;
            tracing::warn!(
                ms = here.abs_diff(server),
                "the wall clock here and that of the fleet's Redis differ; breakers do not go by them, logs do"
            );
        }
    }

    fn well(&self) {
        if self.counters.is_degraded.swap(false, Ordering::Relaxed) {
            tracing::info!(replicas = self.alive, "the fleet acts as one");
        }
    }

    fn failed(&mut self, error: &FleetError) {
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let is_over = self.guard.state(self.registry.now()) != State::Closed;
        if !is_over {
            return;
        }
        let was_degraded = self.counters.is_degraded.swap(true, Ordering::Relaxed);
        let is_first = self.meeting.is_none() && self.guard.changes() == 1;
        if !was_degraded || is_first {
            tracing::warn!(%error, "each replica decides by itself until the fleet's Redis is back; calls are served as ever");
        }
        self.meeting = None;
        self.part();
    }

    /// A last exchange, in which leases go back.
    pub(crate) fn leave(&mut self) {
        let parts = self.parts.values_mut();
        parts.for_each(|part| part.member.leave());
        self.due = Tick::ZERO;
        self.look();
        self.part();
    }

    /// Every breaker decides by itself.
    fn part(&mut self) {
        for (name, part) in &mut self.parts {
            part.member.part();
            if let Some(breaker) = self.registry.find_breaker(name) {
                breaker.probe_freely();
            }
        }
    }
}

/// Closed, with nothing counted against it.
fn is_quiet(seen: &Snapshot) -> bool {
    let counts = seen.rules.iter().any(|rule| rule.hits > 0);
    seen.state == State::Closed && !counts && seen.hold_until.is_none()
}

impl Asked {
    /// Whether others are to look at it too.
    fn matters(&self, worker: &Worker) -> bool {
        let part = worker.parts.get(&self.name);
        self.own.has_failures() || part.is_some_and(|part| part.member.is_busy(&self.view))
    }
}

impl Part {
    /// Does what the fleet says; the breaker, which may have been made for it.
    fn obey(
        &mut self,
        registry: &Registry,
        asked: &Asked,
        orders: Orders,
        meeting: &Meeting,
    ) -> Option<Breaker> {
        let mut breaker = asked.breaker.clone();
        // What has happened since it was asked is to be told first.
        let is_as_told = breaker.as_ref().and_then(news) == asked.view.news;
        if let Some(record) = orders.adopt.filter(|_| is_as_told) {
            let saved = saved(&asked.name, &record, meeting);
            breaker = registry.restore(&saved, &self.policy, meeting.tick).ok();
            if let Some(breaker) = &breaker {
                self.changes = breaker.changes();
                self.member.settle(self.changes);
            }
        }
        if let Some(breaker) = &breaker {
            match orders.probing {
                None => {}
                Some(Probing::Freely) => breaker.probe_freely(),
                Some(Probing::Awaited) => breaker.probe_by_grant(),
                Some(Probing::Granted { until, good }) => breaker.grant_probes(until, good),
            }
        }
        breaker
    }
}

/// How long between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(25);

const _: () = assert!(LOOK_EVERY.as_millis() < EXCHANGE_EVERY.as_millis());
