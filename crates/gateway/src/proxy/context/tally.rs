//! `Tally`: one call's attempts that are under way, each counted once, as it ends.

use fuseline_core::Kind;
use fuseline_llm::Target;
use fuseline_telemetry::{EndedCall, Metrics};

/// What is to be counted of one call. Two attempts may be under way at once.
pub(super) struct Tally {
    metrics: Metrics,
    under_way: Vec<Target>,
}

impl Tally {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            metrics: metrics.clone(),
            under_way: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, target: &Target) {
        self.under_way.push(target.clone());
    }

    /// What came of the attempt at this target, if one is under way; no kind is a success.
    pub(super) fn end(&mut self, target: &Target, kind: Option<Kind>) {
        if self.forget(target) {
            self.metrics
                .attempt(target.provider(), target.model(), kind);
        }
    }

    /// It was no attempt. Whether there was one.
    pub(super) fn forget(&mut self, target: &Target) -> bool {
        let at = self.under_way.iter().position(|other| other == target);
        at.map(|at| self.under_way.swap_remove(at)).is_some()
    }

    pub(super) const fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The call is over, and whatever is still under way is given up.
    pub(super) fn close(&mut self, call: &EndedCall) {
        for target in std::mem::take(&mut self.under_way) {
            let (provider, model) = (target.provider(), target.model());
            self.metrics.attempt(provider, model, Some(Kind::Cancelled));
        }
        self.metrics.call(call);
    }
}
