//! `Breaker`: what JavaScript's breakers are made of. Hot path: a permit stays here, and JavaScript holds the number of its
//! place; a guarded call crosses twice and makes no object.

use std::cell::RefCell;
use std::time::Duration;

use fuseline::{CircuitOpen, Failure, Kind, Outcome, Rejection, ScopeName, outcome};
use napi::Either;
use napi_derive::napi;
use slab::Slab;

use crate::clock::Clock;
use crate::policy::{in_ms, invalid, ms, policy};
use crate::verdict::Verdict;
use crate::view::{self, Status, Transition};

/// A breaker, and the permits of it that are out in JavaScript.
#[napi]
#[derive(Debug)]
pub struct Breaker {
    pub(crate) inner: fuseline::Breaker,
    out: RefCell<Slab<Out>>,
}

#[derive(Debug)]
struct Out {
    permit: fuseline::Permit,
    /// When the first item of a stream came.
    first: Option<Duration>,
}

/// A call must not be made.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Refusal {
    /// The sentence.
    pub message: String,
    /// Whose breaker.
    pub name: String,
    /// What it guards.
    pub scope: &'static str,
    /// Why.
    pub reason: &'static str,
    /// When it is worth asking again.
    pub retry_after_ms: f64,
}

/// What there is to say of a failure beside its kind.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct FailureNotes {
    /// The provider's wait hint.
    pub retry_after_ms: Option<f64>,
    /// Open now, whatever the counts say.
    pub open_now: Option<bool>,
    /// An HTTP status, for the record.
    pub code: Option<u16>,
}

impl Breaker {
    pub(crate) fn of(inner: fuseline::Breaker) -> Self {
        Self {
            inner,
            out: RefCell::default(),
        }
    }

    /// The permit at this place, for whoever settles it from now on.
    pub(crate) fn take(&self, place: u32) -> Option<fuseline::Permit> {
        let out = self.out.borrow_mut().try_remove(place as usize);
        out.map(|out| out.permit)
    }

    fn look<T>(&self, place: u32, of: impl FnOnce(&fuseline::Permit) -> T) -> Option<T> {
        let out = self.out.borrow();
        out.get(place as usize).map(|out| of(&out.permit))
    }

    fn keep(&self, permit: fuseline::Permit) -> u32 {
        let out = Out {
            permit,
            first: None,
        };
        // As many calls as would not fit into 32 bits are in no process.
        self.out.borrow_mut().insert(out) as u32
    }

    #[cold]
    fn refused(&self, rejection: Rejection) -> Refusal {
        let refused = CircuitOpen::new(self.inner.name(), rejection);
        Refusal {
            message: refused.to_string(),
            name: refused.name.to_string(),
            scope: refused.scope.as_str(),
            reason: refused.reason.as_str(),
            retry_after_ms: in_ms(refused.retry_after),
        }
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

    /// Asks for leave to make one call: the place of its permit.
    #[napi]
    pub fn acquire(&self) -> Either<u32, Refusal> {
        match self.inner.try_acquire_owned() {
            Ok(permit) => Either::A(self.keep(permit)),
            Err(rejection) => Either::B(self.refused(rejection)),
        }
    }

    /// As `acquire`, for a call that is given up after so long.
    #[napi]
    pub fn acquire_within(&self, limit: f64) -> napi::Result<Either<u32, Refusal>> {
        let permit = self.inner.try_acquire_within(ms("within", limit)?);
        Ok(match permit.map(fuseline::Permit::into_owned) {
            Ok(permit) => Either::A(self.keep(permit)),
            Err(rejection) => Either::B(self.refused(rejection)),
        })
    }

    /// The provider came through.
    #[napi]
    pub fn success(&self, place: u32) {
        if let Some(out) = self.out.borrow_mut().try_remove(place as usize) {
            match out.first {
                Some(first) => out.permit.record(&Outcome::success(first)),
                None => out.permit.success(),
            };
        }
    }

    /// The provider came through after so long, by the caller's own clock.
    #[napi]
    pub fn success_after(&self, place: u32, took: f64) -> napi::Result<()> {
        let took = ms("tookMs", took)?;
        if let Some(permit) = self.take(place) {
            permit.record(&Outcome::success(took));
        }
        Ok(())
    }

    /// The call failed.
    #[napi]
    pub fn failure(
        &self,
        place: u32,
        kind: String,
        notes: Option<FailureNotes>,
    ) -> napi::Result<()> {
        let mut failure = Failure::new(kind_of(&kind)?);
        if let Some(notes) = notes {
            if let Some(wait) = notes.retry_after_ms {
                failure = failure.retry_after(ms("retryAfterMs", wait)?);
            }
            if notes.open_now == Some(true) {
                failure = failure.open_now();
            }
            if let Some(code) = notes.code {
                failure = failure.code(code);
            }
        }
        if let Some(permit) = self.take(place) {
            permit.record(&Outcome::Failure(failure));
        }
        Ok(())
    }

    /// Settles by what a verdict says of the call; the kind that is recorded.
    #[napi]
    pub fn settle(&self, place: u32, verdict: &Verdict) -> Option<&'static str> {
        let permit = self.take(place)?;
        let outcome = outcome(&verdict.0, permit.elapsed());
        permit.record(&outcome);
        match outcome {
            Outcome::Failure(failure) => Some(failure.kind().as_str()),
            Outcome::Success { .. } | Outcome::Neutral => None,
        }
    }

    /// Gives it back: the call says nothing.
    #[napi]
    pub fn cancel(&self, place: u32) {
        drop(self.take(place));
    }

    /// A sign of life.
    #[napi]
    pub fn progress(&self, place: u32) {
        self.look(place, fuseline::Permit::progress);
    }

    /// An item of a stream has come: a sign of life, and in time a probe's proof. Whether that settled the permit.
    #[napi]
    pub fn item(&self, place: u32) -> bool {
        let mut out = self.out.borrow_mut();
        let Some(Out { permit, first }) = out.get_mut(place as usize) else {
            return true;
        };
        let first = *first.get_or_insert_with(|| permit.elapsed());
        if !permit.is_proven(first) {
            permit.progress();
            return false;
        }
        if let Some(out) = out.try_remove(place as usize) {
            out.permit.record(&Outcome::success(first));
        }
        true
    }

    /// How long ago it was given; none once it is settled.
    #[napi]
    pub fn elapsed(&self, place: u32) -> Option<f64> {
        self.look(place, |permit| in_ms(permit.elapsed()))
    }

    /// Whether it is a probe.
    #[napi]
    pub fn is_probe(&self, place: u32) -> bool {
        self.look(place, fuseline::Permit::is_probe) == Some(true)
    }

    /// In shadow mode, why an enforcing breaker would have refused.
    #[napi]
    pub fn would_reject(&self, place: u32) -> Option<&'static str> {
        let refusal = self.look(place, fuseline::Permit::would_reject)??;
        Some(refusal.reason.as_str())
    }

    /// Permits that are out.
    #[napi]
    pub fn out(&self) -> u32 {
        self.out.borrow().len() as u32
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

fn kind_of(name: &str) -> napi::Result<Kind> {
    name.parse()
        .map_err(|error: fuseline::UnknownName| invalid(error))
}
