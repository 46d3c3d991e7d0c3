//! Recorded events of any content through a breaker: every line is answered or refused, and probes stay within bounds.
#![no_main]

use fuseline_core::replay::{Line, Replay};
use libfuzzer_sys::fuzz_target;

/// The most live probes that a policy may allow.
const MOST_PROBES: u32 = 64;

fuzz_target!(|text: &str| {
    let mut replay = Replay::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
            return;
        };
        let Ok(answer) = replay.line(&line) else {
            return;
        };
        if let (Some(answer), Some(breaker)) = (answer, replay.breaker()) {
            let now = fuseline_core::Tick::from_millis(answer.at_ms);
            let snapshot = breaker.snapshot(now);
            assert_eq!(snapshot.state, answer.state);
            assert!(snapshot.live_probes <= MOST_PROBES);
        }
    }
});
