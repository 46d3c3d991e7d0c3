//! Where a value ends.

use memchr::memchr2;

/// The first place from here on that is no blank.
pub(super) fn past_blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// Behind the value that begins here; none where none does. However deep it is: who calls decides how long it may be.
pub(super) fn value_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut open = Open::default();
    loop {
        at = match text.get(at)? {
            b'"' => string_end(text, at + 1)?.at,
            b't' => word_end(text, at, b"true")?,
            b'f' => word_end(text, at, b"false")?,
            b'n' => word_end(text, at, b"null")?,
            b'-' => number_end(text, at + 1)?,
            opens @ (b'{' | b'[') => {
                let bracket = Bracket::opened_by(*opens);
                let first = past_blanks(text, at + 1);
                if text.get(first) == Some(&bracket.closes()) {
                    first + 1
                } else {
                    open.push(bracket);
                    at = bracket.part(text, first)?;
                    continue;
                }
            }
            _ => number_end(text, at)?,
        };
        // A value has ended, and with it perhaps some that it is in.
        at = loop {
            let Some(bracket) = open.last() else {
                return Some(at);
            };
            at = past_blanks(text, at);
            match *text.get(at)? {
                b',' => break bracket.part(text, past_blanks(text, at + 1))?,
                byte if byte == bracket.closes() => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        };
    }
}

/// What is being read the parts of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    List,
    Object,
}

impl Bracket {
    fn opened_by(byte: u8) -> Self {
        if byte == b'{' {
            Self::Object
        } else {
            Self::List
        }
    }

    const fn closes(self) -> u8 {
        match self {
            Self::List => b']',
            Self::Object => b'}',
        }
    }

    /// Where the value of the part begins that begins here.
    fn part(self, text: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::List => Some(at),
            Self::Object => key_end(text, at),
        }
    }
}

/// Those that are open, one bit each; only texts that are deeper than any in use take memory for it.
#[derive(Default)]
struct Open {
    /// The innermost, last in the lowest bit.
    bits: u64,
    count: u32,
    /// Those around them, 64 each.
    outer: Vec<u64>,
}

impl Open {
    fn push(&mut self, bracket: Bracket) {
        if self.count == u64::BITS {
            self.outer.push(self.bits);
            self.count = 0;
        }
        self.bits = self.bits << 1 | u64::from(bracket == Bracket::Object);
        self.count += 1;
    }

    fn last(&self) -> Option<Bracket> {
        let bracket = if self.bits & 1 == 1 {
            Bracket::Object
        } else {
            Bracket::List
        };
        (self.count > 0).then_some(bracket)
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.count -= 1;
        if self.count == 0
            && let Some(bits) = self.outer.pop()
        {
            (self.bits, self.count) = (bits, u64::BITS);
        }
    }
}

/// Where the value of the key begins that begins here.
fn key_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let at = past_blanks(text, string_end(text, at + 1)?.at);
    (text.get(at) == Some(&b':')).then(|| past_blanks(text, at + 1))
}

/// A string, once its end is found.
pub(super) struct Ended {
    /// Behind its last quote.
    pub(super) at: usize,
    /// It holds no escapes.
    pub(super) is_plain: bool,
}

/// Of the string whose text begins here.
pub(super) fn string_end(text: &[u8], mut at: usize) -> Option<Ended> {
    let mut is_plain = true;
    loop {
        at = plain_end(text, at)?;
        if text.get(at) == Some(&b'"') {
            at += 1;
            return Some(Ended { at, is_plain });
        }
        is_plain = false;
        at = match text.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at + 2,
            b'u' => {
                let digits = text.get(at + 2..at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                at + 6
            }
            _ => return None,
        };
    }
}

/// The next quote or backslash; none where there is none, or where something comes before it that a string may not hold.
fn plain_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let (words, tail) = rest.as_chunks();
    // Keys are short; what is long is worth a call.
    for (index, word) in words.iter().take(SHORT).enumerate() {
        if let Some(found) = special_in(*word) {
            return (word.get(found)? >= &b' ').then_some(at + index * WORD + found);
        }
    }
    let (start, is_all_seen) = (words.len().min(SHORT) * WORD, words.len() <= SHORT);
    let rest = if is_all_seen {
        tail
    } else {
        rest.get(start..)?
    };
    let found = memchr2(b'"', b'\\', rest)?;
    // All of them are looked at, which the processor does for many at once.
    let plain = rest.get(..found)?;
    let least = plain.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    (least >= b' ').then_some(at + start + found)
}

/// Bytes of a word of the processor's.
const WORD: usize = size_of::<u64>();
/// Words of a string that is short.
const SHORT: usize = 4;

/// The first byte of a word that is a quote, a backslash or below the blank.
fn special_in(word: [u8; WORD]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHEST: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // The highest bit of each byte that is below `least`, as long as none before it is: a borrow only spoils those behind.
    let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = (is(b'"') | is(b'\\') | below(word, b' ')) & HIGHEST;
    (special != 0).then_some(special.trailing_zeros() as usize / 8)
}

fn word_end(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let end = at + word.len();
    (text.get(at..end) == Some(word)).then_some(end)
}

/// Behind a number, without its sign.
fn number_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = match text.get(at)? {
        b'0' => at + 1,
        _ => digits_end(text, at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = digits_end(text, at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let signed = matches!(text.get(at + 1), Some(b'+' | b'-'));
        at = digits_end(text, at + 1 + usize::from(signed))?;
    }
    Some(at)
}

/// Behind one digit or more.
fn digits_end(text: &[u8], at: usize) -> Option<usize> {
    let digits = text.get(at..)?.iter();
    let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then_some(at + count)
}
