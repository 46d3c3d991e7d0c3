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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::{
    Breaker, Kind, Outcome, Policy, PolicySpec, Registry, ScopeName, State, Tick, TripRule,
};

use super::error::FleetError;
use super::message::Reply;
use super::part::{Asked, Heard, Part};
use super::translate::Meeting;
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
    /// Breakers that matter to somebody.
    pub(crate) named: Mutex<HashSet<ScopeName>>,
}

pub(crate) struct Worker {
    registry: Registry,
    server: Box<dyn Server>,
    shares: Shares,
    me: String,
    parts: HashMap<ScopeName, Part>,
    guard: Breaker,
    meeting: Option<Meeting>,
    due: Tick,
    alive: u64,
    /// That the wall clocks differ has been said.
    told_skew: bool,
    counters: Arc<Counters>,
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
            let known = self.parts.get(breaker.name()).map_or(0, Part::changes);
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
        let names = asked.iter().filter(|one| one.matters);
        let index = Index {
            look_back,
            names: names.map(|one| one.name.clone()).collect(),
        };
        let turn = Turn {
            requests: asked.iter().map(Asked::request).collect(),
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
        self.hear_all(asked, &answers.replies, &meeting);
        let named: HashSet<_> = present.names.into_iter().collect();
        let new: Vec<_> = named.difference(&known).cloned().collect();
        self.name(named);
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
            requests: asked.iter().map(Asked::request).collect(),
            index: None,
        };
        let answers = self.server.turn(&turn)?;
        self.hear_all(asked, &answers.replies, meeting);
        Ok(())
    }

    fn ask_all(&mut self, meeting: &Meeting) -> Vec<Asked> {
        let breakers = self.registry.breakers();
        let live: HashSet<_> = breakers.iter().map(|one| one.name().clone()).collect();
        let named = self.named();
        self.parts
            .retain(|name, _| live.contains(name) || named.contains(name));
        let mut asked = Vec::new();
        for breaker in breakers {
            let name = breaker.name().clone();
            let is_named = named.contains(&name);
            asked.extend(self.ask(name, Some(breaker), meeting, is_named));
        }
        for name in named.difference(&live) {
            asked.extend(self.ask(name.clone(), None, meeting, true));
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
        if !self.parts.contains_key(&name) {
            let policy = (self.shares)(&name)?;
            if let Some(breaker) = &breaker {
                breaker.count_calls();
            }
            self.parts.insert(name.clone(), Part::new(policy));
        }
        let part = self.parts.get_mut(&name)?;
        let heard = Heard {
            me: &self.me,
            registry: &self.registry,
            meeting,
            alive: self.alive,
        };
        part.ask(name, breaker, is_named, &heard)
    }

    fn hear_all(&mut self, asked: Vec<Asked>, replies: &[Reply], meeting: &Meeting) {
        let heard = Heard {
            me: &self.me,
            registry: &self.registry,
            meeting,
            alive: self.alive,
        };
        for (one, reply) in asked.into_iter().zip(replies) {
            let part = self.parts.get_mut(&one.name);
            if part.is_some_and(|part| part.hear(one, reply, &heard)) {
                self.counters.resets.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Breakers that matter to somebody.
    fn named(&self) -> HashSet<ScopeName> {
        let named = self.counters.named.lock();
        named.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn name(&self, names: HashSet<ScopeName>) {
        let named = self.counters.named.lock();
        *named.unwrap_or_else(PoisonError::into_inner) = names;
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
        self.parts.values_mut().for_each(Part::leave);
        self.due = Tick::ZERO;
        self.look();
        self.part();
    }

    /// Every breaker decides by itself.
    fn part(&mut self) {
        self.name(HashSet::new());
        for (name, part) in &mut self.parts {
            part.part(self.registry.find_breaker(name).as_ref());
        }
    }
}

/// How long between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(25);

const _: () = assert!(LOOK_EVERY.as_millis() < EXCHANGE_EVERY.as_millis());
