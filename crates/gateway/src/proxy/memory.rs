//! `Memory`: bytes of which many calls together may hold so many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Memory {
    most: u64,
    used: Arc<AtomicU64>,
}

/// Bytes that are held until this is dropped.
pub(crate) struct Share {
    memory: Memory,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            used: Arc::default(),
        }
    }

    /// The same bytes under another bound.
    pub(crate) fn with(&self, most: u64) -> Self {
        Self {
            most,
            used: Arc::clone(&self.used),
        }
    }

    /// A share of nothing, which can grow.
    pub(crate) fn share(&self) -> Share {
        Share {
            memory: self.clone(),
            bytes: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Holds so many bytes more, if there is room for them.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        let Memory { most, used } = &self.memory;
        let with_it = |used: u64| used.checked_add(bytes).filter(|sum| sum <= most);
        let grown = used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it)
            .is_ok();
        if grown {
            self.bytes += bytes;
        }
        grown
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_whole_and_come_back() {
        let memory = Memory::new(100);
        let (mut first, mut second) = (memory.share(), memory.share());
        assert!(first.grow(60) && second.grow(30) && first.grow(10));
        assert!(!second.grow(1), "and what it has it keeps");
        assert!(second.grow(0), "nothing needs no room");
        assert!(!second.grow(u64::MAX));
        drop(first);
        assert_eq!(memory.used(), 30);
        assert!(second.grow(70));
        let smaller = memory.with(50);
        assert!(
            !smaller.share().grow(1),
            "what is held counts under any bound"
        );
        drop(second);
        assert_eq!((memory.used(), smaller.used()), (0, 0));
    }
}
