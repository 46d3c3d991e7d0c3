//! `Breaker`: what JavaScript's breakers are made of, but for their calls.

use fuseline::ScopeName;
use napi_derive::napi;

use crate::calls;
use crate::clock::Clock;
use crate::policy::{ms, policy};
use crate::view::{self, Status, Transition};

/// A breaker. Its calls go by its number.
#[napi]
#[derive(Debug)]
pub struct Breaker {
    inner: fuseline::Breaker,
    id: u32,
}

impl Breaker {
    pub(crate) fn of(inner: fuseline::Breaker) -> Self {
        let id = calls::enlist(inner.clone());
        Self { inner, id }
    }
}

impl Drop for Breaker {
    fn drop(&mut self) {
        calls::strike_off(self.id);
    }
}

#[napi]
impl Breaker {
    /// A breaker of its own.
    #[napi(constructor)]
    pub fn new(
        name: String,
        model: Option<String>,
        settings: String,
        clock: Option<&Clock>,
    ) -> napi::Result<Self> {
        let policy = policy(&settings)?;
        let name = scope_name(&name, model.as_deref());
        Ok(Self::of(match clock {
            Some(clock) => fuseline::Breaker::with_clock(name, policy, clock.0.clone()),
            None => fuseline::Breaker::new(name, policy),
        }))
    }

    /// Its number among those of this thread, for calls.
    #[napi]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its name.
    #[napi]
    pub fn name(&self) -> String {
        self.inner.name().to_string()
    }

    /// What it guards.
    #[napi]
    pub fn scope(&self) -> &'static str {
        self.inner.name().scope().as_str()
    }

    /// The state as the next call would find it.
    #[napi]
    pub fn state(&self) -> &'static str {
        self.inner.state().as_str()
    }

    /// Whether a call would be let through now.
    #[napi]
    pub fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    /// The present by its clock.
    #[napi]
    pub fn now(&self) -> f64 {
        view::at(self.inner.now())
    }

    /// Everything there is to see.
    #[napi]
    pub fn status(&self) -> Status {
        view::status(&self.inner.snapshot())
    }

    /// Transitions after a number.
    #[napi]
    pub fn history(&self, after: f64) -> Vec<Transition> {
        let history = self.inner.history(after as u64);
        history.iter().map(view::transition).collect()
    }

    /// Refuses all calls.
    #[napi]
    pub fn force_open(&self, lasting: Option<f64>) -> napi::Result<()> {
        let lasting = lasting.map(|lasting| ms("lasting", lasting)).transpose()?;
        self.inner.force_open(lasting);
        Ok(())
    }

    /// Lets all calls pass.
    #[napi]
    pub fn force_closed(&self, lasting: Option<f64>) -> napi::Result<()> {
        let lasting = lasting.map(|lasting| ms("lasting", lasting)).transpose()?;
        self.inner.force_closed(lasting);
        Ok(())
    }

    /// Ends a forced state.
    #[napi]
    pub fn release(&self) {
        self.inner.release();
    }

    /// A fresh `closed`.
    #[napi]
    pub fn reset(&self) {
        self.inner.reset();
    }

    /// Other settings from now on.
    #[napi]
    pub fn reconfigure(&self, settings: String) -> napi::Result<()> {
        self.inner.reconfigure(policy(&settings)?);
        Ok(())
    }
}

/// The name of a provider, or of one of its models.
pub(crate) fn scope_name(name: &str, model: Option<&str>) -> ScopeName {
    match model {
        Some(model) => ScopeName::model(name, model),
        None => ScopeName::provider(name),
    }
}
