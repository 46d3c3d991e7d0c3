//! `Driven`: an attempt with a clock.

use std::ops::{Deref, DerefMut};

use fuseline_core::{Clock, Tick};
use fuseline_llm::{Attempt, Fault, Verdict};

use super::client::Reuse;
use super::limits::{Limit, Limits};
use super::roster::{Doubt, Taken};

/// An attempt with a clock: one that is dropped is cancelled as of that moment.
pub(crate) struct Driven {
    attempt: Attempt,
    pub(crate) clock: Clock,
    /// How long it may take to do what.
    pub(crate) limits: Limits,
    /// What is to be thought of other connections, should this one's be replaced.
    pub(crate) reuse: Reuse,
    /// Its place among the calls that its target may have at once.
    _place: Option<Taken>,
    /// While it is repeated.
    pub(crate) doubt: Option<Doubt>,
}

impl Driven {
    pub(crate) fn new(
        attempt: Attempt,
        clock: Clock,
        limits: Limits,
        place: Option<Taken>,
    ) -> Self {
        Self {
            attempt,
            clock,
            limits,
            reuse: Reuse::Allowed,
            _place: place,
            doubt: None,
        }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    pub(crate) fn fault(&mut self, fault: Fault) -> Verdict {
        let now = self.now();
        self.failed(fault, now)
    }

    pub(crate) fn passed(&mut self, limit: Limit) -> Verdict {
        let now = self.now();
        self.late(limit.name, limit.after, now)
    }
}

impl Deref for Driven {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.attempt
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Attempt {
        &mut self.attempt
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.attempt.cancelled(now);
    }
}
