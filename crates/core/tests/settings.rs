//! Settings: presets, rows of kinds, and what is refused wherever it stands.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Breaker, Failure, Kind, KindSpec, OnSuccess, Outcome, Per, Policy, PolicySpec, Preset,
    ScopeName, State, Tick, TripRule,
};

const OK: Outcome = Outcome::success(Duration::from_millis(200));
const ERROR: Outcome = Outcome::failure(Kind::ServerError);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn spec() -> PolicySpec {
    PolicySpec {
        jitter: Some(0.0),
        ..PolicySpec::default()
    }
}

fn policy(spec: &PolicySpec) -> Policy {
    Policy::new(spec).unwrap()
}

fn provider() -> ScopeName {
    ScopeName::provider("p")
}

#[test]
fn a_row_without_count_keeps_that_of_the_row_it_replaces_in_presets_too() {
    let row = KindSpec {
        threshold: Some(3),
        ..KindSpec::default()
    };
    let mut written = PolicySpec {
        preset: Some(Preset::Vernllm),
        ..PolicySpec::default()
    };
    written.kinds.insert(Kind::BadRequest, row);
    written.kinds.insert(Kind::Parse, row);
    let policy = policy(&written);
    let bad = policy.kind(Kind::BadRequest);
    assert_eq!((bad.count, bad.threshold), (true, Some(3)));
    assert!(!policy.kind(Kind::Parse).count);
}

#[test]
fn presets_count_the_kinds_of_their_row_and_charge_as_it_says() {
    use Kind::{
        Auth, BadRequest, ContentPolicy, EmptyResponse, Network, NotFound, Overloaded,
        QuotaExhausted, RateLimit, ServerError, StreamStall, StreamTruncated, Timeout,
    };
    let rows: [(Preset, &[Kind], &[Kind]); 6] = [
        (
            Preset::Vernllm,
            &[
                Timeout,
                ServerError,
                RateLimit,
                BadRequest,
                Auth,
                NotFound,
                Network,
                EmptyResponse,
            ],
            &[Kind::Validation, Kind::Parse, Kind::Cancelled, Kind::Local],
        ),
        (
            Preset::Llmtest,
            &[ServerError, RateLimit, Timeout, Network],
            &[EmptyResponse, Auth, BadRequest, ContentPolicy],
        ),
        (
            Preset::LlmtestRate,
            &[ServerError, RateLimit, Timeout, Network],
            &[EmptyResponse, Auth, BadRequest, ContentPolicy],
        ),
        (
            Preset::Omniroute,
            &[
                RateLimit,
                QuotaExhausted,
                ServerError,
                Overloaded,
                StreamStall,
                StreamTruncated,
            ],
            &[Auth, BadRequest, Kind::Cancelled],
        ),
        (
            Preset::Agents,
            &[
                ServerError,
                RateLimit,
                BadRequest,
                Auth,
                NotFound,
                StreamTruncated,
            ],
            &[Kind::Validation, Kind::Cancelled, Kind::Local],
        ),
        (
            Preset::N4n,
            &[Network, ServerError, RateLimit, Timeout, StreamStall],
            &[EmptyResponse, Auth, BadRequest],
        ),
    ];
    for (preset, counted, neutral) in rows {
        let policy = policy(&PolicySpec {
            preset: Some(preset),
            ..PolicySpec::default()
        });
        let counts = |kind: &Kind| policy.kind(*kind).count;
        assert!(counted.iter().all(counts), "{preset} counts {counted:?}");
        assert!(!neutral.iter().any(counts), "{preset} ignores {neutral:?}");
        assert!(!policy.kind(QuotaExhausted).immediate_open, "{preset}");
        let per = if preset == Preset::N4n {
            Per::Model
        } else {
            Per::Provider
        };
        assert_eq!(policy.per(), per, "{preset}");
    }
}

#[test]
fn omniroutes_cooldown_doubles_after_three_failed_probes_up_to_sixteen_times() {
    let omniroute = policy(&PolicySpec {
        preset: Some(Preset::Omniroute),
        jitter: Some(0.0),
        ..PolicySpec::default()
    });
    let breaker = Breaker::new(provider(), omniroute);
    for _ in 0..4 {
        breaker.try_acquire(at(0)).unwrap().record(&ERROR, at(0));
    }
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..10 {
        breaker.try_acquire(now).unwrap().record(&ERROR, now);
        let wait = breaker.check(now).unwrap_err().retry_after;
        waits.push(wait.as_secs());
        now = now + wait;
    }
    assert_eq!(waits, [30, 30, 30, 30, 60, 120, 240, 480, 480, 480]);
}

#[test]
fn every_bad_window_limit_and_duration_is_refused_wherever_it_stands() {
    let (minute, short, endless) = (
        Duration::from_secs(60),
        Duration::from_millis(999),
        Duration::MAX,
    );
    let slow = |slower_than, threshold, window, min_calls| TripRule::Slow {
        slower_than,
        threshold,
        window,
        min_calls,
    };
    let rules = [
        (
            TripRule::Window {
                failures: 1,
                window: short,
            },
            "trip[0].window",
        ),
        (
            TripRule::Window {
                failures: 1,
                window: endless,
            },
            "trip[0].window",
        ),
        (slow(Duration::ZERO, 0.5, minute, 1), "trip[0].slower_than"),
        (slow(minute, 0.0, minute, 1), "trip[0].threshold"),
        (slow(minute, 0.5, short, 1), "trip[0].window"),
        (slow(minute, 0.5, minute, 0), "trip[0].min_calls"),
    ];
    let rules = rules.map(|(rule, key)| {
        let spec = PolicySpec {
            trip: Some(vec![rule]),
            ..PolicySpec::default()
        };
        (spec, key)
    });
    let mut rested = PolicySpec::default();
    let row = KindSpec {
        cooldown: Some(Duration::ZERO),
        ..KindSpec::default()
    };
    rested.kinds.insert(Kind::Timeout, row);
    let durations = [
        (rested, "kinds.timeout.cooldown"),
        (
            PolicySpec {
                ramp: Some(endless),
                ..spec()
            },
            "ramp",
        ),
        (
            PolicySpec {
                max_cooldown: Some(endless),
                ..spec()
            },
            "max_cooldown",
        ),
        (
            PolicySpec {
                max_retry_after: Some(endless),
                ..spec()
            },
            "max_retry_after",
        ),
        (
            PolicySpec {
                probe_proof: Some(endless),
                ..spec()
            },
            "probe_proof",
        ),
        (
            PolicySpec {
                degraded_at: Some(f64::NAN),
                ..spec()
            },
            "degraded_at",
        ),
    ];
    for (spec, key) in rules.into_iter().chain(durations) {
        let problems = Policy::new(&spec).unwrap_err().problems;
        let keys: Vec<_> = problems
            .iter()
            .map(|problem| problem.key.as_str())
            .collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn durations_and_names_are_read_as_written_and_refused_with_what_is_allowed() {
    let read = |text: &str| serde_json::from_str::<PolicySpec>(text).map_err(|why| why.to_string());
    let spec = read(r#"{"cooldown":"1m30s","probe_timeout":"500ms","max_cooldown":"2m"}"#).unwrap();
    assert_eq!(
        (spec.cooldown, spec.probe_timeout, spec.max_cooldown),
        (
            Some(Duration::from_secs(90)),
            Some(Duration::from_millis(500)),
            Some(Duration::from_secs(120))
        )
    );
    for (text, part) in [
        (r#"{"cooldown":"-5s"}"#, "`-5s` is no duration such as"),
        (r#"{"cooldown":"15"}"#, "`15` is no duration such as"),
        (r#"{"cooldown":""}"#, "is no duration such as"),
        (r#"{"probes":-1}"#, "expected u32"),
        (
            r#"{"mode":"enforced"}"#,
            "expected one of `enforce`, `shadow`, `off`",
        ),
        (
            r#"{"preset":"vern"}"#,
            "`vern` is no preset; there are vernllm",
        ),
        (
            r#"{"kinds":{"time_out":{}}}"#,
            "`time_out` is no kind of failure",
        ),
        (r#"{"trip":[{"rule":"rates"}]}"#, "unknown variant `rates`"),
        (
            r#"{"trip":[{"rule":"window","failures":5,"window":null}]}"#,
            "a duration is missing",
        ),
    ] {
        let why = read(text).unwrap_err();
        assert!(why.contains(part), "{text}: {why}");
    }
}

#[test]
fn a_kinds_own_threshold_falls_with_successes_as_the_run_does() {
    let mut leaking = PolicySpec {
        trip: Some(Vec::new()),
        on_success: Some(OnSuccess::Decrement),
        ..spec()
    };
    let row = KindSpec {
        threshold: Some(2),
        ..KindSpec::default()
    };
    leaking.kinds.insert(Kind::RateLimit, row);
    let breaker = Breaker::new(provider(), policy(&leaking));
    let record = |outcome: &Outcome| breaker.try_acquire(at(0)).unwrap().record(outcome, at(0));
    let limited = Outcome::Failure(Failure::new(Kind::RateLimit).code(429));
    for _ in 0..3 {
        record(&limited);
        record(&OK);
    }
    assert_eq!(breaker.snapshot(at(0)).kinds, []);
    record(&limited);
    record(&ERROR);
    record(&limited);
    assert_eq!(breaker.state(at(0)), State::Open);
    assert_eq!(
        breaker.history(0).pop().unwrap().why.to_string(),
        "kind 2/2, rate_limit; last failures: rate_limit 429, rate_limit 429, rate_limit 429, server_error, rate_limit 429"
    );
}
