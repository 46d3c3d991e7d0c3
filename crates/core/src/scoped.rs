//! `Scopes` and `ScopedPermit`: leave from every breaker that a call touches, and one charge for its failure.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::breaker::Breaker;
use crate::event::{Reason, Rejection, Transition};
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::permit::Permit;
use crate::policy::{Mode, Policy};
use crate::registry::{Registry, RegistryError};
use crate::scope::{Scope, ScopeName};
use crate::state::State;
use crate::tick::Tick;

/// The settings of the three scopes.
#[derive(Clone, Debug)]
pub struct Policies {
    /// Of the provider's breaker.
    pub provider: Policy,
    /// Of the model's.
    pub model: Policy,
    /// Of the key's.
    pub key: Policy,
}

impl Policies {
    /// The same settings for all three.
    pub fn all(policy: &Policy) -> Self {
        Self {
            provider: policy.clone(),
            model: policy.clone(),
            key: policy.clone(),
        }
    }
}

/// What one target's calls touch. Clones are handles on the same breakers.
///
/// The provider's breaker exists from the start; a model's or a key's is made by its first outcome, so that names
/// which callers invent cost nothing.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Kind, Outcome, Policies, Policy, Registry, ScopeName, Scopes, Tick};
///
/// let registry = Registry::default();
/// let scopes = Scopes::new(
///     &registry,
///     ScopeName::provider("openai"),
///     Some(ScopeName::model("openai", "gpt-5")),
///     Some(ScopeName::key("openai", "0")),
///     Policies::all(&Policy::default()),
///     Tick::ZERO,
/// )?;
/// let permit = scopes.try_acquire(Duration::ZERO, Tick::ZERO).expect("all closed");
/// permit.record(&Outcome::failure(Kind::RateLimit), None, Tick::ZERO);
/// assert!(registry.find_breaker(&ScopeName::key("openai", "0")).is_some());
/// assert!(registry.find_breaker(&ScopeName::model("openai", "gpt-5")).is_none());
/// # Ok::<(), fuseline_core::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scopes(Arc<Touched>);

#[derive(Debug)]
struct Touched {
    registry: Registry,
    provider: Breaker,
    model: Option<ScopeName>,
    key: Option<ScopeName>,
    policies: Policies,
}

/// A call was refused by one of the breakers it touches: the one with the longest wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedRejection {
    /// Whose breaker.
    pub name: ScopeName,
    /// What it said.
    pub rejection: Rejection,
}

impl fmt::Display for ScopedRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rejection)
    }
}

impl core::error::Error for ScopedRejection {}

impl Scopes {
    /// The breakers behind one target.
    ///
    /// # Errors
    /// The registry is full and none of its breakers is idle.
    pub fn new(
        registry: &Registry,
        provider: ScopeName,
        model: Option<ScopeName>,
        key: Option<ScopeName>,
        policies: Policies,
        now: Tick,
    ) -> Result<Self, RegistryError> {
        let provider = registry.ensure(&provider, &policies.provider, now)?;
        Ok(Self(Arc::new(Touched {
            registry: registry.clone(),
            provider,
            model,
            key,
            policies,
        })))
    }

    /// Asks all for leave. Refused by one, nothing has changed.
    ///
    /// # Errors
    /// The refusal with the longest wait; among equals forced, then open, probing, saturated.
    pub fn try_acquire(&self, limit: Duration, now: Tick) -> Result<ScopedPermit, ScopedRejection> {
        let breakers = self.existing();
        check_all(&breakers, now).inspect_err(|refused| count(&breakers, refused, now))?;
        let mut permits = Vec::with_capacity(breakers.0.len());
        for breaker in breakers.iter() {
            match breaker.try_acquire_owned(limit, now) {
                Ok(permit) => permits.push((breaker.name().scope(), permit)),
                Err(rejection) => {
                    permits
                        .into_iter()
                        .for_each(|(_, permit): (Scope, Permit)| permit.cancel(now));
                    return Err(ScopedRejection {
                        name: breaker.name().clone(),
                        rejection,
                    });
                }
            }
        }
        Ok(ScopedPermit {
            scopes: self.clone(),
            permits,
        })
    }

    /// Asks as [`try_acquire`](Self::try_acquire) does, and changes nothing.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub fn check(&self, now: Tick) -> Result<(), ScopedRejection> {
        check_all(&self.existing(), now)
    }

    /// As [`check`](Self::check); where all would give leave, whether the next call would be a probe of one of them.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub fn check_due(&self, now: Tick) -> Result<bool, ScopedRejection> {
        let breakers = self.existing();
        check_all(&breakers, now)?;
        Ok(breakers.iter().any(|breaker| breaker.is_due(now)))
    }

    /// The states of the breakers that there are.
    pub fn states(&self, now: Tick) -> impl Iterator<Item = State> {
        let Existing(breakers) = self.existing();
        let states = breakers.map(|breaker| breaker.map(|breaker| breaker.state(now)));
        states.into_iter().flatten()
    }

    /// The settings.
    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// Whether so many further failures of the provider, or of the model, would open its circuit.
    pub fn trips_with(&self, failures: u32, now: Tick) -> bool {
        let breakers = self.existing();
        let mut charged = breakers
            .iter()
            .filter(|breaker| breaker.name().scope() != Scope::Key);
        charged.any(|breaker| breaker.snapshot(now).trips_with(failures))
    }

    /// Lets other calls of this key wait until `now + hint`, the hint capped by `max_retry_after`; a shorter hint never
    /// shortens a longer one. Only a success, or an operator's release or reset, clears it.
    pub fn hold(&self, hint: Duration, now: Tick) {
        let hint = hint.min(self.policy(Scope::Key).checked().max_retry_after);
        if let Some(key) = self.ensure(Scope::Key, now) {
            key.hold_until(now + hint);
        }
    }

    fn existing(&self) -> Existing {
        let touched = &self.0;
        let find = |name: &Option<ScopeName>| touched.registry.find_breaker(name.as_ref()?);
        let provider = Some(touched.provider.clone());
        Existing([provider, find(&touched.model), find(&touched.key)])
    }

    /// The breaker of this scope, made if need be; none where the call does not touch it or the registry is full.
    fn ensure(&self, scope: Scope, now: Tick) -> Option<Breaker> {
        let touched = &self.0;
        let (name, policy) = match scope {
            Scope::Provider => return Some(touched.provider.clone()),
            Scope::Model => (touched.model.as_ref()?, &touched.policies.model),
            Scope::Key => (touched.key.as_ref()?, &touched.policies.key),
        };
        touched.registry.ensure_or_count(name, policy, now)
    }

    fn policy(&self, scope: Scope) -> &Policy {
        match scope {
            Scope::Provider => &self.0.policies.provider,
            Scope::Model => &self.0.policies.model,
            Scope::Key => &self.0.policies.key,
        }
    }
}

/// The breakers that there are: provider's, model's, key's.
struct Existing([Option<Breaker>; 3]);

impl Existing {
    fn iter(&self) -> impl Iterator<Item = &Breaker> {
        self.0.iter().flatten()
    }
}

fn check_all(breakers: &Existing, now: Tick) -> Result<(), ScopedRejection> {
    let refusals = breakers.iter().filter_map(|breaker| {
        let own = breaker.check(now).err();
        if own.is_some_and(|own| own.reason == Reason::Probing) {
            breaker.wish(); // plans ask no further of one that refuses
        }
        let held = breaker
            .held(now)
            .filter(|_| breaker.mode() == Mode::Enforce);
        let rejection = own.into_iter().chain(held).max_by_key(rank)?;
        Some(ScopedRejection {
            name: breaker.name().clone(),
            rejection,
        })
    });
    refusals
        .max_by_key(|refused| rank(&refused.rejection))
        .map_or(Ok(()), Err)
}

fn count(breakers: &Existing, refused: &ScopedRejection, now: Tick) {
    let mut breakers = breakers.iter();
    let Some(breaker) = breakers.find(|breaker| *breaker.name() == refused.name) else {
        return;
    };
    match refused.rejection.reason {
        // A ramp counts the calls that it refuses, so it must be asked in earnest.
        Reason::Ramping => drop(breaker.try_acquire(now)),
        reason => breaker.count_rejection(reason),
    }
}

/// The longest wait first; among equals forced, open, probing, saturated.
fn rank(rejection: &Rejection) -> (Duration, core::cmp::Reverse<Reason>) {
    (rejection.retry_after, core::cmp::Reverse(rejection.reason))
}

/// Leave from all breakers that a call touches. Settles exactly once, as [`Permit`] does.
#[derive(Debug)]
#[must_use = "a permit that is dropped is cancelled: the call is not counted"]
pub struct ScopedPermit {
    scopes: Scopes,
    permits: Vec<(Scope, Permit)>,
}

impl ScopedPermit {
    /// Says how the call went. A success is one for all; a failure is charged to one scope, and is neutral for the
    /// others: to the scope that `evidence` names, else to the row of its kind.
    ///
    /// Returns the transitions that followed.
    pub fn record(self, outcome: &Outcome, evidence: Option<Scope>, now: Tick) -> Vec<Transition> {
        match outcome {
            Outcome::Neutral => {
                self.cancel(now);
                Vec::new()
            }
            Outcome::Success { .. } => {
                let touched = &self.scopes.0;
                let key = touched
                    .key
                    .as_ref()
                    .and_then(|key| touched.registry.find_breaker(key));
                if let Some(key) = key {
                    key.clear_hold();
                }
                self.settle(&[Scope::Provider, Scope::Model, Scope::Key], outcome, now)
            }
            Outcome::Failure(failure) => {
                let charged = self.charge(failure.kind(), evidence);
                if !self.scopes.policy(charged).kind(failure.kind()).count {
                    self.cancel(now);
                    return Vec::new();
                }
                let charged = if self.has_room(charged, now) {
                    charged
                } else {
                    Scope::Provider
                };
                self.settle(&[charged], outcome, now)
            }
        }
    }

    /// Whom a failure of this kind is charged to.
    ///
    /// A model's probe that never got through has failed as a probe: charged to a provider that is not half-open it
    /// would leave the model's slot free, and one call after another would knock.
    fn charge(&self, kind: Kind, evidence: Option<Scope>) -> Scope {
        let row = Scope::charged(kind, self.scopes.policy(Scope::Model).per());
        let charged = self.scopes.nearest(evidence.unwrap_or(row));
        let model_alone = self.probes(Scope::Model) && !self.probes(Scope::Provider);
        if charged == Scope::Provider && model_alone {
            Scope::Model
        } else {
            charged
        }
    }

    fn probes(&self, scope: Scope) -> bool {
        self.permits
            .iter()
            .any(|(of, permit)| *of == scope && permit.is_probe())
    }

    /// Whether this scope has a breaker, made if need be. A newcomer to a full registry is guarded by its provider.
    fn has_room(&self, scope: Scope, now: Tick) -> bool {
        self.permits.iter().any(|(of, _)| *of == scope) || self.scopes.ensure(scope, now).is_some()
    }

    /// Settles these scopes with the outcome, making the breakers that do not exist yet, and the others as neutral.
    ///
    /// A call that some scope only let through as a ghost would not have been made: no scope in shadow learns of it.
    fn settle(self, charged: &[Scope], outcome: &Outcome, now: Tick) -> Vec<Transition> {
        let Self { scopes, permits } = self;
        let ghost = permits
            .iter()
            .any(|(_, permit)| permit.would_reject().is_some());
        let learns = |scope| {
            let watches = scopes.policy(scope).mode() == Mode::Shadow;
            charged.contains(&scope) && !(ghost && watches)
        };
        let mut transitions = Vec::new();
        let mut settled = Vec::with_capacity(permits.len());
        for (scope, permit) in permits {
            settled.push(scope);
            if learns(scope) {
                transitions.extend(permit.record(outcome, now).map(|change| (scope, change)));
            } else {
                permit.cancel(now);
            }
        }
        for scope in charged
            .iter()
            .copied()
            .filter(|scope| !settled.contains(scope))
        {
            // There was no breaker to ask when the call began.
            if learns(scope)
                && let Some(breaker) = scopes.ensure(scope, now)
            {
                let change = breaker.record_as_first(outcome, now);
                transitions.extend(change.map(|change| (scope, change)));
            }
        }
        scopes.touch(charged, now);
        let opened = |(scope, change): &(Scope, Transition)| {
            *scope == Scope::Model && change.to == State::Open
        };
        if transitions.iter().any(opened) {
            let touched = &scopes.0;
            touched
                .registry
                .open_provider_with_its_models(&touched.provider, now);
        }
        transitions.into_iter().map(|(_, change)| change).collect()
    }

    /// Gives all permits back: the call says nothing about anybody.
    pub fn cancel(self, now: Tick) {
        self.permits
            .into_iter()
            .for_each(|(_, permit)| permit.cancel(now));
    }

    /// A sign of life: a probe's leases begin anew.
    pub fn progress(&self, now: Tick) {
        self.permits
            .iter()
            .for_each(|(_, permit)| permit.progress(now));
    }

    /// Whether this call is a probe of one of the breakers.
    pub fn is_probe(&self) -> bool {
        self.permits.iter().any(|(_, permit)| permit.is_probe())
    }

    /// In shadow mode, the rejection with the longest wait that an enforcing breaker would have given.
    pub fn would_reject(&self) -> Option<Rejection> {
        self.permits
            .iter()
            .filter_map(|(_, permit)| permit.would_reject())
            .max_by_key(rank)
    }

    /// Whether a further attempt under this permit makes sense: the states in which it was given still stand.
    pub fn is_current(&self, now: Tick) -> bool {
        self.permits
            .iter()
            .all(|(_, permit)| permit.is_current(now))
    }
}

impl Scopes {
    /// The scope itself, or the next wider one where the call does not touch it.
    fn nearest(&self, scope: Scope) -> Scope {
        match scope {
            Scope::Key if self.0.key.is_some() => Scope::Key,
            Scope::Key | Scope::Model if self.0.model.is_some() => Scope::Model,
            Scope::Key | Scope::Model | Scope::Provider => Scope::Provider,
        }
    }

    fn touch(&self, charged: &[Scope], now: Tick) {
        let touched = &self.0;
        let names = [
            (Scope::Provider, Some(touched.provider.name())),
            (Scope::Model, touched.model.as_ref()),
            (Scope::Key, touched.key.as_ref()),
        ];
        for (_, name) in names.iter().filter(|(scope, _)| charged.contains(scope)) {
            if let Some(name) = name {
                touched.registry.touch(name, now);
            }
        }
    }
}
