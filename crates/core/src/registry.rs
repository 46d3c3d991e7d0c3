//! `Registry`: the breakers of one process by name, bounded, on one clock.

use core::fmt;
use std::sync::Arc;

use crate::breaker::Breaker;
use crate::clock::Clock;
use crate::event::Cause;
use crate::kind::Kind;
use crate::policy::{Mode, Per, Policy};
use crate::saved::SavedBreaker;
use crate::scope::{ByName, Scope, ScopeName};
use crate::state::State;
use crate::sync::{AtomicU64, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard, read, write};
use crate::tick::{Tick, millis};

/// How a registry is made.
#[derive(Clone, Debug)]
pub struct RegistryConfig {
    /// Breakers at most. Idle closed ones leave first, an open one never. Default 500.
    pub max_breakers: usize,
    /// Seeds the jitter of its breakers: replicas take different ones, tests a fixed one. Default 0.
    pub seed: u64,
    /// Where `now` comes from. Default the system's monotonic clock.
    pub clock: Clock,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            max_breakers: 500,
            seed: 0,
            clock: Clock::system(),
        }
    }
}

/// Breakers by name. Clones are handles on the same one.
///
/// ```
/// use fuseline_core::{Policy, Registry, ScopeName};
///
/// let registry = Registry::default();
/// let name = ScopeName::provider("openai");
/// assert!(registry.find_breaker(&name).is_none());
/// let breaker = registry.get_breaker(&name, &Policy::default(), registry.now())?;
/// assert!(registry.find_breaker(&name).is_some());
/// # Ok::<(), fuseline_core::RegistryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    config: RegistryConfig,
    entries: RwLock<ByName<Entry>>,
    unguarded: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    breaker: Breaker,
    /// When it was last asked for or recorded to.
    used: AtomicU64,
}

/// A breaker cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken by a breaker with other settings: `reconfigure` it.
    OtherSettings(ScopeName),
    /// As many breakers as allowed, and none is idle.
    Full(ScopeName, usize),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherSettings(name) => {
                write!(
                    f,
                    "breaker `{name}` exists with other settings; reconfigure it, or use another name"
                )
            }
            Self::Full(name, max) => {
                write!(
                    f,
                    "no room for breaker `{name}`: all {max} (max_breakers) are open or in use"
                )
            }
        }
    }
}

impl core::error::Error for RegistryError {}

impl Registry {
    /// An empty registry.
    pub fn new(config: RegistryConfig) -> Self {
        Self(Arc::new(Shared {
            config,
            ..Shared::default()
        }))
    }

    /// The present instant of the registry's clock.
    pub fn now(&self) -> Tick {
        self.0.config.clock.now()
    }

    /// The registry's clock.
    pub fn clock(&self) -> &Clock {
        &self.0.config.clock
    }

    /// The breaker of this name, made if need be.
    ///
    /// # Errors
    /// It exists with other settings, or there is no room.
    pub fn get_breaker(
        &self,
        name: &ScopeName,
        policy: &Policy,
        now: Tick,
    ) -> Result<Breaker, RegistryError> {
        let breaker = self.ensure(name, policy, now)?;
        if breaker.policy() == *policy {
            Ok(breaker)
        } else {
            Err(RegistryError::OtherSettings(name.clone()))
        }
    }

    /// The breaker of this name, if there is one: tells "none" from "closed".
    pub fn find_breaker(&self, name: &ScopeName) -> Option<Breaker> {
        self.read().get(name).map(|entry| entry.breaker.clone())
    }

    /// All breakers, in the order of their names.
    pub fn breakers(&self) -> Vec<Breaker> {
        let mut all: Vec<_> = self
            .read()
            .values()
            .map(|entry| entry.breaker.clone())
            .collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// How many breakers there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Outcomes of models and keys for whose breaker there was no room, so that their provider's alone guarded them.
    pub fn unguarded(&self) -> u64 {
        self.0.unguarded.load(Ordering::Relaxed)
    }

    /// Gives a breaker other settings; see [`Breaker::reconfigure`]. Does nothing where there is none.
    pub fn reconfigure(&self, name: &ScopeName, policy: Policy, now: Tick) {
        if let Some(breaker) = self.find_breaker(name) {
            breaker.reconfigure(policy, now);
        }
    }

    /// Puts a state back under its name; see [`Breaker::restore`]. A breaker that exists already keeps its settings.
    ///
    /// # Errors
    /// There is no room.
    pub fn restore(
        &self,
        saved: &SavedBreaker,
        policy: &Policy,
        now: Tick,
    ) -> Result<Breaker, RegistryError> {
        let breaker = self.ensure(&saved.name, policy, now)?;
        breaker.restore(saved, now);
        if let Some(entry) = self.read().get(&saved.name) {
            let used = saved.last_used().min(now);
            entry.used.store(used.as_millis(), Ordering::Relaxed);
        }
        Ok(breaker)
    }

    /// Forgets a breaker. Who holds a handle keeps it.
    pub fn remove(&self, name: &ScopeName) {
        self.write().remove(name);
    }

    /// The breaker of this name, whatever its settings, made if need be.
    pub(crate) fn ensure(
        &self,
        name: &ScopeName,
        policy: &Policy,
        now: Tick,
    ) -> Result<Breaker, RegistryError> {
        if let Some(entry) = self.read().get(name) {
            entry.used.store(now.as_millis(), Ordering::Relaxed);
            return Ok(entry.breaker.clone());
        }
        let mut entries = self.write();
        if let Some(entry) = entries.get(name) {
            return Ok(entry.breaker.clone());
        }
        let max = self.0.config.max_breakers;
        if entries.len() >= max {
            let leavers = most_idle(&entries, 1 + max / 20, now);
            if leavers.is_empty() {
                return Err(RegistryError::Full(name.clone(), max));
            }
            for leaver in leavers {
                entries.remove(&leaver);
            }
        }
        let RegistryConfig { seed, clock, .. } = &self.0.config;
        let breaker = Breaker::with_clock(name.clone(), policy.clone(), *seed, clock.clone());
        let used = AtomicU64::new(now.as_millis());
        entries.insert(
            name.clone(),
            Entry {
                breaker: breaker.clone(),
                used,
            },
        );
        Ok(breaker)
    }

    /// As [`ensure`](Self::ensure); where there is no room, counts an unguarded outcome.
    pub(crate) fn ensure_or_count(
        &self,
        name: &ScopeName,
        policy: &Policy,
        now: Tick,
    ) -> Option<Breaker> {
        let breaker = self.ensure(name, policy, now).ok();
        if breaker.is_none() {
            self.0.unguarded.fetch_add(1, Ordering::Relaxed);
        }
        breaker
    }

    pub(crate) fn touch(&self, name: &ScopeName, now: Tick) {
        if let Some(entry) = self.read().get(name) {
            entry.used.store(now.as_millis(), Ordering::Relaxed);
        }
    }

    /// Opens a provider of which at least two models, and more than half of those called in the last window, are open
    /// by the provider's fault.
    pub(crate) fn open_provider_with_its_models(&self, provider: &Breaker, now: Tick) {
        let since = now
            .as_millis()
            .saturating_sub(last_window(&provider.policy()));
        let (mut open, mut called, mut worst) = (0_u32, 0_u32, None);
        for (name, entry) in self.read().iter() {
            if name.scope() != Scope::Model
                || name.provider_name() != provider.name().provider_name()
            {
                continue;
            }
            let called_lately = entry.used.load(Ordering::Relaxed) >= since;
            let opened = opened_by(&entry.breaker, provider.mode(), now);
            // One whose cooldown runs would have been called.
            let kind = opened
                .filter(|opened| called_lately || opened.1 > now)
                .map(|opened| opened.0);
            if called_lately || kind.is_some() {
                called += 1;
            }
            if let Some(kind) = kind {
                open += 1;
                worst = Some(kind);
            }
        }
        if let Some(kind) = worst.filter(|_| open >= 2 && open * 2 > called) {
            provider.open_by_models(kind, open, called, now);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, ByName<Entry>> {
        read(&self.0.entries)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByName<Entry>> {
        write(&self.0.entries)
    }
}

/// Among the closed ones that nobody holds: those without failures first, and of these the longest unused. A few at a
/// time, so that a flood of invented names does not look through all of them each time.
fn most_idle(entries: &ByName<Entry>, few: usize, now: Tick) -> Vec<ScopeName> {
    let age = |entry: &Entry| {
        (
            entry.breaker.has_failures(now),
            entry.used.load(Ordering::Relaxed),
        )
    };
    let idle = entries
        .iter()
        .filter(|(_, entry)| entry.breaker.is_idle(now));
    let mut idle: Vec<_> = idle.map(|(name, entry)| (age(entry), name)).collect();
    idle.sort_unstable();
    idle.into_iter()
        .take(few)
        .map(|(_, name)| name.clone())
        .collect()
}

/// The kind by which a model's breaker is open, and until when, if it is, the kind is charged to models, and it rejects
/// no less than the provider would.
fn opened_by(model: &Breaker, provider: Mode, now: Tick) -> Option<(Kind, Tick)> {
    let counts = match model.mode() {
        Mode::Enforce => true,
        Mode::Shadow => provider == Mode::Shadow,
        Mode::Off => false,
    };
    if !counts || model.state(now) != State::Open {
        return None;
    }
    let history = model.history(0);
    let opened = history
        .iter()
        .rev()
        .find(|change| change.to == State::Open)?;
    let kind = match (opened.why.cause, opened.why.kind) {
        // A slow trip has no kind, and is the model's own.
        (Cause::Slow, _) => Kind::Timeout,
        // A share that a success completed is made of the failures before it.
        (_, None) => opened.why.last_failures.last()?.kind,
        (_, Some(kind)) => kind,
    };
    let is_the_models = kind.rule().count && Scope::charged(kind, Per::Model) == Scope::Model;
    is_the_models.then_some((kind, opened.until?))
}

/// The longest window of a policy's rules; a minute where no rule has one.
fn last_window(policy: &Policy) -> u64 {
    policy
        .trip()
        .iter()
        .filter_map(|rule| rule.window())
        .map(millis)
        .max()
        .unwrap_or(60_000)
}
