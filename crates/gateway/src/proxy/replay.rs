//! `Replay`: whether a call's body is kept for another attempt. All that are kept together have one bound.

use super::memory::{Memory, Share};
use crate::config::Limits;

/// The bytes of all bodies that are kept.
#[derive(Clone)]
pub(crate) struct ReplayMemory {
    /// `replay_limit`: of one body.
    one: u64,
    /// `replay_memory`: of all together.
    all: Memory,
}

/// What becomes of a body once it was sent. One that is kept takes its share of the memory until this is dropped.
pub(crate) struct Replay {
    _share: Share,
    once: Option<&'static str>,
}

impl ReplayMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            one: limits.replay_limit,
            all: Memory::new(limits.replay_memory),
        }
    }

    /// The same bytes under other bounds.
    pub(crate) fn with(&self, limits: &Limits) -> Self {
        Self {
            one: limits.replay_limit,
            all: self.all.with(limits.replay_memory),
        }
    }

    /// Makes room for a body of so many bytes, if there is any.
    pub(crate) fn keep(&self, bytes: usize) -> Replay {
        let bytes = bytes as u64;
        let mut share = self.all.share();
        let once = if bytes > self.one {
            Some("the request is longer than replay_limit, so it is sent once")
        } else if share.grow(bytes) {
            None
        } else {
            Some("replay_memory is used up, so the request is sent once")
        };
        Replay {
            _share: share,
            once,
        }
    }
}

impl Replay {
    /// Why the body can be sent once only, if that is so.
    pub(crate) const fn once(&self) -> Option<&'static str> {
        self.once
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(one: u64, all: u64) -> ReplayMemory {
        ReplayMemory {
            one,
            all: Memory::new(all),
        }
    }

    fn is_kept(replay: &Replay) -> bool {
        replay.once().is_none()
    }

    #[test]
    fn what_is_kept_together_never_exceeds_the_bound_and_comes_back() {
        let memory = memory(60, 100);
        let first = memory.keep(60);
        let second = memory.keep(40);
        assert!(is_kept(&first) && is_kept(&second));
        let third = memory.keep(1);
        assert!(third.once().unwrap().starts_with("replay_memory"));
        drop(third);
        assert_eq!(memory.all.used(), 100);
        assert!(is_kept(&memory.keep(0)), "nothing needs no room");
        drop(first);
        assert!(is_kept(&memory.keep(60)));
        assert_eq!(memory.all.used(), 40);
    }

    #[test]
    fn one_body_has_a_bound_of_its_own() {
        let memory = memory(60, 100);
        let long = memory.keep(61);
        assert!(long.once().unwrap().contains("replay_limit"));
        assert_eq!(memory.all.used(), 0);
    }
}
