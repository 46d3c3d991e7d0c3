//! A duration of any content: read without a panic, and what was read is read again from its seconds.
#![no_main]

use std::time::{Duration, SystemTime};

use fuseline_llm::{HintInput, wait_hint};
use libfuzzer_sys::fuzz_target;

fn wait(name: &str, text: &str) -> Option<Duration> {
    let headers = [(name, text)];
    let seen = HintInput {
        provider: "",
        headers: &headers.as_slice(),
        body: None,
        sentence: None,
    };
    wait_hint(&seen, SystemTime::UNIX_EPOCH).map(|hint| hint.wait)
}

fuzz_target!(|text: &str| {
    for name in ["retry-after", "retry-after-ms", "x-ratelimit-reset"] {
        if let Some(read) = wait(name, text) {
            let seconds = format!("{}.{:09}s", read.as_secs(), read.subsec_nanos());
            assert_eq!(wait("retry-after", &seconds), Some(read));
        }
    }
});
