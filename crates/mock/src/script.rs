//! `Script`: which request gets which reply, by order, by rule and by time.
//!
//! A script is a list of phases in time; a phase answers, refuses or resets connections; an answering phase picks the first
//! rule that fits the request, else its own replies. Only the time since the script was set decides the phase.

mod conduct;

use std::time::Duration;

use crate::Reply;
use crate::error::ScriptError;
use crate::request::Facts;

pub use conduct::{Conduct, Rule};
pub(crate) use conduct::{Doorway, Key};

/// Which request gets which reply. See the [crate's front page](crate) for the same as a file.
#[derive(Clone, Debug)]
#[must_use]
pub struct Script {
    phases: Vec<Phase>,
}

/// One stretch of a script's time.
#[derive(Clone, Debug)]
#[must_use]
pub struct Phase {
    after: Duration,
    conduct: Conduct,
}

impl Script {
    /// The same conduct for ever: a [`Reply`] or a [`Conduct`].
    pub fn always(conduct: impl Into<Conduct>) -> Self {
        Self::phases([Phase::at(Duration::ZERO, conduct)])
    }

    /// One reply per request; the last repeats.
    pub fn sequence(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::always(Conduct::sequence(replies))
    }

    /// One reply per request, over and over: a provider that flaps.
    pub fn cycle(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::always(Conduct::cycle(replies))
    }

    /// Nobody listens: connections are refused.
    pub fn refuse() -> Self {
        Self::always(Conduct::refuse())
    }

    /// Connections are accepted and reset at once.
    pub fn reset_on_accept() -> Self {
        Self::always(Conduct::reset_on_accept())
    }

    /// An incident over time. The first phase begins at zero, each later one after the one before.
    pub fn phases(phases: impl IntoIterator<Item = Phase>) -> Self {
        Self {
            phases: phases.into_iter().collect(),
        }
    }

    /// Adds a rule to every phase that answers.
    pub fn rule(mut self, rule: Rule) -> Self {
        for phase in &mut self.phases {
            if phase.conduct.doorway == Doorway::Accept {
                phase.conduct.rules.push(rule.clone());
            }
        }
        self
    }

    /// When each phase after the first begins.
    pub fn changes(&self) -> impl Iterator<Item = Duration> {
        self.phases.iter().skip(1).map(|phase| phase.after)
    }

    /// Finds what no provider could do, naming the place as a script file would.
    pub(crate) fn check(&self) -> Result<(), ScriptError> {
        let Some(first) = self.phases.first() else {
            return Err(ScriptError::new(
                "phases",
                "a script needs at least one phase",
            ));
        };
        if !first.after.is_zero() {
            let text = format!(
                "after is {:?}; the first phase begins at \"0s\"",
                first.after
            );
            return Err(ScriptError::new("phases[0]", text));
        }
        let alone = self.phases.len() == 1;
        let mut before = None;
        for (index, phase) in self.phases.iter().enumerate() {
            let place = if alone {
                String::new()
            } else {
                format!("phases[{index}]")
            };
            if before.is_some_and(|before| phase.after <= before) {
                let text = format!(
                    "after is {:?}, must be later than the phase before",
                    phase.after
                );
                return Err(ScriptError::new(place, text));
            }
            before = Some(phase.after);
            phase.conduct.check(&place)?;
        }
        Ok(())
    }

    /// What happens to a connection made now.
    pub(crate) fn doorway(&self, elapsed: Duration) -> Doorway {
        let phase = self.phases.iter().rfind(|phase| phase.after <= elapsed);
        phase.map_or(Doorway::Accept, |phase| phase.conduct.doorway)
    }

    /// When the next phase begins, since the start.
    pub(crate) fn next_change(&self, elapsed: Duration) -> Option<Duration> {
        self.phases
            .iter()
            .map(|phase| phase.after)
            .find(|after| *after > elapsed)
    }

    /// The reply for a request made now; `None` where connections do not live.
    pub(crate) fn reply(&mut self, elapsed: Duration, facts: &Facts) -> Option<Reply> {
        let phase = self
            .phases
            .iter_mut()
            .rfind(|phase| phase.after <= elapsed)?;
        phase.conduct.reply(facts)
    }
}

impl<C: Into<Conduct>> From<C> for Script {
    fn from(conduct: C) -> Self {
        Self::always(conduct)
    }
}

impl Phase {
    /// This conduct (a [`Reply`] or a [`Conduct`]), from this long after the start of the script.
    pub fn at(after: Duration, conduct: impl Into<Conduct>) -> Self {
        Self {
            after,
            conduct: conduct.into(),
        }
    }
}

#[cfg(test)]
mod tests;
