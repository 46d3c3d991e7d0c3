//! The hot path: what a call touches while nothing is wrong, and while the breaker is plainly open.
//!
//! **Leave** is one load of the state word. **A success** is counted in the thread's own shard if the run is 0 and no
//! rule could trip; after its add, which is a barrier, it looks at the run word again, while the locked side publishes the
//! run word, fences, then sums. Whatever the order, either the sum has the add or the success sees the word and goes through the
//! lock: no trip is missed.
//!
//! **A failure** within a run, under rules so far away that the run word allows some to wait, is kept in the thread's own
//! backlog by the same two looks at the run word. Whoever takes the lock first withdraws the allowance, fences, then takes up
//! what waits: whatever the order, either he takes the failure up or the failure sees the word and goes through the lock.
//!
//! Hot path. No lock, no allocation, no clock read, no log.

use core::time::Duration;

use crate::event::{Reason, Rejection};
use crate::machine::{FORCED_WAIT, SOON};
use crate::outcome::Failure;
use crate::policy::{Checked, Mode};
use crate::rules::slow_limit;
use crate::state::{Generation, RunWord, Tag, Watch, Word};
use crate::sync::{AtomicU64, Ordering, look};
use crate::tick::{Tick, millis};
use crate::ticket::{Seat, Standing, Ticket};
use crate::window::{Added, Deferred, REASONS, Shards};

/// What is shared without the lock. Written under it, but for the counters.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) word: AtomicU64,
    pub(crate) run: AtomicU64,
    mode: AtomicU64,
    /// 0 where a closed breaker lets every call pass: it is not off, and `max_in_flight` is not set.
    limits: AtomicU64,
    /// `max_in_flight`; 0 = none.
    seats: AtomicU64,
    taken: AtomicU64,
    /// A success that took longer is slow for some rule.
    slow_limit: AtomicU64,
    /// Kinds whose failures decide nothing but by the trip rules, one bit each.
    plain_kinds: AtomicU64,
    late: AtomicU64,
    /// Until when the provider asked this key to wait, in ms.
    hold: AtomicU64,
    changes: AtomicU64,
    /// 1 where a probe was rejected for want of a grant.
    wish: AtomicU64,
    /// Rejections met by threads without a shard.
    rejected: [AtomicU64; REASONS],
    pub(crate) shards: Shards,
}

/// What the words say of a call that asks for leave.
pub(crate) enum Asked {
    /// It has leave.
    Admitted(Ticket),
    /// It is refused.
    Rejected(Rejection),
    /// Only the locked side can say.
    Unclear,
}

/// What recording without the lock came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Counted.
    Done,
    /// Its state has passed.
    Late,
    /// The locked side must judge it; the shard does not have it.
    Undecided,
    /// The locked side must judge it; the shard has it.
    Counted,
}

impl Hot {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            run: AtomicU64::new(0),
            mode: AtomicU64::new(0),
            limits: AtomicU64::new(0),
            seats: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            slow_limit: AtomicU64::new(u64::MAX),
            plain_kinds: AtomicU64::new(0),
            late: AtomicU64::new(0),
            hold: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            wish: AtomicU64::new(0),
            rejected: core::array::from_fn(|_| AtomicU64::new(0)),
            shards: Shards::new(),
        }
    }

    /// Takes over settings. Under the lock.
    pub(crate) fn follow(&self, policy: &Checked) {
        let mode = match policy.mode {
            Mode::Enforce => 0,
            Mode::Shadow => 1,
            Mode::Off => 2,
        };
        let off = u64::from(policy.mode == Mode::Off);
        self.limits
            .store(u64::from(policy.max_in_flight) | off, Ordering::Relaxed);
        self.mode.store(mode, Ordering::Relaxed);
        self.seats
            .store(u64::from(policy.max_in_flight), Ordering::Relaxed);
        self.slow_limit
            .store(slow_limit(&policy.trip), Ordering::Relaxed);
        self.plain_kinds
            .store(plain_kinds(policy), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Enforce,
            1 => Mode::Shadow,
            _ => Mode::Off,
        }
    }

    /// The state word as it is now.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// The run word as published. Under the lock.
    pub(crate) fn run(&self) -> RunWord {
        RunWord::from_bits(self.run.load(Ordering::Relaxed))
    }

    /// Asks for leave by the words alone.
    pub(crate) fn ask(&self, word: Word, now: Tick) -> Asked {
        let (at, deadline) = (now, word.deadline());
        let now = at.as_millis();
        let left = Duration::from_millis(deadline.saturating_sub(now));
        match word.tag() {
            Tag::Closed if now >= deadline => self.seated(word, at),
            Tag::ForcedClosed if now < deadline => self.seated(word, at),
            Tag::Open => still_open(word, at).map_or(Asked::Unclear, Asked::Rejected),
            Tag::ForcedOpen if deadline == Word::NEVER => refused(Reason::Forced, FORCED_WAIT),
            Tag::ForcedOpen if now < deadline && deadline < Word::NEVER - 1 => {
                refused(Reason::Forced, left)
            }
            Tag::HalfOpen if now < deadline => match self.saturation() {
                Some(saturated) => Asked::Rejected(saturated),
                None => refused(Reason::Probing, left.min(SOON)),
            },
            Tag::Closed | Tag::HalfOpen | Tag::ForcedOpen | Tag::ForcedClosed => Asked::Unclear,
        }
    }

    /// Whether the words alone say that a call would pass, plainly.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Tick) -> bool {
        self.plain(self.word(), now).is_some()
    }

    /// Leave by two loads, where nothing is wrong and nothing is limited.
    #[inline(always)]
    pub(crate) fn plain(&self, word: Word, now: Tick) -> Option<Ticket> {
        let closed = word.tag() == Tag::Closed && now.as_millis() >= word.deadline();
        let unlimited = self.limits.load(Ordering::Relaxed) == 0;
        (closed && unlimited).then(|| Ticket::plain(word.generation(), now))
    }

    /// The refusal of a breaker that enforces, is open and will be for a while: by two loads, counted.
    #[inline]
    pub(crate) fn plainly_open(&self, word: Word, now: Tick) -> Option<Rejection> {
        let rejection = still_open(word, now)?;
        if self.mode() != Mode::Enforce {
            return None;
        }
        self.rejected(rejection.reason);
        Some(rejection)
    }

    fn seated(&self, word: Word, now: Tick) -> Asked {
        match self.enter() {
            Ok(seat) => Asked::Admitted(Ticket::new(word.generation(), Standing::Plain, seat, now)),
            Err(saturated) => Asked::Rejected(saturated),
        }
    }

    /// Records the success of a plain permit.
    #[inline(always)]
    pub(crate) fn success(&self, generation: Generation, took: Duration, now: Tick) -> Recorded {
        let word = self.word();
        if word.generation() != generation || word.tag() != Tag::Closed {
            return Recorded::Late;
        }
        let bits = self.run.load(Ordering::Acquire);
        let run = RunWord::from_bits(bits);
        let quiet = run.generation() == generation && run.run() == 0 && run.watch() != Watch::Every;
        if !quiet || self.is_slow(took) {
            return Recorded::Undecided;
        }
        match self.shards.add(generation, now) {
            Added::NoShard => return Recorded::Undecided,
            Added::FirstOfBucket if run.watch() == Watch::NewBucket => return Recorded::Counted,
            Added::FirstOfBucket | Added::Counted => {}
        }
        if look(&self.run) == bits {
            Recorded::Done
        } else {
            Recorded::Counted
        }
    }

    /// Records the failure of a plain permit.
    #[inline]
    pub(crate) fn failure(&self, generation: Generation, failure: &Failure, now: Tick) -> Recorded {
        let bits = self.run.load(Ordering::Acquire);
        let run = RunWord::from_bits(bits);
        let deferred = Deferred {
            generation,
            at: now,
            failure: *failure,
        };
        let may_wait = run.generation() == generation && self.is_deferrable(failure);
        if !may_wait || !self.shards.defer(&deferred, run.allowance()) {
            Recorded::Undecided
        } else if look(&self.run) == bits {
            Recorded::Done
        } else {
            Recorded::Counted
        }
    }

    /// Whether such a failure decides nothing but by the trip rules.
    #[inline]
    pub(crate) fn is_deferrable(&self, failure: &Failure) -> bool {
        let plain = self.plain_kinds.load(Ordering::Relaxed) >> failure.kind.index() & 1 == 1;
        plain && !failure.open_now
    }

    #[inline]
    fn is_slow(&self, took: Duration) -> bool {
        let limit = self.slow_limit.load(Ordering::Relaxed);
        limit != u64::MAX && millis(took) > limit
    }

    /// Takes a seat where `max_in_flight` is set.
    pub(crate) fn enter(&self) -> Result<Seat, Rejection> {
        let seats = self.seats.load(Ordering::Relaxed);
        if seats == 0 {
            return Ok(Seat::Unlimited);
        }
        let more = |taken: u64| (taken < seats).then_some(taken + 1);
        match self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        {
            Ok(_) => Ok(Seat::Taken),
            Err(_) => Err(SATURATED),
        }
    }

    pub(crate) fn leave(&self, seat: Seat) {
        if seat == Seat::Taken {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The rejection that `max_in_flight` calls for now.
    pub(crate) fn saturation(&self) -> Option<Rejection> {
        let seats = self.seats.load(Ordering::Relaxed);
        (seats != 0 && self.taken.load(Ordering::Relaxed) >= seats).then_some(SATURATED)
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(&self, until: Tick) {
        self.hold.fetch_max(until.as_millis(), Ordering::Relaxed);
    }

    pub(crate) fn clear_hold(&self) {
        self.hold.store(0, Ordering::Relaxed);
    }

    pub(crate) fn held(&self, now: Tick) -> Option<Rejection> {
        let until = Tick::from_millis(self.hold.load(Ordering::Relaxed));
        (until > now).then(|| Rejection {
            reason: Reason::Held,
            retry_after: until.since(now),
        })
    }

    /// Counts an outcome whose state has passed.
    pub(crate) fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn late_total(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Counts a rejection.
    #[inline]
    pub(crate) fn rejected(&self, reason: Reason) {
        let Some(at) = reason.counter() else { return };
        if !self.shards.reject(at)
            && let Some(counter) = self.rejected.get(at)
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn rejected_total(&self, at: usize) -> u64 {
        let shared = self
            .rejected
            .get(at)
            .map_or(0, |counter| counter.load(Ordering::Relaxed));
        shared.wrapping_add(self.shards.rejected(at))
    }

    /// A probe lacked a grant.
    pub(crate) fn wish(&self) {
        self.wish.store(1, Ordering::Relaxed);
    }

    pub(crate) fn take_wish(&self) -> bool {
        self.wish.swap(0, Ordering::Relaxed) == 1
    }

    /// Tells observers that the history has grown.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

fn plain_kinds(policy: &Checked) -> u64 {
    let plain = policy
        .kinds
        .iter()
        .map(|rule| rule.count && !rule.immediate_open && rule.threshold.is_none());
    plain
        .enumerate()
        .fold(0, |bits, (kind, plain)| bits | u64::from(plain) << kind)
}

/// The refusal by a cooldown whose end the word tells.
#[inline]
fn still_open(word: Word, now: Tick) -> Option<Rejection> {
    let (now, end) = (now.as_millis(), word.deadline());
    let is_open = word.tag() == Tag::Open && now < end && end < Word::NEVER - 1;
    is_open.then(|| Rejection {
        reason: Reason::Open,
        retry_after: Duration::from_millis(end - now),
    })
}

const SATURATED: Rejection = Rejection {
    reason: Reason::Saturated,
    retry_after: SOON,
};

const fn refused(reason: Reason, retry_after: Duration) -> Asked {
    Asked::Rejected(Rejection {
        reason,
        retry_after,
    })
}
