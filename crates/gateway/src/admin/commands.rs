//! An operator's commands: force, release, reset. Each is logged with the note that came with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuseline_core::{Breaker, Registry, ScopeName, State, Tick};
use serde::Deserialize;

/// Longest note taken, in characters.
const MAX_NOTE: usize = 500;
/// Notes kept at once.
const MAX_NOTES: usize = 500;
/// Longest time that a state is forced for; without end is a choice of its own.
const MAX_FORCED: Duration = Duration::from_secs(365 * 86_400);

/// `POST /breakers/{name}/force`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Force {
    to: Forced,
    /// A duration such as "10m"; none = until it is released.
    #[serde(default, rename = "for")]
    lasts: Option<String>,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Forced {
    Open,
    Closed,
}

/// What operators wrote, as long as the state that they forced holds.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<BTreeMap<ScopeName, (u32, String)>>);

impl Force {
    /// Forces the breaker, or says what is wrong with the command.
    pub(super) fn carry_out(
        self,
        breaker: &Breaker,
        notes: &Notes,
        now: Tick,
    ) -> Result<(), String> {
        let lasts = self.lasts.as_deref().map(duration).transpose()?;
        let note = self.note.unwrap_or_default();
        let long = note.chars().count();
        if long > MAX_NOTE {
            return Err(format!(
                "note is {long} characters long; write at most {MAX_NOTE}"
            ));
        }
        let until = lasts.map(|lasts| now + lasts);
        match self.to {
            Forced::Open => breaker.force_open(until, now),
            Forced::Closed => breaker.force_closed(until, now),
        }
        tracing::warn!(breaker = %breaker.name(), to = ?self.to, lasts = ?lasts, note, "forced by an operator");
        notes.write(breaker, note, now);
        Ok(())
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(1)..=MAX_FORCED;
    humantime::parse_duration(text)
        .ok()
        .filter(|lasts| allowed.contains(lasts))
        .ok_or_else(|| {
            format!("for = {text:?} is no duration of 1 ms to 365 days; write one such as \"10m\"")
        })
}

/// Ends a forced state, and a hold.
pub(super) fn release(breaker: &Breaker, now: Tick) {
    breaker.release(now);
    tracing::warn!(breaker = %breaker.name(), "released by an operator");
}

/// Back to a fresh `closed`.
pub(super) fn reset(breaker: &Breaker, now: Tick) {
    breaker.reset(now);
    tracing::warn!(breaker = %breaker.name(), "reset by an operator");
}

/// Ends every forced state, and every hold; gives how many breakers had one.
pub(super) fn release_all(registry: &Registry) -> usize {
    let now = registry.now();
    let mut breakers = registry.breakers();
    breakers.retain(|breaker| {
        let snapshot = breaker.snapshot(now);
        let is_forced = matches!(snapshot.state, State::ForcedOpen | State::ForcedClosed);
        is_forced || snapshot.hold_until.is_some()
    });
    for breaker in &breakers {
        release(breaker, now);
    }
    breakers.len()
}

/// A fresh `closed` for every breaker there is; gives how many that were.
pub(super) fn reset_all(registry: &Registry) -> usize {
    let breakers = registry.breakers();
    for breaker in &breakers {
        reset(breaker, registry.now());
    }
    breakers.len()
}

impl Notes {
    /// The note on the state that the breaker is in.
    pub(super) fn read(&self, breaker: &Breaker, now: Tick) -> Option<String> {
        let generation = breaker.snapshot(now).generation;
        let notes = self.lock();
        let (of, note) = notes.get(breaker.name())?;
        (*of == generation).then(|| note.clone())
    }

    fn write(&self, breaker: &Breaker, note: String, now: Tick) {
        let mut notes = self.lock();
        if note.is_empty() {
            notes.remove(breaker.name());
        } else {
            let generation = breaker.snapshot(now).generation;
            if notes.len() >= MAX_NOTES {
                notes.pop_first();
            }
            notes.insert(breaker.name().clone(), (generation, note));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ScopeName, (u32, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
