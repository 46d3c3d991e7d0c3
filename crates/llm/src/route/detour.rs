//! `Detours`: what an operator wants after failures of some kinds, instead of what the table says.

use std::collections::BTreeMap;
use std::ops::Range;

use fuseline_core::Kind;

/// What to do after a failure of one kind. Whatever it is, the same target is not asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// Go to the next target.
    Next,
    /// Return the answer as it came.
    Return,
    /// Go to the next target whose context is larger; smaller ones are out for the rest of the call.
    Bigger,
    /// Go to these targets first, by their indexes in the plan.
    To(Vec<usize>),
}

/// An operator's rules for one call's targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detours {
    /// By kind of failure.
    pub on: BTreeMap<Kind, OnFailure>,
    /// The targets that are reached by [`OnFailure::To`] alone.
    pub aside: Range<usize>,
    /// The context of each target in tokens, as far as it is known.
    pub contexts: Vec<Option<u64>>,
}

impl Detours {
    pub(super) fn context(&self, at: usize) -> Option<u64> {
        self.contexts.get(at).copied().flatten()
    }
}
