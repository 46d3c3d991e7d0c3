//! Ids and header texts.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::HeaderValue;

/// Longer explanations are cut: a header is no place for a story.
pub(super) const MAX_WHY: usize = 512;

const UNREADABLE: HeaderValue = HeaderValue::from_static("unreadable");

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Of a 64-bit number in base 16.
const MOST_DIGITS: u32 = 16;

/// The last digit of a number in base 16.
fn hex_digit(number: u64) -> char {
    char::from_digit((number & 0xf) as u32, 16).unwrap_or('0')
}

/// Unique in this process, and most likely beyond it.
pub(super) fn new_id() -> String {
    static PREFIX: LazyLock<String> = LazyLock::new(|| {
        let process = RandomState::new().hash_one(std::process::id());
        format!("fl-{process:016x}-")
    });
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut id = String::with_capacity(PREFIX.len() + MOST_DIGITS as usize);
    id.push_str(&PREFIX);
    let digits = MOST_DIGITS - (number | 1).leading_zeros() / 4;
    id.extend((0..digits).rev().map(|at| hex_digit(number >> (4 * at))));
    id
}

/// Text that any HTTP client can read.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    // The library lets tabs and what is not ASCII pass.
    if text.len() <= MAX_WHY
        && text.is_ascii()
        && !text.contains('\t')
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    let is_readable = |byte: u8| (b' '..=b'~').contains(&byte);
    let readable = |sign: char| match u8::try_from(sign) {
        Ok(byte) if is_readable(byte) => sign,
        _ => '?',
    };
    let text: String = text.chars().take(MAX_WHY).map(readable).collect();
    HeaderValue::from_str(&text).unwrap_or(UNREADABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_header_text_is_plain() {
        let counted = |id: String| {
            let (_, number) = id.rsplit_once('-').unwrap();
            (u64::from_str_radix(number, 16).unwrap(), number.len())
        };
        let (first, _) = counted(new_id());
        for next in 1..300 {
            let (number, digits) = counted(new_id());
            assert!(number >= first + next);
            assert_eq!(digits, format!("{number:x}").len());
        }
        assert_eq!(header_text("a\nb\u{e9}\tc"), "a?b??c");
        assert_eq!(header_text("a b~"), "a b~");
        assert_eq!(header_text(&"x".repeat(5_000)).len(), MAX_WHY);
    }
}
