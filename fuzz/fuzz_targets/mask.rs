//! A message of any content around a key: the key never survives, and masking twice changes nothing more.
#![no_main]

use fuseline_llm::mask;
use libfuzzer_sys::fuzz_target;

/// A word of its own: within a longer one it is another word.
const KEY: &str = " sk-abcdefgh12345678 ";

fuzz_target!(|message: (u16, &str)| {
    let (at, text) = message;
    let (before, after) = text.split_at_checked(usize::from(at)).unwrap_or((text, ""));
    let masked = mask(text);
    assert_eq!(mask(&masked), masked);
    let around = format!("{before}{KEY}{after}");
    assert!(!mask(&around).contains(KEY));
});
