//! `SavedBreaker`: what of a breaker outlives its process, as plain data: what a store keeps and gives back.
//!
//! Instants are of the registry's clock; who keeps them longer translates them. Settings are not part of it: a restored
//! breaker has those that it is made with. Nor are permits: whatever was out when the state was taken is late afterwards.

use core::time::Duration;

use crate::breaker::Breaker;
use crate::event::Why;
use crate::kind::Kind;
use crate::scope::ScopeName;
use crate::state::State;
use crate::tick::Tick;

/// A breaker's state, taken by [`Breaker::export`] and put back by [`Breaker::restore`].
///
/// ```
/// use fuseline_core::{Breaker, Kind, Outcome, Policy, ScopeName, State, Tick};
///
/// let now = Tick::from_millis(1_000);
/// let name = ScopeName::provider("openai");
/// let before = Breaker::new(name.clone(), Policy::default());
/// for _ in 0..5 {
///     before.try_acquire(now)?.record(&Outcome::failure(Kind::ServerError), now);
/// }
/// let saved = before.export(now);
///
/// let after = Breaker::new(name, Policy::default());
/// after.restore(&saved, now);
/// assert_eq!(after.state(now), State::Open);
/// assert_eq!(after.try_acquire(now).unwrap_err(), before.try_acquire(now).unwrap_err());
/// # Ok::<(), fuseline_core::Rejection>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that stores write out"
)]
pub struct SavedBreaker {
    /// The name, which tells the scope.
    pub name: ScopeName,
    /// The state. `half_open` is restored as an `open` whose cooldown is over: its probes are gone.
    pub state: State,
    /// When it was entered.
    pub since: Tick,
    /// When an `open` or a forced state ends, where that is known. An `open` without is over.
    pub until: Option<Tick>,
    /// Failed probe episodes since it was last closed.
    pub episodes: u32,
    /// Since when it has not been closed, if it opened.
    pub incident_since: Option<Tick>,
    /// Until when the provider asked this key to wait, if that is not over.
    pub hold_until: Option<Tick>,
    /// Failures with no success between them.
    pub run: u32,
    /// Failures by kind, less what successes took back; only kinds with any.
    pub kinds: Vec<(Kind, u32)>,
    /// What the sliding windows hold; only those that hold anything.
    pub windows: Vec<SavedWindow>,
    /// Why it is not closed, as told once it is restored: the cause is [`Cause::Restored`](crate::Cause::Restored).
    pub why: Option<Why>,
}

/// One sliding window's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that stores write out"
)]
pub struct SavedWindow {
    /// What is counted.
    pub counted: Counted,
    /// How far it looks back. Where no rule has such a window any more, the counts are dropped.
    pub window: Duration,
    /// How many, by the last instant at which they can have happened; in the order of time.
    pub buckets: Vec<(Tick, u32)>,
}

/// What a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by the trip rules there are"
)]
pub enum Counted {
    /// Every call.
    Calls,
    /// Counted failures.
    Failures,
    /// Successes that took longer than this, in whole milliseconds.
    Slow(Duration),
}

impl SavedBreaker {
    /// Whether a fresh breaker would do as well: closed, with nothing counted.
    pub fn is_fresh(&self) -> bool {
        matches!(self.state, State::Closed | State::Degraded)
            && self.run == 0
            && self.kinds.is_empty()
            && self.windows.is_empty()
            && self.hold_until.is_none()
    }

    /// The latest call that is counted, else when the state was entered.
    pub(crate) fn last_used(&self) -> Tick {
        let buckets = self
            .windows
            .iter()
            .filter_map(|window| window.buckets.last());
        buckets.map(|(at, _)| *at).fold(self.since, Tick::max)
    }
}

impl Breaker {
    /// What of this breaker outlives its process. Taking it has no effect.
    pub fn export(&self, now: Tick) -> SavedBreaker {
        let name = self.name().clone();
        self.0
            .ask(now, |machine, hot, now| machine.export(hot, name, now))
    }

    /// Puts a state back that was taken from a breaker of this name, perhaps in another process, under these settings.
    ///
    /// It begins a generation: outcomes of calls that began before are late. An `open` keeps its end, a forced state
    /// its expiry. One that is not closed then is remembered as a transition with cause
    /// [`Cause::Restored`](crate::Cause::Restored), which counts in no total of states entered. A ramp is not kept.
    pub fn restore(&self, saved: &SavedBreaker, now: Tick) {
        if let Some(until) = saved.hold_until {
            self.hold_until(until);
        }
        self.0.restore(saved, now);
    }
}
