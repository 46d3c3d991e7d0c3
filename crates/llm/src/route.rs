//! `Route`: where calls for a model may go, in which order, and how much may be spent on one of them.

mod budget;
mod detour;
mod jitter;
mod pace;
mod plan;
mod rank;
mod step;
mod table;

use std::time::Duration;

pub use budget::RetryBudget;
pub use detour::{Detours, OnFailure};
pub use pace::Pace;
pub use plan::Plan;
pub use rank::{Contender, Strategy};
pub use step::{Admission, Reason, Standing, Step};
pub(crate) use table::is_outcome_unknown;

use crate::target::Target;

/// What one call may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time until an answer is committed, all targets and waits together.
    pub budget: Duration,
    /// Further attempts on the same target.
    pub retries: u32,
    /// Attempts on all targets together.
    pub max_attempts: u32,
    /// The longest wait on a provider's hint.
    pub max_wait: Duration,
    /// Whether a request that may be running somewhere without our knowing its end is sent again like any other.
    pub resend_unknown: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(120),
            retries: 1,
            max_attempts: 6,
            max_wait: Duration::from_secs(30),
            resend_unknown: false,
        }
    }
}

/// Whether a call may go to another target than the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: it may, or it may not"
)]
pub enum Fallback {
    /// It may.
    #[default]
    On,
    /// It may not; other keys of the first target are still that target.
    Off,
}

/// The ordered targets of a model, or of a pattern of models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The model as the configuration writes it, such as `gpt-*`.
    pub pattern: String,
    /// The targets, the preferred first. Several keys of one provider are several targets.
    pub targets: Vec<Target>,
    /// What one call may spend.
    pub limits: Limits,
}

impl Route {
    /// A route with default limits.
    pub fn new(pattern: impl Into<String>, targets: Vec<Target>) -> Self {
        Self {
            pattern: pattern.into(),
            targets,
            limits: Limits::default(),
        }
    }

    /// The targets that a call may use.
    pub fn candidates(&self, fallback: Fallback) -> Vec<Target> {
        let first = self.targets.first();
        let allowed = |target: &&Target| match fallback {
            Fallback::On => true,
            Fallback::Off => first.is_some_and(|first| first.is_same_model(target)),
        };
        self.targets.iter().filter(allowed).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Owner;

    #[test]
    fn without_fallback_only_the_first_target_is_left_with_all_its_keys() {
        let target = |provider, key| Target::new(provider, "m", key, Owner::Gateway);
        let route = Route::new(
            "*",
            vec![target("a", "k1"), target("b", "k2"), target("a", "k3")],
        );
        assert_eq!(route.candidates(Fallback::On), route.targets);
        assert_eq!(
            route.candidates(Fallback::Off),
            [target("a", "k1"), target("a", "k3")]
        );
        assert_eq!(Route::new("*", Vec::new()).candidates(Fallback::Off), []);
    }
}
