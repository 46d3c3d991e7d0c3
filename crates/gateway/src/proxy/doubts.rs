//! `Doubts`: how many failures a repetition may still mend, since the last success.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the run between two successes in the upper half, the failures in it in the lower one.
#[derive(Default)]
pub(crate) struct Doubts(AtomicU64);

const ONE: u64 = 1;
const NEXT_RUN: u64 = 1 << 32;

impl Doubts {
    pub(crate) fn count(&self) -> u32 {
        in_run(self.0.load(Ordering::Relaxed))
    }

    /// One more. Returns the run it belongs to.
    pub(crate) fn add(&self) -> u32 {
        run(self.0.fetch_add(ONE, Ordering::Relaxed))
    }

    /// One less, if its run still stands.
    pub(crate) fn remove(&self, of: u32) {
        self.change(|word| (run(word) == of && in_run(word) > 0).then(|| word - ONE));
    }

    /// A success: what came before it is no run of failures any more.
    pub(crate) fn clear(&self) {
        self.change(|word| {
            (in_run(word) > 0).then(|| word.wrapping_add(NEXT_RUN) & !(NEXT_RUN - 1))
        });
    }

    fn change(&self, to: impl FnMut(u64) -> Option<u64>) {
        // What is left as it is has been changed by another, which is as good.
        let _changed = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, to);
    }
}

fn run(word: u64) -> u32 {
    u32::try_from(word >> 32).unwrap_or_default()
}

fn in_run(word: u64) -> u32 {
    u32::try_from(word & (NEXT_RUN - 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_ends_the_run_and_later_ends_of_its_calls_change_nothing() {
        let doubts = Doubts::default();
        let (first, second) = (doubts.add(), doubts.add());
        assert_eq!((doubts.count(), first), (2, second));
        doubts.remove(first);
        assert_eq!(doubts.count(), 1);
        doubts.clear();
        let third = doubts.add();
        doubts.remove(second);
        assert_eq!(doubts.count(), 1, "the second belonged to the last run");
        doubts.remove(third);
        doubts.remove(third);
        assert_eq!(doubts.count(), 0);
    }
}
