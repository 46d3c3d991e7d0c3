//! `Registry`: the breakers of a process by name, and `Events`: what happened to them.

use std::borrow::Borrow;
use std::collections::HashMap;

use fuseline_core::{Policy, RegistryConfig, RegistryError, ScopeName, Snapshot, Transition};

use crate::breaker::{Breaker, random_seed};
use crate::name::IntoName;

/// Breakers by name, on one clock, at most 500 unless set otherwise. Clones are handles on the same one.
///
/// A registry is a value like any other: put it where your clients live. Two of them share nothing.
///
/// ```
/// use fuseline::{Policy, Registry};
///
/// let registry = Registry::default();
/// assert!(registry.find_breaker("openai").is_none());
/// let breaker = registry.get_breaker("openai", &Policy::default())?;
/// breaker.force_open(None);
/// assert!(!registry.is_available("openai"));
/// assert_eq!(registry.snapshots().len(), 1);
/// # Ok::<(), fuseline::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Registry(fuseline_core::Registry);

impl Default for Registry {
    fn default() -> Self {
        Self::new(RegistryConfig::default())
    }
}

impl Registry {
    /// An empty registry: `RegistryConfig` sets the number of breakers, the clock and the seed of their jitter. A seed of
    /// 0, the default, becomes one by chance, so that the processes of a fleet do not come back in the same instant.
    ///
    /// ```
    /// use fuseline::{Clock, Registry, RegistryConfig};
    ///
    /// let config = RegistryConfig { clock: Clock::manual(), ..RegistryConfig::default() };
    /// let registry = Registry::new(config);
    /// # let _ = registry;
    /// ```
    pub fn new(mut config: RegistryConfig) -> Self {
        if config.seed == 0 {
            config.seed = random_seed();
        }
        Self(fuseline_core::Registry::new(config))
    }

    /// The breaker of this name, made if need be.
    ///
    /// # Errors
    /// It exists with other settings ([`Breaker::reconfigure`] changes them), or there is no room: every breaker is
    /// open or held by somebody.
    pub fn get_breaker(
        &self,
        name: impl IntoName,
        policy: &Policy,
    ) -> Result<Breaker, RegistryError> {
        let core = self
            .0
            .get_breaker(&name.into_name(), policy, self.0.now())?;
        Ok(self.timed(core))
    }

    /// The breaker of this name, if there is one: tells "none" from "closed".
    pub fn find_breaker(&self, name: impl IntoName) -> Option<Breaker> {
        let core = self.0.find_breaker(&name.into_name())?;
        Some(self.timed(core))
    }

    /// All breakers, in the order of their names.
    pub fn breakers(&self) -> Vec<Breaker> {
        let all = self.0.breakers();
        all.into_iter().map(|core| self.timed(core)).collect()
    }

    /// Whether a call under this name would be let through now; true where there is no such breaker. Asking changes
    /// nothing.
    pub fn is_available(&self, name: impl IntoName) -> bool {
        self.find_breaker(name)
            .is_none_or(|breaker| breaker.is_available())
    }

    /// Snapshots of all breakers, in the order of their names.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let now = self.0.now();
        let all = self.0.breakers();
        all.iter().map(|breaker| breaker.snapshot(now)).collect()
    }

    /// Other settings for every breaker of this registry from now on; see [`Breaker::reconfigure`].
    pub fn reconfigure_all(&self, policy: &Policy) {
        for breaker in self.breakers() {
            breaker.reconfigure(policy.clone());
        }
    }

    /// Forgets a breaker. Who holds a handle keeps it.
    pub fn remove(&self, name: impl IntoName) {
        self.0.remove(&name.into_name());
    }

    /// What happens to its breakers from the very first transition that is still kept.
    ///
    /// ```
    /// use fuseline::{Policy, Registry, State};
    ///
    /// let registry = Registry::default();
    /// let mut events = registry.events();
    /// registry.get_breaker("openai", &Policy::default())?.force_open(None);
    /// for event in events.drain() {
    ///     println!("{} is {}: {}", event.name, event.transition.to, event.transition.why);
    ///     assert_eq!(event.transition.to, State::ForcedOpen);
    /// }
    /// assert!(events.drain().is_empty());
    /// # Ok::<(), fuseline::RegistryError>(())
    /// ```
    pub fn events(&self) -> Events {
        Events {
            registry: self.0.clone(),
            read: HashMap::new(),
        }
    }

    fn timed(&self, core: fuseline_core::Breaker) -> Breaker {
        Breaker::from_core(core)
    }
}

impl Borrow<fuseline_core::Registry> for Registry {
    fn borrow(&self) -> &fuseline_core::Registry {
        &self.0
    }
}

/// A reader of all breakers' transitions. It listens to nobody: [`drain`](Self::drain) it every now and then, from a timer
/// of yours or before you show a page. A reader that is slow or gone costs no call anything.
#[derive(Debug)]
pub struct Events {
    registry: fuseline_core::Registry,
    /// The number of the last transition read, by breaker; never more breakers than the registry may hold.
    read: HashMap<ScopeName, u64>,
}

/// A breaker changed its state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Whose.
    pub name: ScopeName,
    /// From where to where, when and why.
    pub transition: Transition,
    /// Transitions of this breaker just before this one that came and went unread: it keeps the last 20.
    pub missed: u64,
}

impl Events {
    /// Everything that has happened since the last time, in the order of time.
    pub fn drain(&mut self) -> Vec<Event> {
        let breakers = self.registry.breakers();
        let mut events = Vec::new();
        let mut read = HashMap::new();
        for breaker in breakers.iter().filter(|breaker| breaker.changes() > 0) {
            let name = breaker.name();
            // One that has fewer than were read was forgotten, and made anew under its old name.
            let mut last = self.read.get(name).copied().unwrap_or(0);
            if last > breaker.changes() {
                last = 0;
            }
            for transition in breaker.history(last) {
                let missed = transition.number.saturating_sub(last + 1);
                last = transition.number;
                events.push(Event {
                    name: name.clone(),
                    transition,
                    missed,
                });
            }
            read.insert(name.clone(), last);
        }
        self.read = read;
        events.sort_by_key(|event| event.transition.at);
        events
    }
}
