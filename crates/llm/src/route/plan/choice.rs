//! Which targets come into question, and which of them is next.

use std::time::Duration;

use super::{Plan, sooner};
use crate::route::OnFailure;
use crate::route::step::Admission;
use crate::target::Target;

impl Plan {
    /// The targets that may still be visited: first those that a rule asks for, then the route's own.
    pub(super) fn eligible(&self) -> [Vec<usize>; 2] {
        let is_open = |at: &usize| {
            let fits = self
                .outgrown
                .is_none_or(|size| self.detours.context(*at) > Some(size));
            fits && self.spent.get(*at) == Some(&false)
        };
        let wanted: Vec<usize> = self.wanted.iter().copied().filter(is_open).collect();
        let others = (0..self.targets.len())
            .filter(|at| !self.detours.aside.contains(at) && is_open(at) && !wanted.contains(at));
        let others = others.collect();
        [wanted, others]
    }

    /// The first of these that admits, one that is due for a probe before all others.
    pub(super) fn choose(
        &mut self,
        list: &[usize],
        mut admission: impl FnMut(&Target) -> Admission,
        held: &mut Option<Duration>,
    ) -> Option<usize> {
        let mut chosen = None;
        for &at in list {
            let Some(target) = self.targets.get(at) else {
                continue;
            };
            match admission(target) {
                Admission::Probe => return Some(at),
                Admission::Ready => chosen = chosen.or(Some(at)),
                Admission::Held(wait) => {
                    *held = sooner(*held, wait);
                    self.soonest = sooner(self.soonest, wait);
                }
                Admission::Refused(wait) => self.soonest = sooner(self.soonest, wait),
            }
        }
        chosen
    }

    /// Takes an operator's rule to heart; says whether the call goes on.
    pub(super) fn follow(&mut self, rule: OnFailure, failed: usize) -> bool {
        match rule {
            OnFailure::Return => return false,
            OnFailure::Next => {}
            OnFailure::Bigger => {
                self.outgrown = Some(self.detours.context(failed).unwrap_or_default());
            }
            OnFailure::To(targets) => self.wanted = targets,
        }
        true
    }
}
