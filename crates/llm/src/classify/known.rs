//! `Known`: which names and phrases of the rules a failure shows.

use std::cell::OnceCell;

use super::compile::{Phrase, Vocabulary};
use super::phrases::Phrases;

/// The words of a failure that some rule knows. Names are looked up as they come; phrases are searched for, all at
/// once, when the first rule asks for one.
#[derive(Debug)]
pub(super) struct Known<'f> {
    /// Ids of names, with the key at which each stood.
    names: Vec<(u32, &'f str)>,
    sentences: &'f [&'f str],
    phrases: &'f Phrases,
    parts: OnceCell<Vec<Part>>,
}

/// A part of a phrase, in a sentence: where it first ends and where it last begins.
#[derive(Debug)]
struct Part {
    id: u32,
    sentence: usize,
    first_end: usize,
    last_start: usize,
}

impl<'f> Known<'f> {
    pub(super) fn new(sentences: &'f [&'f str], phrases: &'f Phrases) -> Self {
        Self {
            names: Vec::new(),
            sentences,
            phrases,
            parts: OnceCell::new(),
        }
    }

    /// Looks a name up that stood at `key`; one longer than `longest` is nobody's.
    pub(super) fn look_up(
        &mut self,
        key: &'f str,
        name: &str,
        vocabulary: &Vocabulary,
        longest: usize,
    ) {
        if name.len() <= longest {
            let id = vocabulary.name(&name.to_ascii_lowercase());
            self.names.extend(id.map(|id| (id, key)));
        }
    }

    /// The key at which a name stood.
    pub(super) fn key_of(&self, id: u32) -> Option<&'f str> {
        let mut names = self.names.iter();
        names.find(|(name, _)| *name == id).map(|(_, key)| *key)
    }

    fn find_parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (at, sentence) in self.sentences.iter().enumerate() {
            self.phrases.each_in(sentence, &mut |found| {
                if cuts_number(sentence, found.start, found.end) {
                    return;
                }
                let mut seen = parts.iter_mut();
                match seen.find(|part| part.id == found.id && part.sentence == at) {
                    Some(part) => {
                        part.first_end = part.first_end.min(found.end);
                        part.last_start = part.last_start.max(found.start);
                    }
                    None => parts.push(Part {
                        id: found.id,
                        sentence: at,
                        first_end: found.end,
                        last_start: found.start,
                    }),
                }
            });
        }
        parts
    }

    /// Whether a sentence has the phrase.
    pub(super) fn has(&self, phrase: &Phrase) -> bool {
        let all = self.parts.get_or_init(|| self.find_parts());
        let parts = |id| all.iter().filter(move |part| part.id == id);
        parts(phrase.first).any(|first| match phrase.second {
            None => true,
            Some(second) => parts(second).any(|second| {
                second.sentence == first.sentence && first.first_end <= second.last_start
            }),
        })
    }
}

/// Whether a phrase found begins or ends in the middle of a number: `limit: 0` is not in `limit: 0.5`.
fn cuts_number(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let before = start.checked_sub(1).is_some_and(digit);
    let after = digit(end) || (bytes.get(end) == Some(&b'.') && digit(end + 1));
    (digit(start) && before) || (end.checked_sub(1).is_some_and(digit) && after)
}
