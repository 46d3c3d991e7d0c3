//! What the gateway's lines come to.

use std::time::Duration;

use fuseline_core::{Kind, Tick};

use super::Log;

fn read(text: &str) -> Log {
    Log::read(&mut text.as_bytes(), None).unwrap()
}

fn line(second: u32, rest: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-11-30T10:00:{second:02}.000000Z","level":"INFO","message":"call",{rest}}}"#
    ) + "\n"
}

#[test]
fn a_call_is_every_target_that_it_met() {
    let story = r#"[{\"target\":\"a/m\",\"kind\":\"server_error\",\"took_ms\":300},{\"target\":\"a/m\",\"kind\":\"timeout\",\"took_ms\":1000},{\"target\":\"c/m\",\"skipped\":\"open\"}]"#;
    let text = line(
        10,
        &format!(
            r#""target":"b/m","attempts":3,"took_ms":2000,"first_token_ms":100,"story":"{story}""#
        ),
    );
    let log = read(&text);
    assert_eq!(
        log.targets.keys().collect::<Vec<_>>(),
        ["a/m", "b/m", "c/m"]
    );
    let of = |name: &str| log.targets[name][0];
    // Both attempts at the first target are one call to it.
    assert_eq!(
        (of("a/m").at, of("a/m").result),
        (Tick::ZERO, Err(Kind::Timeout))
    );
    assert_eq!(of("a/m").took, Duration::from_millis(1_300));
    assert_eq!(
        (of("b/m").at, of("b/m").result),
        (Tick::from_millis(1_300), Ok(()))
    );
    assert_eq!(of("b/m").first, Some(Duration::from_millis(100)));
    assert!(of("c/m").is_refused);
    assert_eq!(log.began, 1_796_032_808_000);
}

#[test]
fn a_retry_that_helped_is_a_success_and_a_failure_is_told_once() {
    let helped = r#""target":"a/m","attempts":2,"took_ms":900,"story":"[{\"target\":\"a/m\",\"kind\":\"server_error\",\"took_ms\":300}]""#;
    let failed = r#""target":"a/m","kind":"timeout","attempts":1,"took_ms":900,"story":"[{\"target\":\"a/m\",\"kind\":\"timeout\",\"took_ms\":880}]""#;
    let broke_off = r#""target":"a/m","kind":"stream_stall","attempts":1,"took_ms":900"#;
    let log = read(&[line(1, helped), line(2, failed), line(3, broke_off)].concat());
    let results: Vec<_> = log.calls().map(|call| call.result).collect();
    assert_eq!(
        results,
        [Ok(()), Err(Kind::Timeout), Err(Kind::StreamStall)]
    );
}

#[test]
fn refused_calls_follow_the_one_before_and_other_lines_are_passed_over() {
    let failed = r#""target":"a/m","kind":"network","attempts":1,"took_ms":50"#;
    let refused = r#""target":"a/m","kind":"local","attempts":0,"took_ms":0"#;
    let cached = r#""target":"none","attempts":0,"took_ms":0"#;
    let noise = "not json\n{\"message\":\"breaker\"}\n";
    let text = [
        line(1, failed),
        noise.to_owned(),
        line(2, refused),
        line(3, cached),
    ]
    .concat();
    let log = read(&text);
    assert_eq!(log.passed_over, 2);
    let calls: Vec<_> = log.calls().collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (calls[1].is_refused, calls[1].result),
        (true, Err(Kind::Network))
    );
}

#[test]
fn a_table_without_targets_is_one_target_and_mistakes_name_their_line() {
    let log = read("time,outcome,duration\n1796037753,ok,1.5s\n1796037700,503,200\n");
    let calls = &log.targets["calls"];
    assert_eq!(
        (calls[0].result, calls[1].at),
        (Err(Kind::Overloaded), Tick::from_millis(53_000))
    );
    let told = |text: &str| format!("{:#}", Log::read(&mut text.as_bytes(), None).unwrap_err());
    assert_eq!(
        told("time,outcome,duration\n1,ok,1\n2,ok,long\n"),
        "line 3: duration is \"long\", must be like 1.5s, or milliseconds"
    );
    assert_eq!(
        told("when,outcome,duration\n"),
        "the head has no column `time`; it has when, outcome, duration"
    );
    assert!(told("").starts_with("the head has no column"));
    assert!(told("{}\n").starts_with("no calls in it;"));
    assert_eq!(
        told(&line(1, r#""target":"a/m","story":"oops""#))
            .split(':')
            .next(),
        Some("line 1")
    );
}
