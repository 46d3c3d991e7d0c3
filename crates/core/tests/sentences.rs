//! Sentences of the design that a reading of the code found unkept once: each test names its own.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::replay::{Line, Replay};
use fuseline_core::{
    Breaker, Clock, Kind, Mode, Outcome, Policies, Policy, PolicySpec, Registry, RegistryConfig,
    ScopeName, Scopes, State, Tick, TripRule,
};

const OK: Outcome = Outcome::success(Duration::from_millis(200));
const ERROR: Outcome = Outcome::failure(Kind::ServerError);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn spec(failures: u32) -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures }]),
        jitter: Some(0.0),
        successes_to_close: Some(1),
        ..PolicySpec::default()
    }
}

fn policy(spec: &PolicySpec) -> Policy {
    Policy::new(spec).unwrap()
}

fn registry() -> Registry {
    Registry::new(RegistryConfig {
        clock: Clock::manual(),
        ..RegistryConfig::default()
    })
}

fn scopes(registry: &Registry, model: &str, policies: &Policies) -> Scopes {
    let key = Some(ScopeName::key("p", "0"));
    let model = Some(ScopeName::model("p", model));
    let provider = ScopeName::provider("p");
    Scopes::new(registry, provider, model, key, policies.clone(), at(0)).unwrap()
}

fn record(scopes: &Scopes, outcome: &Outcome, now: Tick) {
    let permit = scopes.try_acquire(Duration::ZERO, now).unwrap();
    permit.record(outcome, None, now);
}

fn state(registry: &Registry, name: &ScopeName, now: Tick) -> State {
    registry.find_breaker(name).unwrap().state(now)
}

/// Rule 14: the k-th call since closing passes iff ..., also where it is asked for by way of scopes.
#[test]
fn a_ramp_counts_the_calls_that_it_refuses_through_scopes_too() {
    let registry = registry();
    let ramped = PolicySpec {
        ramp: Some(Duration::from_secs(10)),
        ..spec(2)
    };
    let scopes = scopes(&registry, "m", &Policies::all(&policy(&ramped)));
    record(&scopes, &ERROR, at(0));
    record(&scopes, &ERROR, at(0));
    record(&scopes, &OK, at(15_000));
    let passed = (0..100)
        .filter_map(|_| scopes.try_acquire(Duration::ZERO, at(20_000)).ok())
        .map(|permit| permit.cancel(at(20_000)))
        .count();
    assert!(
        (50..=51).contains(&passed),
        "half of 100 pass half-way up the ramp, not {passed}"
    );
}

/// tick.rs: "a wrong number, never a panic". `at_ms` of a replay is what a user's file says.
#[test]
fn the_end_of_time_is_a_wrong_number_and_no_panic() {
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::default());
    breaker
        .try_acquire(Tick::MAX)
        .unwrap()
        .record(&ERROR, Tick::MAX);
    assert_eq!(breaker.state(Tick::MAX), State::Closed);
    let mut replay = Replay::new();
    for text in [
        r#"{"case":"x","breaker":{}}"#,
        r#"{"at_ms":18446744073709551615,"do":"acquire","as":"c"}"#,
        r#"{"at_ms":18446744073709551615,"do":"failure","of":"c","kind":"network"}"#,
    ] {
        let line: Line<'_> = serde_json::from_str(text).unwrap();
        replay.line(&line).unwrap();
    }
}

/// "at least two of its models, and more than half of those called in the last window": models that nobody has
/// called for an hour say nothing about the provider, and one that is only under pressure is not open.
#[test]
fn models_that_opened_long_ago_and_are_not_called_any_more_do_not_open_their_provider() {
    let registry = registry();
    let policies = Policies::all(&policy(&spec(3)));
    for model in ["retired", "old"] {
        let scopes = scopes(&registry, model, &policies);
        // The others keep the provider from opening now.
        for healthy in ["a", "b", "c"] {
            record(&self::scopes(&registry, healthy, &policies), &OK, at(0));
        }
        (0..3).for_each(|_| record(&scopes, &ERROR, at(0)));
    }
    let provider = ScopeName::provider("p");
    assert_eq!(state(&registry, &provider, at(0)), State::Closed);
    let (hour, live) = (3_600_000, scopes(&registry, "live", &policies));
    record(&live, &OK, at(hour));
    record(&live, &ERROR, at(hour));
    record(&live, &ERROR, at(hour));
    let model = ScopeName::model("p", "live");
    assert_eq!(state(&registry, &model, at(hour)), State::Degraded);
    assert_eq!(state(&registry, &provider, at(hour)), State::Closed);
}

/// registry.rs: "A slow trip has no kind, and is the model's own."
#[test]
fn models_opened_by_slow_answers_open_their_provider() {
    let registry = registry();
    let slow = PolicySpec {
        trip: Some(vec![TripRule::Slow {
            slower_than: Duration::from_secs(1),
            threshold: 0.5,
            window: Duration::from_secs(60),
            min_calls: 2,
        }]),
        ..spec(2)
    };
    let quiet = policy(&spec(50));
    let policies = Policies {
        provider: quiet.clone(),
        model: policy(&slow),
        key: quiet,
    };
    let crawl = Outcome::success(Duration::from_secs(9));
    for model in ["a", "b"] {
        let scopes = scopes(&registry, model, &policies);
        record(&scopes, &crawl, at(0));
        record(&scopes, &crawl, at(0));
        assert_eq!(
            state(&registry, &ScopeName::model("p", model), at(0)),
            State::Open
        );
    }
    assert_eq!(
        state(&registry, &ScopeName::provider("p"), at(0)),
        State::Open
    );
}

/// As above: a rate that a success completes was made of the model's own failures.
#[test]
fn models_opened_by_a_rate_that_a_success_completed_open_their_provider() {
    let registry = registry();
    let rate = PolicySpec {
        trip: Some(vec![TripRule::Rate {
            threshold: 0.5,
            window: Duration::from_secs(60),
            min_calls: 3,
        }]),
        ..spec(2)
    };
    let quiet = policy(&spec(50));
    let policies = Policies {
        provider: quiet.clone(),
        model: policy(&rate),
        key: quiet,
    };
    for model in ["a", "b"] {
        let scopes = scopes(&registry, model, &policies);
        record(&scopes, &ERROR, at(0));
        record(&scopes, &ERROR, at(0));
        record(&scopes, &OK, at(0));
        assert_eq!(
            state(&registry, &ScopeName::model("p", model), at(0)),
            State::Open
        );
    }
    assert_eq!(
        state(&registry, &ScopeName::provider("p"), at(0)),
        State::Open
    );
}

/// `shadow`: "decides, counts, reports, rejects nobody".
#[test]
fn models_in_shadow_make_no_provider_reject() {
    let registry = registry();
    let watching = PolicySpec {
        mode: Some(Mode::Shadow),
        ..spec(2)
    };
    let enforced = policy(&spec(2));
    let policies = Policies {
        provider: enforced.clone(),
        model: policy(&watching),
        key: enforced,
    };
    for model in ["a", "b"] {
        let scopes = scopes(&registry, model, &policies);
        record(&scopes, &ERROR, at(0));
        record(&scopes, &ERROR, at(0));
    }
    assert!(scopes(&registry, "a", &policies).check(at(0)).is_ok());
}

/// Rule 14, shadow: "its outcome changes nothing ..., so the state evolves as if enforced".
#[test]
fn in_shadow_the_outcome_of_a_call_that_one_scope_would_reject_changes_no_scope() {
    let registry = registry();
    let watching = PolicySpec {
        mode: Some(Mode::Shadow),
        ..spec(2)
    };
    let scopes = scopes(&registry, "m", &Policies::all(&policy(&watching)));
    record(&scopes, &OK, at(0));
    let provider = registry.find_breaker(&ScopeName::provider("p")).unwrap();
    provider.force_open(None, at(0));
    for _ in 0..2 {
        let permit = scopes.try_acquire(Duration::ZERO, at(1)).unwrap();
        assert!(permit.would_reject().is_some());
        permit.record(&ERROR, None, at(1));
    }
    assert_eq!(
        state(&registry, &ScopeName::model("p", "m"), at(1)),
        State::Closed
    );
}

/// `forced_closed`: "all pass"; hold: "only a success or an operator clears it".
#[test]
fn a_key_forced_closed_lets_calls_pass_whatever_the_provider_asked_for() {
    let registry = registry();
    let scopes = scopes(&registry, "m", &Policies::all(&policy(&spec(2))));
    scopes.hold(Duration::from_secs(60), at(0));
    assert!(scopes.check(at(0)).is_err());
    let key = registry.find_breaker(&ScopeName::key("p", "0")).unwrap();
    key.force_closed(None, at(0));
    assert!(scopes.check(at(0)).is_ok());
}

/// `off`: "no breaker". A router offers a due target the next call first; this one would be due for ever.
#[test]
fn a_breaker_that_is_off_is_never_due_for_a_probe() {
    let breaker = Breaker::new(ScopeName::provider("p"), policy(&spec(1)));
    breaker.try_acquire(at(0)).unwrap().record(&ERROR, at(0));
    let off = PolicySpec {
        mode: Some(Mode::Off),
        ..spec(1)
    };
    breaker.reconfigure(policy(&off), at(1));
    assert!(!breaker.try_acquire(at(20_000)).unwrap().is_probe());
    assert!(!breaker.is_due(at(20_000)));
}

/// "a probe that shows no sign of life for this long has failed": no limit was given, so there is none to outlive.
#[test]
fn a_probe_timeout_below_a_second_means_what_it_says_where_the_attempt_has_no_limit() {
    let quick = PolicySpec {
        probe_timeout: Some(Duration::from_millis(300)),
        ..spec(1)
    };
    let breaker = Breaker::new(ScopeName::provider("p"), policy(&quick));
    breaker.try_acquire(at(0)).unwrap().record(&ERROR, at(0));
    let _probe = breaker.try_acquire(at(15_000)).unwrap();
    assert_eq!(breaker.state(at(15_300)), State::Open);
}

/// `retry_after` of a rejection: "`forced` to its expiry".
#[test]
fn a_forced_state_with_a_far_expiry_says_so_on_both_paths() {
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::default());
    breaker.force_open(Some(at(1 << 40)), at(0));
    let foreseen = breaker.check(at(0)).unwrap_err();
    assert_eq!(breaker.try_acquire(at(0)).unwrap_err(), foreseen);
}

/// A ramp that is over stays over.
#[test]
fn a_longer_ramp_does_not_bring_back_one_that_is_over() {
    let ramped = |secs| {
        policy(&PolicySpec {
            ramp: Some(Duration::from_secs(secs)),
            ..spec(1)
        })
    };
    let breaker = Breaker::new(ScopeName::provider("p"), ramped(10));
    breaker.try_acquire(at(0)).unwrap().record(&ERROR, at(0));
    breaker
        .try_acquire(at(15_000))
        .unwrap()
        .record(&OK, at(15_000));
    breaker.try_acquire(at(40_000)).unwrap().cancel(at(40_000));
    breaker.reconfigure(ramped(600), at(40_000));
    let passed = (0..20)
        .filter(|_| breaker.try_acquire(at(40_000)).is_ok())
        .count();
    assert_eq!(passed, 20);
}

/// History is in the order of time.
#[test]
fn a_forced_state_that_is_already_over_does_not_end_before_it_began() {
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::default());
    breaker.force_open(Some(at(5)), at(10));
    drop(breaker.try_acquire(at(10)));
    let times: Vec<_> = breaker.history(0).iter().map(|change| change.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}
