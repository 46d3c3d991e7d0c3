//! Attempts over real breakers, driven in virtual time: what each ending does to them.

mod judged;
mod watched;

use fuseline_core::{Policies, Policy, PolicySpec, Registry, ScopeName, State, TripRule};

use super::*;
use crate::classify::{Body, Ending};
use crate::head::Head;
use crate::request::Operation;
use crate::route::{Admission, Limits, Plan, Reason};
use crate::target::{Owner, Target};

const WALL: SystemTime = SystemTime::UNIX_EPOCH;
const PATIENCE: Duration = Duration::from_secs(30);
const DONE: Step = Step::GiveUp(Reason::Final);

/// A provider with one model and one key.
struct Bench {
    registry: Registry,
    scopes: Scopes,
    target: Target,
}

impl Bench {
    fn new(spec: PolicySpec) -> Self {
        Self::named(&Registry::default(), "a", spec)
    }

    fn named(registry: &Registry, provider: &str, spec: PolicySpec) -> Self {
        let policy = Policy::new(&PolicySpec {
            jitter: Some(0.0),
            ..spec
        })
        .unwrap();
        let target = Target::new(provider, "m", "k", Owner::Gateway);
        let [provider, model, key] = target.scopes();
        let policies = Policies::all(&policy);
        let scopes = Scopes::new(
            registry,
            provider,
            Some(model),
            Some(key),
            policies,
            Tick::ZERO,
        )
        .unwrap();
        Self {
            registry: registry.clone(),
            scopes,
            target,
        }
    }

    fn begin(&self, now: Tick) -> Attempt {
        self.begin_as(terms(Count::Call, Shape::Plain), now)
    }

    fn begin_as(&self, terms: Terms, now: Tick) -> Attempt {
        Attempt::begin(&self.scopes, terms, now).unwrap()
    }

    /// The states of provider, model and key; none where there is no breaker yet.
    fn states(&self, now: Tick) -> [Option<State>; 3] {
        self.target.scopes().map(|name| self.state_of(&name, now))
    }

    fn state_of(&self, name: &ScopeName, now: Tick) -> Option<State> {
        self.registry
            .find_breaker(name)
            .map(|breaker| breaker.state(now))
    }

    fn model(&self, now: Tick) -> Option<State> {
        self.states(now)[1]
    }

    /// One call to one status, settled at once.
    fn answer(&self, status: u16, headers: &[(&str, &str)], now: Tick) -> Verdict {
        let mut attempt = self.begin(now);
        let verdict = answer(&mut attempt, status, headers, "{}", now);
        attempt.settle(DONE, PATIENCE, now);
        verdict
    }

    fn break_off(&self, fault: Fault, now: Tick) -> Verdict {
        let mut attempt = self.begin(now);
        let verdict = attempt.failed(fault, now);
        attempt.settle(DONE, PATIENCE, now);
        verdict
    }
}

/// The whole of an answer comes, and is judged.
fn answer(
    attempt: &mut Attempt,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
    now: Tick,
) -> Verdict {
    attempt.head(status, now);
    attempt.body(body.len(), now);
    let answer = Answer {
        provider: "",
        operation: Operation::Create,
        head: Some(Head::new(status, &headers)),
        body: Body::Whole(body.as_bytes()),
        ending: Ending::Complete,
    };
    attempt.answered(Classifier::builtin(), &answer, WALL, now)
}

fn terms(count: Count, shape: Shape) -> Terms {
    Terms {
        operation: Operation::Create,
        shape,
        count,
        limit: Duration::from_secs(10),
        probe_proof: Duration::from_secs(5),
        cancel_counts_after: Duration::from_secs(20),
    }
}

fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

fn threshold(failures: u32) -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures }]),
        cooldown: Some(Duration::from_secs(1)),
        ..PolicySpec::default()
    }
}

/// A bench whose model has been opened at 0 and whose next call, at 1 s, is a probe.
fn due_for_a_probe() -> (Bench, Tick) {
    let bench = Bench::new(threshold(1));
    let _ = bench.answer(500, &[], ms(0));
    assert_eq!(bench.model(ms(0)), Some(State::Open));
    assert_eq!(
        Admission::of(&bench.scopes, ms(400)),
        Admission::Refused(Duration::from_millis(600))
    );
    assert_eq!(Admission::of(&bench.scopes, ms(1_000)), Admission::Probe);
    (bench, ms(1_000))
}

/// What a scripted target does with the n-th request that it gets.
type Script<'s> = &'s dyn Fn(usize) -> u16;

/// Drives one call to its end in virtual time, as every driver does. Returns the hits by target and the last status.
fn call(
    benches: &[&Bench],
    scripts: &[Script<'_>],
    count: Count,
    limits: Limits,
    now: &mut Tick,
) -> (Vec<usize>, u16) {
    let targets: Vec<_> = benches.iter().map(|bench| bench.target.clone()).collect();
    let bench = |target: &Target| {
        benches
            .iter()
            .find(|bench| bench.target == *target)
            .unwrap()
    };
    let mut hits = vec![0; benches.len()];
    let mut last = 503;
    let mut plan = Plan::new(targets, limits, 7, *now);
    let mut attempt: Option<Attempt> = None;
    let mut step = plan.next(|target| Admission::of(&bench(target).scopes, *now), *now);
    loop {
        let at = match step {
            Step::Try(at) => {
                attempt =
                    Attempt::begin(&benches[at].scopes, terms(count, Shape::Plain), *now).ok();
                at
            }
            Step::RetryAfter { target, delay } => {
                *now = *now + delay;
                attempt =
                    attempt.and_then(|mut attempt| attempt.again(*now).ok().map(|()| attempt));
                target
            }
            Step::Wait(wait) => {
                *now = *now + wait;
                step = plan.next(|target| Admission::of(&bench(target).scopes, *now), *now);
                continue;
            }
            Step::GiveUp(_) => return (hits, last),
        };
        let Some(current) = &mut attempt else {
            step = plan.next(|target| Admission::of(&bench(target).scopes, *now), *now);
            continue;
        };
        last = scripts[at](hits[at]);
        hits[at] += 1;
        let verdict = answer(current, last, NONE, "{}", *now);
        let standing = current.standing(*now);
        step = plan.after(
            &verdict,
            standing,
            |target| Admission::of(&bench(target).scopes, *now),
            *now,
        );
        current.settle(step, plan.patience(*now), *now);
    }
}

const NONE: &[(&str, &str)] = &[];

#[test]
fn report_16_a_calls_own_retries_do_not_open_its_breaker() {
    let bench = Bench::new(PolicySpec::default());
    let limits = Limits {
        retries: 4,
        ..Limits::default()
    };
    let mut now = Tick::ZERO;
    for number in 1..=5 {
        let (hits, status) = call(&[&bench], &[&|_| 500], Count::Call, limits, &mut now);
        assert_eq!(
            (hits[0], status),
            (5, 500),
            "call {number} makes all its attempts"
        );
        let expected = match number {
            1 | 2 => State::Closed,
            3 | 4 => State::Degraded,
            _ => State::Open,
        };
        assert_eq!(bench.model(now), Some(expected), "call {number}");
    }
    let (hits, _) = call(&[&bench], &[&|_| 500], Count::Call, limits, &mut now);
    assert_eq!(hits, [0], "open: nothing goes out");
}

#[test]
fn counted_by_attempt_each_one_counts_and_the_call_stops_when_the_circuit_opens() {
    let spec = PolicySpec {
        cooldown: Some(Duration::from_secs(60)),
        ..threshold(3)
    };
    let bench = Bench::new(spec);
    let limits = Limits {
        retries: 4,
        ..Limits::default()
    };
    let mut now = Tick::ZERO;
    let (hits, _) = call(&[&bench], &[&|_| 500], Count::Attempt, limits, &mut now);
    assert_eq!(hits, [3]);
}

#[test]
fn report_22_overload_falls_over_and_opens_at_the_threshold() {
    for status in [529, 520, 599] {
        let registry = Registry::default();
        let a = Bench::named(&registry, "a", PolicySpec::default());
        let b = Bench::named(&registry, "b", PolicySpec::default());
        let mut now = Tick::ZERO;
        for _ in 0..5 {
            let answered = call(
                &[&a, &b],
                &[&|_| status, &|_| 200],
                Count::Call,
                Limits::default(),
                &mut now,
            );
            assert_eq!(answered, (vec![2, 1], 200), "{status}");
        }
        assert_eq!(a.model(now), Some(State::Open), "{status}");
        let answered = call(
            &[&a, &b],
            &[&|_| status, &|_| 200],
            Count::Call,
            Limits::default(),
            &mut now,
        );
        assert_eq!(answered, (vec![0, 1], 200), "{status}");
    }
}

#[test]
fn report_25_the_callers_mistakes_open_nothing() {
    for status in [400, 401, 403, 404, 413, 415, 422] {
        let bench = Bench::new(threshold(5));
        for number in 0..60 {
            let _ = bench.answer(status, &[], ms(number));
        }
        assert_eq!(
            bench.states(ms(60)),
            [Some(State::Closed), None, None],
            "{status}"
        );
    }
}

#[test]
fn report_40_typos_open_nothing_and_rate_limits_pause_the_key_alone() {
    let bench = Bench::new(PolicySpec::default());
    for number in 0..30 {
        let _ = bench.answer(404, &[], ms(number));
    }
    assert_eq!(bench.states(ms(30)), [Some(State::Closed), None, None]);
    let _ = bench.answer(429, &[("retry-after", "2")], ms(100));
    assert_eq!(
        Admission::of(&bench.scopes, ms(1_100)),
        Admission::Held(Duration::from_secs(1))
    );
    assert_eq!(Admission::of(&bench.scopes, ms(2_100)), Admission::Ready);
}

#[test]
fn a_wait_on_a_hint_ends_where_the_hint_does_whatever_is_counted() {
    for count in [Count::Call, Count::Attempt] {
        let bench = Bench::new(threshold(1));
        let mut attempt = bench.begin_as(terms(count, Shape::Plain), ms(0));
        let verdict = answer(&mut attempt, 429, &[("retry-after", "2")], "", ms(0));
        assert_eq!(verdict.retry_after, Some(Duration::from_secs(2)));
        attempt.settle(
            Step::RetryAfter {
                target: 0,
                delay: Duration::from_secs(2),
            },
            PATIENCE,
            ms(0),
        );
        attempt.again(ms(2_000)).unwrap();
        attempt.body(2, ms(2_100));
        assert!(attempt.end(ms(2_100)).is_success());
        assert_eq!(
            bench.states(ms(2_100)),
            [Some(State::Closed); 3],
            "{count:?}: not counted"
        );
    }
}

#[test]
fn a_wait_of_years_holds_nobody_beyond_the_cap() {
    let bench = Bench::new(PolicySpec::default());
    let _ = bench.answer(429, &[("retry-after", "99999999")], ms(0));
    let hour = Duration::from_secs(3_600);
    assert_eq!(
        Admission::of(&bench.scopes, ms(0)),
        Admission::Refused(hour)
    );
    assert_eq!(Admission::of(&bench.scopes, ms(0) + hour), Admission::Probe);
}

#[test]
fn report_36_a_long_wait_opens_the_key_for_that_long() {
    let bench = Bench::new(PolicySpec::default());
    let _ = bench.answer(429, &[("retry-after", "600")], ms(0));
    assert_eq!(
        bench.states(ms(0)),
        [Some(State::Closed), None, Some(State::Open)]
    );
    assert_eq!(
        Admission::of(&bench.scopes, ms(1_000)),
        Admission::Refused(Duration::from_secs(599))
    );
}

#[test]
fn report_42_a_proxys_408_is_tried_again_and_counts() {
    let bench = Bench::new(threshold(2));
    let mut now = Tick::ZERO;
    let script = |n| if n == 0 { 408 } else { 200 };
    let answered = call(
        &[&bench],
        &[&script],
        Count::Call,
        Limits::default(),
        &mut now,
    );
    assert_eq!(answered, (vec![2], 200));
    for _ in 0..2 {
        let _ = bench.answer(408, &[], now);
    }
    assert_eq!(bench.model(now), Some(State::Open));
}

#[test]
fn report_2_a_probe_that_ends_early_gives_its_slot_back_or_fails() {
    let (bench, now) = due_for_a_probe();
    let _ = bench.answer(404, &[], now);
    assert_eq!(bench.model(now), Some(State::HalfOpen));
    assert_eq!(
        Admission::of(&bench.scopes, now),
        Admission::Probe,
        "neutral: the next call is a probe"
    );

    let mut attempt = bench.begin(now);
    attempt.head(200, now);
    attempt.body(10, now);
    let verdict = attempt.failed(Fault::Reset, now);
    assert_eq!(
        (verdict.kind, attempt.standing(now)),
        (Some(Kind::Network), Standing::Probe)
    );
    attempt.settle(DONE, PATIENCE, now);
    assert_ne!(
        Admission::of(&bench.scopes, now + Duration::from_secs(1)),
        Admission::Refused(Duration::ZERO)
    );
}

#[test]
fn no_connection_is_the_providers_and_a_late_answer_the_models() {
    for (fault, provider, model) in [
        (Fault::Refused, Some(State::Open), None),
        (Fault::ConnectTimeout, Some(State::Open), None),
        (Fault::Deadline, Some(State::Closed), Some(State::Open)),
    ] {
        let bench = Bench::new(threshold(1));
        let verdict = bench.break_off(fault, ms(0));
        assert!(verdict.provider_fault);
        assert_eq!(bench.states(ms(0)), [provider, model, None], "{fault:?}");
    }
}

#[test]
fn an_empty_answer_is_a_failure_and_a_body_a_success() {
    let bench = Bench::new(threshold(1));
    let mut attempt = bench.begin(ms(0));
    attempt.head(200, ms(5));
    attempt.body(2, ms(7));
    assert_eq!(attempt.end(ms(9)), Verdict::success());
    assert_eq!(
        attempt.standing(ms(9)),
        Standing::Outdated,
        "recorded at once"
    );
    assert_eq!(bench.states(ms(9)), [Some(State::Closed); 3]);

    let mut attempt = bench.begin(ms(10));
    attempt.head(200, ms(11));
    attempt.body(0, ms(11));
    assert_eq!(attempt.end(ms(12)).kind, Some(Kind::EmptyResponse));
    attempt.settle(DONE, PATIENCE, ms(12));
    assert_eq!(bench.model(ms(12)), Some(State::Open));
}

#[test]
fn a_stream_that_breaks_or_falls_silent_is_no_success() {
    for (fault, kind) in [
        (Fault::Reset, Kind::StreamTruncated),
        (Fault::Stall, Kind::StreamStall),
    ] {
        let bench = Bench::new(threshold(1));
        let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), ms(0));
        attempt.head(200, ms(5));
        attempt.body(100, ms(10));
        assert_eq!(attempt.failed(fault, ms(20)).kind, Some(kind));
        attempt.settle(DONE, PATIENCE, ms(20));
        assert_eq!(bench.model(ms(20)), Some(State::Open));
    }
}

#[test]
fn the_first_verdict_of_an_exchange_stands() {
    let bench = Bench::new(threshold(1));
    let mut attempt = bench.begin(ms(0));
    let verdict = answer(&mut attempt, 404, NONE, "", ms(1));
    attempt.body(10, ms(2));
    assert_eq!(attempt.failed(Fault::Reset, ms(3)), verdict);
    assert_eq!(attempt.end(ms(4)), verdict);
    attempt.settle(DONE, PATIENCE, ms(5));
    assert_eq!(bench.states(ms(5)), [Some(State::Closed), None, None]);
}

#[test]
fn report_33_leaving_counts_for_nothing_at_any_moment() {
    let bench = Bench::new(threshold(1));
    bench.begin(ms(0)).cancelled(ms(1));
    drop(bench.begin(ms(2)));
    let mut streaming = bench.begin_as(terms(Count::Call, Shape::Stream), ms(3));
    streaming.head(200, ms(4));
    streaming.body(10, ms(5));
    streaming.cancelled(ms(6));
    let mut waiting = bench.begin(ms(7));
    let _ = answer(&mut waiting, 500, NONE, "", ms(8));
    waiting.settle(
        Step::RetryAfter {
            target: 0,
            delay: Duration::from_secs(1),
        },
        PATIENCE,
        ms(8),
    );
    drop(waiting);
    assert_eq!(bench.states(ms(9)), [Some(State::Closed), None, None]);
}

#[test]
fn a_streaming_probe_proves_itself_while_it_runs() {
    let (bench, now) = due_for_a_probe();
    let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), now);
    attempt.head(200, now);
    attempt.body(10, now);
    attempt.body(10, now + Duration::from_millis(4_999));
    assert_eq!(
        attempt.standing(now + Duration::from_millis(4_999)),
        Standing::Probe
    );
    let proven = now + Duration::from_secs(5);
    attempt.body(10, proven);
    assert_eq!(
        Admission::of(&bench.scopes, proven),
        Admission::Probe,
        "its slot is free for the second good probe"
    );
    let _ = attempt.failed(Fault::Reset, proven + Duration::from_secs(1));
    attempt.settle(DONE, PATIENCE, proven + Duration::from_secs(1));
    assert_eq!(
        bench.model(proven + Duration::from_secs(1)),
        Some(State::HalfOpen),
        "its later end is not counted"
    );
}

#[test]
fn an_error_that_drips_for_long_proves_nothing() {
    let (bench, now) = due_for_a_probe();
    let mut attempt = bench.begin_as(terms(Count::Call, Shape::Stream), now);
    attempt.head(503, now);
    attempt.body(10, now);
    attempt.body(10, now + Duration::from_secs(6));
    let verdict = attempt.failed(Fault::Reset, now + Duration::from_secs(7));
    assert_eq!(verdict.kind, Some(Kind::Network));
    assert_eq!(
        attempt.standing(now + Duration::from_secs(7)),
        Standing::Probe
    );
}

#[test]
fn a_replaced_connection_moves_no_counter_whatever_is_counted() {
    for count in [Count::Call, Count::Attempt] {
        let bench = Bench::new(threshold(1));
        let mut attempt = bench.begin_as(terms(count, Shape::Plain), ms(0));
        let _ = attempt.failed(Fault::Stale, ms(1));
        attempt.settle(
            Step::RetryAfter {
                target: 0,
                delay: Duration::ZERO,
            },
            PATIENCE,
            ms(1),
        );
        attempt.again(ms(1)).unwrap();
        attempt.body(2, ms(2));
        assert!(attempt.end(ms(3)).is_success());
        assert_eq!(bench.states(ms(3))[0], Some(State::Closed));
    }
}

#[test]
fn a_permit_that_is_no_longer_current_is_not_used_again() {
    let bench = Bench::new(threshold(1));
    let _ = bench.answer(200, &[], ms(0));
    let mut attempt = bench.begin(ms(1));
    let _ = answer(&mut attempt, 503, NONE, "", ms(2));
    attempt.settle(
        Step::RetryAfter {
            target: 0,
            delay: Duration::from_millis(500),
        },
        PATIENCE,
        ms(2),
    );
    let _ = bench.answer(500, &[], ms(3));
    assert_eq!(attempt.again(ms(502)), Err(Denied::Outdated));
    assert_eq!(attempt.standing(ms(502)), Standing::Outdated);
    attempt.settle(DONE, PATIENCE, ms(502));
}
