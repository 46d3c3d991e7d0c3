//! An answer of any provider, status, header and body: judged without a panic, and the verdict agrees with itself.
#![no_main]

use std::time::{Duration, SystemTime};

use fuseline_llm::{Answer, Body, Classifier, Ending, Head, Operation};
use libfuzzer_sys::fuzz_target;

/// Provider, status, operation, the value of a header, body.
type Input<'a> = (u8, u16, bool, bool, &'a str, &'a [u8]);

fuzz_target!(|input: Input<'_>| {
    let (provider, status, is_create, is_cut, value, body) = input;
    let classifier = Classifier::builtin();
    let names: Vec<&str> = classifier.providers().chain([""]).collect();
    let headers = [("retry-after", value), ("x-should-retry", value)];
    let headers = headers.as_slice();
    let answer = Answer {
        provider: names[usize::from(provider) % names.len()],
        operation: if is_create {
            Operation::Create
        } else {
            Operation::Other
        },
        head: Some(Head::new(status, &headers)),
        body: if is_cut {
            Body::Cut(body)
        } else {
            Body::Whole(body)
        },
        ending: Ending::Complete,
    };
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_040_000);
    let verdict = classifier.classify(&answer, wall);
    assert_eq!(verdict.is_success(), verdict.kind.is_none());
    assert!(!(verdict.is_success() && verdict.retry_after.is_some()));
    let cited = verdict.evidence.to_string();
    assert!(!cited.is_empty() && cited.len() < 1_000, "{cited}");
});
