//! Headers of any content, one a line: a hint is shorter than the limit, and the header that it names was there.
#![no_main]

use std::time::{Duration, SystemTime};

use fuseline_llm::{HintInput, HintSource, wait_hint};
use libfuzzer_sys::fuzz_target;

const ABSURD: Duration = Duration::from_secs(100_000_000);

fuzz_target!(|text: &str| {
    let headers = text.lines().filter_map(|line| line.split_once(':'));
    let headers = headers.collect::<Vec<_>>();
    let seen = HintInput {
        provider: "",
        headers: &headers.as_slice(),
        body: None,
        sentence: None,
    };
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_040_000);
    if let Some(hint) = wait_hint(&seen, wall) {
        assert!(hint.wait < ABSURD);
        let (HintSource::RetryAfter(source) | HintSource::ResetHeader(source)) = hint.source else {
            panic!("{} is not in the headers", hint.source);
        };
        assert!(
            headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(source))
        );
    }
});
