//! A date of any content: read without a panic, and a second later the wait is shorter by a second or what it was.
#![no_main]

use std::time::{Duration, SystemTime};

use fuseline_llm::{HintInput, wait_hint};
use libfuzzer_sys::fuzz_target;

const SECOND: Duration = Duration::from_secs(1);

fuzz_target!(|date: (u32, &str)| {
    let (wall, text) = date;
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(wall));
    for name in ["retry-after", "x-ratelimit-reset"] {
        let headers = [(name, text)];
        let seen = HintInput {
            provider: "",
            headers: &headers.as_slice(),
            body: None,
            sentence: None,
        };
        let wait = |wall| wait_hint(&seen, wall).map(|hint| hint.wait);
        if let Some(now) = wait(wall) {
            let later = wait(wall + SECOND).expect("a second changes no form");
            assert!(later == now || later == now.saturating_sub(SECOND));
        }
    }
});
