//! Streams under a guard: what their content and their endings do to the breakers.

use bytes::Bytes;

use super::*;
use crate::stream::{Dialect, Framing, StreamTimers, Timer};

const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const BUSY: &str = "data: {\"error\":{\"code\":429,\"message\":\"Try again in 90s\"}}\n\n";

/// An attempt whose stream has begun.
struct Streamed {
    attempt: Attempt,
    guard: StreamGuard,
}

impl Streamed {
    fn begin(bench: &Bench, now: Tick) -> Self {
        let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), now);
        attempt.head(200, now);
        let (timers, at_once) = (StreamTimers::default(), Duration::ZERO);
        let guard = StreamGuard::new(Dialect::OpenAiChat, Framing::Sse, timers, at_once, now);
        Self { attempt, guard }
    }

    fn says(&mut self, event: &'static str, now: Tick) {
        self.guard.bytes(Bytes::from(event), now);
        self.attempt.watched(&self.guard, now);
    }

    fn judge(&mut self, now: Tick) -> Verdict {
        let rules = Classifier::builtin();
        let verdict = self
            .attempt
            .stream_ended(rules, "openai", &self.guard, WALL, now);
        self.attempt.settle(DONE, PATIENCE, now);
        verdict
    }
}

#[test]
fn each_ending_is_told_apart_and_counts_once() {
    type Ends = fn(&mut Streamed, Tick);
    let endings: [(Ends, Option<Kind>, &str); 5] = [
        (|stream, now| stream.says(STOP, now), None, "complete"),
        (
            |stream, now| stream.guard.end(now),
            Some(Kind::StreamTruncated),
            "no end marker",
        ),
        (
            |stream, now| stream.guard.broke(Fault::Reset, now),
            Some(Kind::StreamTruncated),
            "the connection to the provider broke before the answer was complete (reset)",
        ),
        (
            |stream, now| {
                let (at, timer) = stream.guard.deadline().unwrap();
                assert_eq!((at, timer), (now + Duration::from_secs(30), Timer::Stall));
                stream.guard.timeout(at);
            },
            Some(Kind::StreamStall),
            "the provider's stream sent no further content for 30s (limit stall)",
        ),
        (
            |stream, now| stream.says(BUSY, now),
            Some(Kind::RateLimit),
            "error in a success answer, status 429",
        ),
    ];
    for (ends, kind, evidence) in endings {
        let bench = Bench::new(threshold(1));
        let mut stream = Streamed::begin(&bench, ms(0));
        stream.says(TOKEN, ms(400));
        ends(&mut stream, ms(400));
        let verdict = stream.judge(ms(400));
        assert_eq!(verdict.kind, kind, "{evidence}");
        let told = verdict.evidence.to_string();
        assert!(told.contains(evidence), "{told}");
        assert_eq!(
            bench.states(ms(400)).contains(&Some(State::Open)),
            kind.is_some(),
            "{evidence}"
        );
    }
}

#[test]
fn only_content_keeps_a_probe_alive_and_proves_it() {
    let bench = Bench::new(threshold(1));
    let _ = bench.answer(500, &[], ms(0));
    let due = ms(60_000);
    let mut stream = Streamed::begin(&bench, due);
    assert_eq!(stream.attempt.standing(due), Standing::Probe);
    for second in 1..=20 {
        stream.says(ROLE, due + Duration::from_secs(second));
    }
    let first = due + Duration::from_secs(20);
    stream.says(TOKEN, first);
    assert_eq!(stream.attempt.standing(first), Standing::Probe);
    let (nearly, proven) = (
        first + Duration::from_millis(4_999),
        first + Duration::from_secs(5),
    );
    stream.says(TOKEN, nearly);
    assert_eq!(stream.attempt.standing(nearly), Standing::Probe);
    stream.says(TOKEN, proven);
    assert_eq!(
        stream.attempt.standing(proven),
        Standing::Outdated,
        "settled"
    );
}

#[test]
fn leaving_after_long_pings_without_content_is_a_timeout() {
    for (event, expected) in [(ROLE, Some(State::Open)), (TOKEN, None)] {
        let bench = Bench::new(threshold(1));
        let mut stream = Streamed::begin(&bench, ms(0));
        stream.says(event, ms(1_000));
        stream.attempt.cancelled(ms(20_000));
        assert_eq!(bench.model(ms(20_000)), expected, "{event}");
    }
}

#[test]
fn what_was_late_says_by_which_limit() {
    let bench = Bench::new(threshold(1));
    let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), ms(0));
    let verdict = attempt.late("first_token", Duration::from_secs(2), ms(2_000));
    assert_eq!(verdict.kind, Some(Kind::Timeout));
    assert_eq!(
        verdict.evidence.to_string(),
        "no answer within 2s (limit first_token)"
    );
}
