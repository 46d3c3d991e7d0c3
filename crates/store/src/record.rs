//! `Record`: a breaker's state as stores keep it, in times that outlive the process.
//!
//! An end is kept twice. A process of the same boot restores it by the machine's own time, to the millisecond whatever
//! the wall clock has done since; one of another boot by the wall clock, within 0 and the full length, so that no step
//! of it can shut a provider out for longer than the breaker would have. What lies in the past is kept as its age.

use core::time::Duration;
use std::collections::BTreeMap;

use fuseline_core::{
    Cause, Counted, FailureNote, Kind, SavedBreaker, SavedWindow, ScopeName, State, Tick, Why,
};
use serde::{Deserialize, Serialize};

use crate::moment::{Boot, Moment};

/// A breaker's state at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The breaker.
    pub name: ScopeName,
    /// Its state.
    pub state: State,
    /// When it was entered, in ms since 1970.
    pub since_ms: u64,
    /// When an `open` or a forced state ends, where that is known.
    pub end: Option<End>,
    /// When the state was taken, in ms since 1970.
    pub taken_ms: u64,
    /// The same by the machine.
    pub boot: Option<Boot>,
    /// What is counted.
    pub counts: Counts,
}

/// When a state ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// In ms since 1970.
    pub wall_ms: u64,
    /// In ms since the boot under which the record was taken.
    pub boot_ms: Option<u64>,
    /// How long the state lasts in all.
    pub full_ms: u64,
}

/// What a breaker has counted. Ages and what is left are as of the record's moment, in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counts {
    /// Failures with no success between them.
    pub run: u32,
    /// Failed probe episodes since the breaker was last closed.
    pub episodes: u32,
    /// Failures by kind.
    pub kinds: BTreeMap<String, u32>,
    /// For how long it has not been closed, if it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident_age: Option<u64>,
    /// How much is left of the wait that the provider asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_left: Option<u64>,
    /// The sliding windows.
    pub windows: Vec<Window>,
    /// Why it is not closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Reasons>,
}

/// One sliding window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Window {
    /// `calls`, `failures` or `slow`.
    pub counted: WindowOf,
    /// The limit of `slow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than: Option<u64>,
    /// How far it looks back.
    pub window: u64,
    /// Age and count of each bucket that holds anything, oldest first. One that is filling has a negative age.
    pub buckets: Vec<(i64, u32)>,
}

/// What a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by the trip rules there are"
)]
pub enum WindowOf {
    /// Every call.
    Calls,
    /// Counted failures.
    Failures,
    /// Slow successes.
    Slow,
}

/// Why a breaker is not closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reasons {
    /// What was observed.
    pub observed: f64,
    /// What it was held against.
    pub threshold: f64,
    /// The kind of the failure that decided.
    pub kind: Option<String>,
    /// Age, kind and code of the latest failures, oldest first.
    pub failures: Vec<(u64, String, Option<u16>)>,
}

impl Record {
    /// The state as it is kept, taken at `now`.
    pub fn of(saved: &SavedBreaker, now: &Moment) -> Self {
        let end = saved.until.map(|until| End {
            wall_ms: now.wall_of(until),
            boot_ms: now.boot_of(until),
            full_ms: millis(until.since(saved.since)),
        });
        let age = |at: Tick| millis(now.tick.since(at));
        Self {
            name: saved.name.clone(),
            state: saved.state,
            since_ms: now.wall_of(saved.since),
            end,
            taken_ms: now.wall_ms,
            boot: now.boot.clone(),
            counts: Counts {
                run: saved.run,
                episodes: saved.episodes,
                kinds: saved
                    .kinds
                    .iter()
                    .map(|(kind, count)| (kind.as_str().to_owned(), *count))
                    .collect(),
                incident_age: saved.incident_since.map(age),
                hold_left: saved.hold_until.map(|until| millis(until.since(now.tick))),
                windows: saved
                    .windows
                    .iter()
                    .map(|window| Window::of(window, now.tick))
                    .collect(),
                why: saved.why.as_ref().map(|why| Reasons::of(why, now.tick)),
            },
        }
    }

    /// The state as it stands at `now`, for a breaker to be restored.
    pub fn saved(&self, now: &Moment) -> SavedBreaker {
        let passed = self.passed(now);
        let past = |age: u64| back(now.tick, passed.saturating_add(age));
        let left = self.end.map(|end| self.left(&end, now));
        let counts = &self.counts;
        let hold_left = counts.hold_left.map(|left| left.saturating_sub(passed));
        SavedBreaker {
            name: self.name.clone(),
            state: self.state,
            since: past(self.taken_ms.saturating_sub(self.since_ms)),
            until: left.map(|left| now.tick + Duration::from_millis(left)),
            episodes: counts.episodes,
            incident_since: counts.incident_age.map(past),
            hold_until: hold_left
                .filter(|left| *left > 0)
                .map(|left| now.tick + Duration::from_millis(left)),
            run: counts.run,
            kinds: counts
                .kinds
                .iter()
                .filter_map(|(kind, count)| Some((kind.parse().ok()?, *count)))
                .collect(),
            windows: counts
                .windows
                .iter()
                .map(|window| window.saved(now.tick, passed))
                .collect(),
            why: counts.why.as_ref().map(|why| why.restored(past)),
        }
    }

    /// For how long nothing has held it in its state, in ms: since its end, or, where it has none, since its counts
    /// last changed. A state that lasts until somebody ends it is always in use.
    pub fn unused_for(&self, now: &Moment) -> u64 {
        match (self.end, self.same_boot(now)) {
            (
                Some(End {
                    boot_ms: Some(end), ..
                }),
                Some(boot),
            ) => boot.saturating_sub(end),
            (Some(end), _) => now.wall_ms.saturating_sub(end.wall_ms),
            (None, _) if matches!(self.state, State::ForcedOpen | State::ForcedClosed) => 0,
            (None, _) => self.passed(now),
        }
    }

    /// What is left of it.
    fn left(&self, end: &End, now: &Moment) -> u64 {
        let left = match self.same_boot(now).zip(end.boot_ms) {
            Some((boot, end)) => end.saturating_sub(boot),
            None => end.wall_ms.saturating_sub(now.wall_ms),
        };
        left.min(end.full_ms)
    }

    /// Milliseconds since the record was taken.
    fn passed(&self, now: &Moment) -> u64 {
        match self.same_boot(now).zip(self.boot.as_ref()) {
            Some((boot, taken)) => boot.saturating_sub(taken.ms),
            None => now.wall_ms.saturating_sub(self.taken_ms),
        }
    }

    /// The machine's time now, if it has been running since.
    fn same_boot(&self, now: &Moment) -> Option<u64> {
        let (then, now) = (self.boot.as_ref()?, now.boot.as_ref()?);
        (then.id == now.id).then_some(now.ms)
    }
}

impl Window {
    fn of(saved: &SavedWindow, now: Tick) -> Self {
        let (counted, slower_than) = match saved.counted {
            Counted::Calls => (WindowOf::Calls, None),
            Counted::Failures => (WindowOf::Failures, None),
            Counted::Slow(limit) => (WindowOf::Slow, Some(millis(limit))),
        };
        let age = |at: Tick| now.as_millis().cast_signed() - at.as_millis().cast_signed();
        Self {
            counted,
            slower_than,
            window: millis(saved.window),
            buckets: saved
                .buckets
                .iter()
                .map(|(at, count)| (age(*at), *count))
                .collect(),
        }
    }

    fn saved(&self, now: Tick, passed: u64) -> SavedWindow {
        let limit = Duration::from_millis(self.slower_than.unwrap_or(0));
        let at = |age: i64| {
            let ago = passed.cast_signed().saturating_add(age);
            Tick::from_millis(now.as_millis().saturating_add_signed(ago.saturating_neg()))
        };
        SavedWindow {
            counted: match self.counted {
                WindowOf::Calls => Counted::Calls,
                WindowOf::Failures => Counted::Failures,
                WindowOf::Slow => Counted::Slow(limit),
            },
            window: Duration::from_millis(self.window),
            buckets: self
                .buckets
                .iter()
                .map(|(age, count)| (at(*age), *count))
                .collect(),
        }
    }
}

impl Reasons {
    fn of(why: &Why, now: Tick) -> Self {
        let failure = |note: &FailureNote| {
            let age = millis(now.since(note.at));
            (age, note.kind.as_str().to_owned(), note.code)
        };
        Self {
            observed: why.observed,
            threshold: why.threshold,
            kind: why.kind.map(|kind| kind.as_str().to_owned()),
            failures: why.last_failures.iter().map(failure).collect(),
        }
    }

    fn restored(&self, past: impl Fn(u64) -> Tick) -> Why {
        let note = |(age, kind, code): &(u64, String, Option<u16>)| {
            Some(FailureNote {
                at: past(*age),
                kind: kind.parse().ok()?,
                code: *code,
            })
        };
        Why {
            cause: Cause::Restored,
            observed: self.observed,
            threshold: self.threshold,
            kind: self
                .kind
                .as_ref()
                .and_then(|kind| kind.parse::<Kind>().ok()),
            last_failures: self.failures.iter().filter_map(note).collect(),
        }
    }
}

fn back(now: Tick, by: u64) -> Tick {
    Tick::from_millis(now.as_millis().saturating_sub(by))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
