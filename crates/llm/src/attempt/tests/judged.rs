//! What is judged by more than a status: bodies, long silences, and failures that are our own.

use super::*;

#[test]
fn the_body_of_a_failure_decides_and_its_hint_holds_the_key() {
    let spent = r#"{"error": {"type": "insufficient_quota", "message": "..."}}"#;
    let bench = Bench::new(PolicySpec::default());
    let mut attempt = bench.begin(ms(0));
    let verdict = answer(&mut attempt, 429, NONE, spent, ms(0));
    assert_eq!(verdict.kind, Some(Kind::QuotaExhausted));
    attempt.settle(DONE, PATIENCE, ms(0));
    assert_eq!(
        bench.states(ms(0)),
        [Some(State::Closed), None, Some(State::Open)]
    );

    let busy = r#"{"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}]}}"#;
    let bench = Bench::new(PolicySpec::default());
    let mut attempt = bench.begin(ms(0));
    let verdict = answer(&mut attempt, 429, NONE, busy, ms(0));
    assert_eq!(verdict.retry_after, Some(Duration::from_secs(2)));
    assert_eq!(
        Admission::of(&bench.scopes, ms(500)),
        Admission::Held(Duration::from_millis(1_500)),
        "at once, whatever the call does next"
    );
}

#[test]
fn report_28_and_31_a_success_without_use_is_none() {
    for (body, kind) in [
        (
            r#"{"error": {"code": 429, "message": "x"}}"#,
            Kind::RateLimit,
        ),
        (r#"{"choices": []}"#, Kind::EmptyResponse),
        ("", Kind::EmptyResponse),
        (" \n", Kind::EmptyResponse),
    ] {
        let bench = Bench::new(threshold(1));
        let mut attempt = bench.begin(ms(0));
        let verdict = answer(&mut attempt, 200, NONE, body, ms(0));
        assert_eq!(verdict.kind, Some(kind), "{body}");
        attempt.settle(DONE, PATIENCE, ms(0));
        assert!(bench.states(ms(0)).contains(&Some(State::Open)), "{body}");
    }
}

#[test]
fn leaving_counts_as_a_timeout_after_a_long_wait_without_a_byte() {
    for (left, came, expected) in [
        (19_999, false, None),
        (20_000, false, Some(State::Open)),
        (60_000, true, None),
    ] {
        let bench = Bench::new(threshold(1));
        let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), ms(0));
        attempt.head(200, ms(100));
        attempt.body(usize::from(came), ms(200));
        attempt.cancelled(ms(left));
        drop(attempt);
        assert_eq!(bench.model(ms(left)), expected, "after {left} ms");
    }
    let bench = Bench::new(threshold(1));
    let mut judged = bench.begin(ms(0));
    let _ = answer(&mut judged, 500, NONE, "", ms(1));
    judged.cancelled(ms(60_000));
    assert_eq!(
        bench.model(ms(60_000)),
        None,
        "nobody is kept waiting by it"
    );
}

#[test]
fn an_acquitted_probe_gives_its_slot_back_and_the_cooldown_does_not_grow() {
    let (bench, now) = due_for_a_probe();
    let mut attempt = bench.begin(now);
    let _ = attempt.failed(Fault::Refused, now);
    attempt.acquit();
    attempt.settle(DONE, PATIENCE, now);
    assert_eq!(bench.model(now), Some(State::HalfOpen));
    assert_eq!(Admission::of(&bench.scopes, now), Admission::Probe);
}

#[test]
fn report_23_overload_is_waited_out_slowly_and_is_no_network_error() {
    let bench = Bench::new(PolicySpec::default());
    let limits = Limits {
        retries: 5,
        budget: Duration::from_secs(120),
        ..Limits::default()
    };
    // Five requests fall into the 40 s for which the provider sheds load, the sixth does not.
    let mut now = Tick::ZERO;
    let answered = call(
        &[&bench],
        &[&|hit| if hit < 5 { 529 } else { 200 }],
        Count::Call,
        limits,
        &mut now,
    );
    assert_eq!(answered, (vec![6], 200));
    let waited = now.since(Tick::ZERO).as_secs();
    assert!((40..120).contains(&waited), "{waited} s");
    assert_eq!(bench.answer(529, &[], now).kind, Some(Kind::Overloaded));
}
