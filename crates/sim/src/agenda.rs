//! What is still to happen, in the order of its time; of one time, in the order in which it was entered.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fuseline_core::Tick;

/// Things to come.
pub(crate) struct Agenda<T> {
    entries: BinaryHeap<Entry<T>>,
    entered: u64,
}

struct Entry<T> {
    at: Tick,
    number: u64,
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: BinaryHeap::new(),
            entered: 0,
        }
    }

    pub(crate) fn add(&mut self, at: Tick, what: T) {
        let number = self.entered;
        self.entered += 1;
        self.entries.push(Entry { at, number, what });
    }

    /// The first of what is due by `now`.
    pub(crate) fn due(&mut self, now: Tick) -> Option<(Tick, T)> {
        if self.entries.peek()?.at > now {
            return None;
        }
        self.entries.pop().map(|entry| (entry.at, entry.what))
    }
}

impl<T> Entry<T> {
    const fn key(&self) -> (Tick, u64) {
        (self.at, self.number)
    }
}

/// The heap's greatest is the earliest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_comes_first_and_ties_in_the_order_of_entry() {
        let mut agenda = Agenda::new();
        for (at, what) in [(30, "c"), (10, "a"), (30, "d"), (20, "b")] {
            agenda.add(Tick::from_millis(at), what);
        }
        assert_eq!(agenda.due(Tick::from_millis(9)), None);
        let told = std::iter::from_fn(|| agenda.due(Tick::from_millis(30)));
        assert_eq!(told.map(|(_, what)| what).collect::<String>(), "abcd");
    }
}
