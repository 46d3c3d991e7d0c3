//! The objects of one JSON array: braces are counted, strings are skipped, what stands between objects is filler.

use memchr::{memchr, memchr2, memchr3};

use super::framing::Found;

/// Where the bytes so far have led.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// How many braces are open.
    depth: u64,
    in_string: bool,
    /// Whether the last byte was a backslash that escapes the next.
    is_escaped: bool,
}

impl Objects {
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<Found> {
        let mut at = 0;
        if self.depth == 0 {
            match memchr(b'{', bytes) {
                Some(0) => {}
                Some(start) => return Some(Found::Filler(start)),
                None if bytes.is_empty() => return None,
                None => return Some(Found::Filler(bytes.len())),
            }
        }
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.is_escaped) {
                at += 1;
                continue;
            }
            let length = if self.in_string {
                memchr2(b'"', b'\\', rest)
            } else {
                memchr3(b'"', b'{', b'}', rest)
            }?;
            at += length + 1;
            match rest.get(length) {
                Some(b'"') => self.in_string = !self.in_string,
                Some(b'\\') => self.is_escaped = true,
                Some(b'{') => self.depth += 1,
                _ => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(Found::Event(at));
                    }
                }
            }
        }
        None
    }
}
