//! `Phrases`: the search for the parts of all phrases at once.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError};

/// A text is searched at so many places at a time: each step waits for the one before it in its own lane only.
const LANES: usize = 4;

/// The parts of phrases, of which the case does not matter.
#[derive(Debug)]
pub(super) struct Phrases {
    automaton: DFA,
    start: StateID,
}

/// A part that stands in a text, from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartAt {
    pub(super) id: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Phrases {
    /// The id of a part is its place in `parts`.
    pub(super) fn new<'p>(parts: impl Iterator<Item = &'p str>) -> Result<Self, BuildError> {
        let automaton = DFA::builder()
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(parts)?;
        // The automaton is built for this kind of search, so that the error is that of a build.
        let start = automaton.start_state(Anchored::No).unwrap_or_default();
        Ok(Self { automaton, start })
    }

    /// Shows all parts that stand in the text, those within others too; one may be shown twice, in any order.
    pub(super) fn each_in(&self, text: &str, found: &mut dyn FnMut(PartAt)) {
        let whole = text.len();
        // Neighbours share what is too short for any part, so that each part is whole in some lane.
        let shared = self.automaton.max_pattern_len().saturating_sub(1);
        if whole < LANES * shared.max(1) {
            return self.search(text.as_bytes(), [0], whole, found);
        }
        let length = (whole + (LANES - 1) * shared).div_ceil(LANES);
        let step = length - shared;
        let starts = [0, step, 2 * step, whole - length];
        self.search(text.as_bytes(), starts, length, found);
    }

    /// Searches lanes of one length, a byte of each in turn.
    fn search<const N: usize>(
        &self,
        bytes: &[u8],
        starts: [usize; N],
        length: usize,
        found: &mut dyn FnMut(PartAt),
    ) {
        let lanes = starts.map(|start| bytes.get(start..start + length).unwrap_or_default());
        let mut states = [self.start; N];
        for at in 0..length {
            for ((state, lane), start) in states.iter_mut().zip(lanes).zip(starts) {
                let Some(byte) = lane.get(at) else { continue };
                *state = self.automaton.next_state(Anchored::No, *state, *byte);
                if self.automaton.is_special(*state) {
                    self.show(*state, start + at + 1, found);
                }
            }
        }
    }

    #[cold]
    fn show(&self, state: StateID, end: usize, found: &mut dyn FnMut(PartAt)) {
        if !self.automaton.is_match(state) {
            return;
        }
        for nth in 0..self.automaton.match_len(state) {
            let part = self.automaton.match_pattern(state, nth);
            found(PartAt {
                id: part.as_u32(),
                start: end - self.automaton.pattern_len(part),
                end,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PARTS: [&str; 6] = ["ab", "abab", "b", "a b a", "bb aa ab", "é"];

    fn found(text: &str) -> BTreeSet<PartAt> {
        let phrases = Phrases::new(PARTS.into_iter()).unwrap();
        let mut all = BTreeSet::new();
        phrases.each_in(text, &mut |part| {
            all.insert(part);
        });
        all
    }

    /// Every part at every place, one by one.
    fn expected(text: &str) -> BTreeSet<PartAt> {
        let text = text.to_ascii_lowercase();
        let of = |(id, part): (usize, &&str)| {
            let starts = 0..text.len();
            let starts = starts.filter(|at| text.as_bytes()[*at..].starts_with(part.as_bytes()));
            let parts = starts.map(|start| PartAt {
                id: id as u32,
                start,
                end: start + part.len(),
            });
            parts.collect::<Vec<_>>()
        };
        PARTS.iter().enumerate().flat_map(of).collect()
    }

    proptest! {
        #[test]
        fn no_part_is_lost_between_lanes(text in "[abAB é]{0,120}") {
            prop_assert_eq!(found(&text), expected(&text));
        }
    }

    #[test]
    fn a_long_text_is_searched_up_to_its_ends() {
        for pad in 0..64 {
            let text = format!("abab{}BB AA AB", "x".repeat(pad));
            assert_eq!(found(&text), expected(&text), "{pad}");
        }
    }
}
