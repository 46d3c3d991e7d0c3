//! `Replay`: whether a call's body is kept for another attempt. All that are kept together have one bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::Limits;

/// The bytes of all bodies that are kept.
#[derive(Clone)]
pub(crate) struct ReplayMemory {
    /// `replay_limit`: of one body.
    one: u64,
    /// `replay_memory`: of all together.
    all: u64,
    used: Arc<AtomicU64>,
}

/// What becomes of a body once it was sent. One that is kept takes its share of the memory until this is dropped.
pub(crate) struct Replay {
    used: Arc<AtomicU64>,
    bytes: u64,
    once: Option<&'static str>,
}

impl ReplayMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            one: limits.replay_limit,
            all: limits.replay_memory,
            used: Arc::default(),
        }
    }

    /// The same bytes under other bounds.
    pub(crate) fn with(&self, limits: &Limits) -> Self {
        Self {
            used: Arc::clone(&self.used),
            ..Self::new(limits)
        }
    }

    /// Makes room for a body of so many bytes, if there is any.
    pub(crate) fn keep(&self, bytes: usize) -> Replay {
        let bytes = bytes as u64;
        let with_it = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.all);
        let once = if bytes > self.one {
            Some("the request is longer than replay_limit, so it is sent once")
        } else if self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it)
            .is_err()
        {
            Some("replay_memory is used up, so the request is sent once")
        } else {
            None
        };
        Replay {
            used: self.used.clone(),
            bytes: if once.is_none() { bytes } else { 0 },
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

impl Drop for Replay {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(one: u64, all: u64) -> ReplayMemory {
        ReplayMemory {
            one,
            all,
            used: Arc::default(),
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
        assert_eq!(memory.used.load(Ordering::Relaxed), 100);
        assert!(is_kept(&memory.keep(0)), "nothing needs no room");
        drop(first);
        assert!(is_kept(&memory.keep(60)));
        assert_eq!(memory.used.load(Ordering::Relaxed), 40);
    }

    #[test]
    fn one_body_has_a_bound_of_its_own() {
        let memory = memory(60, 100);
        let long = memory.keep(61);
        assert!(long.once().unwrap().contains("replay_limit"));
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
