//! Ids and header texts.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
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

/// Unique in this process, and most likely beyond it.
pub(super) fn new_id() -> String {
    static PREFIX: LazyLock<String> = LazyLock::new(|| {
        let process = RandomState::new().hash_one(std::process::id());
        format!("fl-{process:016x}-")
    });
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut id = PREFIX.clone();
    let _ = write!(id, "{:x}", NEXT.fetch_add(1, Ordering::Relaxed));
    id
}

/// Text that any HTTP client can read.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    let is_readable = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.len() <= MAX_WHY && text.bytes().all(is_readable) {
        return HeaderValue::from_str(text).unwrap_or(UNREADABLE);
    }
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
        assert_ne!(new_id(), new_id());
        assert_eq!(header_text("a\nb\u{e9}"), "a?b?");
        assert_eq!(header_text(&"x".repeat(5_000)).len(), MAX_WHY);
    }
}
