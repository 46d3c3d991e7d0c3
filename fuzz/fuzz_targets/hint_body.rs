//! A body and a sentence of any content: read without a panic, and a hint is shorter than the limit.
#![no_main]

use std::time::{Duration, SystemTime};

use fuseline_llm::{HintInput, HintSource, wait_hint};
use libfuzzer_sys::fuzz_target;

const ABSURD: Duration = Duration::from_secs(100_000_000);

fuzz_target!(|text: &str| {
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_040_000);
    let body = serde_json::from_str(text).ok();
    let none: &[(&str, &str)] = &[];
    for (body, sentence) in [(body.as_ref(), None), (None, Some(text))] {
        let seen = HintInput {
            provider: "",
            headers: &none,
            body,
            sentence,
        };
        if let Some(hint) = wait_hint(&seen, wall) {
            assert!(hint.wait < ABSURD);
            assert_eq!(hint.source == HintSource::Sentence, sentence.is_some());
        }
    }
});
