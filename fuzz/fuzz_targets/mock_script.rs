//! A mock script of any content: read or refused, never a panic.
#![no_main]

use fuseline_mock::Script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Script::from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
});
