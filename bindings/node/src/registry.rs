//! `Registry` and `Events`: breakers by name, and what happened to them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use fuseline::{Policy, RegistryConfig, RegistryError, ScopeName};
use napi::Either;
use napi_derive::napi;

use crate::breaker::{Breaker, scope_name};
use crate::clock::Clock;
use crate::policy;
use crate::view::{self, Transition};

/// The process's own, which all its threads share.
static PROCESS: LazyLock<Registry> = LazyLock::new(|| {
    Registry::of(
        fuseline::Registry::default(),
        RegistryConfig::default().max_breakers,
    )
});

/// Breakers by name, bounded.
#[napi]
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) inner: fuseline::Registry,
    max_breakers: usize,
    /// Those that somebody has asked for with settings: the others were restored, or learned from a fleet.
    asked_for: Arc<Mutex<HashSet<ScopeName>>>,
}

impl Registry {
    fn of(inner: fuseline::Registry, max_breakers: usize) -> Self {
        Self {
            inner,
            max_breakers,
            asked_for: Arc::default(),
        }
    }

    /// The breaker of this name. One that was restored or learned takes the settings of the first who asks for it.
    fn breaker(
        &self,
        name: &ScopeName,
        policy: &Policy,
    ) -> Result<fuseline::Breaker, RegistryError> {
        let mut asked_for = self.lock();
        if !asked_for.contains(name)
            && let Some(breaker) = self.inner.find_breaker(name)
        {
            breaker.reconfigure(policy.clone());
        }
        let breaker = self.inner.get_breaker(name, policy)?;
        if asked_for.len() >= 2 * self.max_breakers {
            asked_for.retain(|name| self.inner.find_breaker(name).is_some());
        }
        asked_for.insert(name.clone());
        Ok(breaker)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<ScopeName>> {
        self.asked_for
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A breaker cannot be had.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct RegistryRefusal {
    /// The sentence.
    pub message: String,
    /// Whether one of this name exists with other settings.
    pub is_taken: bool,
}

/// The two parts of a breaker's name.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Name {
    /// The provider, or any one thing that is guarded.
    pub name: String,
    /// A model of it.
    pub model: Option<String>,
}

#[napi]
impl Registry {
    /// One of its own.
    #[napi(constructor)]
    pub fn new(max_breakers: u32, clock: Option<&Clock>) -> Self {
        let usual = RegistryConfig::default();
        let max_breakers = max_breakers as usize;
        let inner = fuseline::Registry::new(RegistryConfig {
            max_breakers,
            clock: clock.map_or(usual.clock, |clock| clock.0.clone()),
            ..RegistryConfig::default()
        });
        Self::of(inner, max_breakers)
    }

    /// The process's.
    #[napi(factory)]
    pub fn process() -> Self {
        PROCESS.clone()
    }

    /// The breaker of this name, made if need be.
    #[napi]
    pub fn get(
        &self,
        name: String,
        model: Option<String>,
        settings: String,
    ) -> napi::Result<Either<Breaker, RegistryRefusal>> {
        let policy = policy::policy(&settings)?;
        let name = scope_name(&name, model.as_deref());
        Ok(match self.breaker(&name, &policy) {
            Ok(breaker) => Either::A(Breaker::of(breaker)),
            Err(refused) => Either::B(RegistryRefusal {
                is_taken: matches!(refused, RegistryError::OtherSettings(_)),
                message: refused.to_string(),
            }),
        })
    }

    /// The breaker of this name, if there is one.
    #[napi]
    pub fn find(&self, name: String, model: Option<String>) -> Option<Breaker> {
        let breaker = self
            .inner
            .find_breaker(scope_name(&name, model.as_deref()))?;
        Some(Breaker::of(breaker))
    }

    /// Of every breaker, in their order.
    #[napi]
    pub fn names(&self) -> Vec<Name> {
        let all = self.inner.breakers();
        all.iter()
            .map(|breaker| Name {
                name: breaker.name().provider_name().to_owned(),
                model: breaker.name().part().map(ToOwned::to_owned),
            })
            .collect()
    }

    /// Forgets a breaker.
    #[napi]
    pub fn remove(&self, name: String, model: Option<String>) {
        let name = scope_name(&name, model.as_deref());
        let mut asked_for = self.lock();
        self.inner.remove(&name);
        asked_for.remove(&name);
    }

    /// A reader of what happens to its breakers.
    #[napi]
    pub fn events(&self) -> Events {
        Events(RefCell::new(self.inner.events()))
    }
}

/// A reader of all breakers' transitions.
#[napi]
#[derive(Debug)]
pub struct Events(RefCell<fuseline::Events>);

/// A breaker changed its state.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Event {
    /// Whose.
    pub name: String,
    /// From where to where, when and why.
    pub transition: Transition,
    /// Transitions just before this one that came and went unread.
    pub missed: i64,
}

#[napi]
impl Events {
    /// Everything since the last time.
    #[napi]
    pub fn drain(&self) -> Vec<Event> {
        let events = self.0.borrow_mut().drain();
        events
            .iter()
            .map(|event| Event {
                name: event.name.to_string(),
                transition: view::transition(&event.transition),
                missed: view::count(event.missed),
            })
            .collect()
    }
}
