//! `State`, and the two packed words that the hot path reads.
//!
//! The state word holds what a caller must know to be let through or refused without the lock: the state's tag, the
//! generation, and one deadline. The run word holds what a success must know to be counted without the lock: the
//! generation, the run of failures, whether a success may decide something, and how many failures may wait. Both are written under the lock only.
//!
//! Hot path. No lock, no allocation, no clock read, no log.

use core::fmt;

use crate::tick::Tick;

/// The state of a breaker, as its next operation would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[expect(clippy::exhaustive_enums, reason = "complete by definition")]
pub enum State {
    /// Calls pass.
    Closed,
    /// Calls pass; a trip rule is near its threshold.
    Degraded,
    /// Calls are rejected until the cooldown ends.
    Open,
    /// A few probes pass, the rest is rejected.
    HalfOpen,
    /// An operator rejects all calls.
    ForcedOpen,
    /// An operator lets all calls pass.
    ForcedClosed,
}

impl State {
    /// Every state, in the order of the machine.
    pub const ALL: [Self; 6] = [
        Self::Closed,
        Self::Degraded,
        Self::Open,
        Self::HalfOpen,
        Self::ForcedOpen,
        Self::ForcedClosed,
    ];

    /// The name in logs, metrics and replays.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Degraded => "degraded",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A breaker's count of entered states, as far as a permit carries it: 24 bits, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    const BITS: u32 = 24;
    const MASK: u32 = (1 << Self::BITS) - 1;
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) const fn next(self) -> Self {
        Self((self.0 + 1) & Self::MASK)
    }

    #[inline]
    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    /// The low 24 bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::MASK)
    }
}

/// What the state word says without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Deadline: until when admission ramps; 0 = it does not.
    Closed,
    /// Deadline: the end of the cooldown.
    Open,
    /// Deadline: the end of the first lease while all slots are taken; 0 = a slot may be free.
    HalfOpen,
    /// Deadline: the expiry; the largest = none.
    ForcedOpen,
    /// Deadline: the expiry; the largest = none.
    ForcedClosed,
}

/// The state word: tag (3 bits), generation (24), deadline (37, in ms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    const DEADLINE_BITS: u32 = 37;
    /// Stands for "never". A real deadline is kept below it; the locked side knows it exactly.
    pub(crate) const NEVER: u64 = (1 << Self::DEADLINE_BITS) - 1;

    pub(crate) fn new(tag: Tag, generation: Generation, deadline: Deadline) -> Self {
        let deadline = match deadline {
            Deadline::None => 0,
            Deadline::At(tick) => tick.as_millis().min(Self::NEVER - 1),
            Deadline::Never => Self::NEVER,
        };
        let tag = match tag {
            Tag::Closed => 0_u64,
            Tag::Open => 1,
            Tag::HalfOpen => 2,
            Tag::ForcedOpen => 3,
            Tag::ForcedClosed => 4,
        };
        Self(tag << 61 | u64::from(generation.0) << Self::DEADLINE_BITS | deadline)
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn tag(self) -> Tag {
        match self.0 >> 61 {
            0 => Tag::Closed,
            1 => Tag::Open,
            2 => Tag::HalfOpen,
            3 => Tag::ForcedOpen,
            _ => Tag::ForcedClosed,
        }
    }

    pub(crate) const fn generation(self) -> Generation {
        Generation((self.0 >> Self::DEADLINE_BITS) as u32 & Generation::MASK)
    }

    /// Milliseconds; 0 = none, [`Word::NEVER`] = never.
    pub(crate) const fn deadline(self) -> u64 {
        self.0 & Self::NEVER
    }
}

/// What to write into a word's deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    None,
    At(Tick),
    Never,
}

/// When a success must go through the lock although the run is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// No rule has the hits to trip: a success decides nothing.
    Nothing,
    /// A rule has hits and calls enough: its share can rise only as good calls leave the window, so the first success
    /// of a shard in a new bucket is evaluated.
    NewBucket,
    /// A rule has the hits but too few calls: any success may complete `min_calls`.
    Every,
}

/// The run word: generation (24 bits), allowance (6, its logarithm), watch (2), run of failures (32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunWord(u64);

impl RunWord {
    pub(crate) fn new(generation: Generation, run: u32, watch: Watch) -> Self {
        let watch = match watch {
            Watch::Nothing => 0_u64,
            Watch::NewBucket => 1,
            Watch::Every => 2,
        };
        Self(u64::from(generation.0) << 40 | watch << 32 | u64::from(run))
    }

    /// As it is, but so many failures may wait in each backlog, rounded down to a power of two below 2^32.
    pub(crate) fn with_allowance(self, failures: u64) -> Self {
        let bits = failures.checked_ilog2().map_or(0, |log| log.min(31) + 1);
        Self(self.0 | u64::from(bits) << 34)
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn generation(self) -> Generation {
        Generation((self.0 >> 40) as u32)
    }

    pub(crate) const fn allowance(self) -> u64 {
        1 << (self.0 >> 34 & 0x3f) >> 1
    }

    pub(crate) const fn run(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn watch(self) -> Watch {
        match (self.0 >> 32) & 0b11 {
            0 => Watch::Nothing,
            1 => Watch::NewBucket,
            _ => Watch::Every,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_back_what_was_packed() {
        let mut generation = Generation::FIRST;
        for tag in [
            Tag::Closed,
            Tag::Open,
            Tag::HalfOpen,
            Tag::ForcedOpen,
            Tag::ForcedClosed,
        ] {
            generation = Generation(generation.next().get() + 3_000_000);
            for (deadline, ms) in [
                (Deadline::None, 0),
                (Deadline::At(Tick::from_millis(77)), 77),
                (Deadline::At(Tick::MAX), Word::NEVER - 1),
                (Deadline::Never, Word::NEVER),
            ] {
                let word = Word::from_bits(Word::new(tag, generation, deadline).to_bits());
                assert_eq!(
                    (word.tag(), word.generation(), word.deadline()),
                    (tag, generation, ms)
                );
            }
        }
        for watch in [Watch::Nothing, Watch::NewBucket, Watch::Every] {
            for (allowance, kept) in [(0, 0), (1, 1), (7, 4), (u64::MAX, 1 << 31)] {
                let run = RunWord::new(generation, u32::MAX, watch).with_allowance(allowance);
                let run = RunWord::from_bits(run.to_bits());
                assert_eq!(
                    (run.generation(), run.run(), run.watch(), run.allowance()),
                    (generation, u32::MAX, watch, kept)
                );
            }
        }
    }

    #[test]
    fn the_generation_wraps_within_its_bits() {
        assert_eq!(Generation(Generation::MASK).next(), Generation::FIRST);
    }

    #[test]
    fn states_have_the_names_that_logs_and_replays_know() {
        let names = State::ALL.map(|state| state.to_string());
        assert_eq!(
            names,
            [
                "closed",
                "degraded",
                "open",
                "half_open",
                "forced_open",
                "forced_closed"
            ]
        );
    }
}
