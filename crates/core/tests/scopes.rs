//! Scopes and the registry: leave from all, one charge, the provider as a whole, bounded memory.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Cause, Clock, Failure, Kind, KindSpec, Mode, Outcome, Per, Policies, Policy, PolicySpec,
    Reason, Registry, RegistryConfig, Scope, ScopeName, ScopedPermit, ScopedRejection, Scopes,
    State, Tick, TripRule,
};

const OK: Outcome = Outcome::success(Duration::from_millis(200));

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

fn spec() -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 2 }]),
        jitter: Some(0.0),
        successes_to_close: Some(1),
        ..PolicySpec::default()
    }
}

struct Bench {
    registry: Registry,
    policies: Policies,
}

impl Bench {
    fn new(spec: &PolicySpec) -> Self {
        let config = RegistryConfig {
            clock: Clock::manual(),
            ..RegistryConfig::default()
        };
        Self {
            registry: Registry::new(config),
            policies: Policies::all(&Policy::new(spec).unwrap()),
        }
    }

    fn scopes(&self, model: &str, key: &str) -> Scopes {
        let (model, key) = (ScopeName::model("p", model), ScopeName::key("p", key));
        let policies = self.policies.clone();
        Scopes::new(
            &self.registry,
            ScopeName::provider("p"),
            Some(model),
            Some(key),
            policies,
            at(0),
        )
        .unwrap()
    }

    fn acquire(&self, model: &str, key: &str, now: Tick) -> Result<ScopedPermit, ScopedRejection> {
        self.scopes(model, key).try_acquire(Duration::ZERO, now)
    }

    fn record(&self, model: &str, outcome: &Outcome, now: Tick) {
        self.acquire(model, "0", now)
            .unwrap()
            .record(outcome, None, now);
    }

    fn state(&self, name: &ScopeName, now: Tick) -> Option<State> {
        self.registry
            .find_breaker(name)
            .map(|breaker| breaker.state(now))
    }
}

#[test]
fn each_kind_is_charged_to_one_scope_and_no_other() {
    let provider = ScopeName::provider("p");
    let model = ScopeName::model("p", "m");
    let key = ScopeName::key("p", "0");
    let cases = [
        (Kind::Network, Scope::Provider),
        (Kind::ServerError, Scope::Model),
        (Kind::Overloaded, Scope::Model),
        (Kind::Timeout, Scope::Model),
        (Kind::EmptyResponse, Scope::Model),
        (Kind::StreamStall, Scope::Model),
        (Kind::StreamTruncated, Scope::Model),
        (Kind::RateLimit, Scope::Key),
        (Kind::QuotaExhausted, Scope::Key),
    ];
    for (kind, charged) in cases {
        let bench = Bench::new(&spec());
        bench.record("m", &Outcome::failure(kind), at(0));
        let runs: Vec<_> = [&provider, &model, &key]
            .into_iter()
            .filter_map(|name| bench.registry.find_breaker(name))
            .filter(|breaker| !breaker.snapshot(at(0)).last_failures.is_empty())
            .map(|breaker| breaker.name().scope())
            .collect();
        assert_eq!(runs, [charged], "{kind}");
    }
}

#[test]
fn what_the_evidence_says_of_a_key_beats_the_row_of_the_kind() {
    let bench = Bench::new(&spec());
    let permit = bench.acquire("m", "0", at(0)).unwrap();
    permit.record(&Outcome::failure(Kind::Overloaded), Some(Scope::Key), at(0));
    assert_eq!(
        bench
            .registry
            .find_breaker(&ScopeName::key("p", "0"))
            .unwrap()
            .snapshot(at(0))
            .run,
        1
    );
    assert!(
        bench
            .registry
            .find_breaker(&ScopeName::model("p", "m"))
            .is_none()
    );
}

#[test]
fn per_provider_charges_provider_side_kinds_to_the_provider() {
    let bench = Bench::new(&PolicySpec {
        per: Some(Per::Provider),
        ..spec()
    });
    bench.record("m", &Outcome::failure(Kind::Overloaded), at(0));
    bench.record("n", &Outcome::failure(Kind::ServerError), at(0));
    assert_eq!(
        bench.state(&ScopeName::provider("p"), at(0)),
        Some(State::Open)
    );
}

#[test]
fn an_overloaded_model_or_a_limited_key_takes_nobody_else_down() {
    let bench = Bench::new(&spec());
    bench.record("m", &Outcome::failure(Kind::Overloaded), at(0));
    bench.record("m", &Outcome::failure(Kind::Overloaded), at(0));
    assert_eq!(
        bench.acquire("m", "0", at(1)).unwrap_err().name,
        ScopeName::model("p", "m")
    );
    bench.record("n", &OK, at(1));
    let limited = Outcome::Failure(
        Failure::new(Kind::RateLimit)
            .retry_after(Duration::from_secs(90))
            .open_now(),
    );
    bench.record("n", &limited, at(2));
    let refused = bench.acquire("n", "0", at(2)).unwrap_err();
    assert_eq!(
        (refused.name, refused.rejection.reason),
        (ScopeName::key("p", "0"), Reason::Open)
    );
    assert_eq!(refused.rejection.retry_after, Duration::from_secs(90));
    assert!(bench.acquire("n", "1", at(2)).is_ok(), "another key serves");
}

#[test]
fn the_reported_reason_is_that_of_the_longest_wait() {
    let bench = Bench::new(&spec());
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::ServerError), at(0));
    }
    let provider = bench
        .registry
        .find_breaker(&ScopeName::provider("p"))
        .unwrap();
    provider.force_open(Some(at(5_000)), at(0));
    let refused = bench.acquire("m", "0", at(0)).unwrap_err();
    assert_eq!(
        (refused.rejection.reason, refused.name),
        (Reason::Open, ScopeName::model("p", "m"))
    );
    provider.force_open(Some(at(15_000)), at(0));
    let refused = bench.acquire("m", "0", at(0)).unwrap_err();
    assert_eq!(
        refused.rejection.reason,
        Reason::Forced,
        "at a tie forced comes first"
    );
    assert_eq!(refused.to_string(), "p: circuit forced, retry in 15 s");
}

#[test]
fn a_refusal_changes_nothing_anywhere() {
    let bench = Bench::new(&PolicySpec {
        max_in_flight: Some(1),
        ..spec()
    });
    bench.record("m", &OK, at(0));
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::ServerError), at(0));
    }
    assert!(bench.acquire("m", "0", at(1)).is_err());
    let provider = bench
        .registry
        .find_breaker(&ScopeName::provider("p"))
        .unwrap();
    assert_eq!(
        provider.snapshot(at(1)).in_flight,
        0,
        "the provider's seat was not taken"
    );
    // A probe of the model holds the provider's seat; a second caller is refused and leaves the probe alone.
    let probe = bench.acquire("m", "0", at(15_000)).unwrap();
    assert!(probe.is_probe());
    assert!(bench.acquire("m", "0", at(15_000)).is_err());
    probe.record(&OK, None, at(15_100));
    assert_eq!(
        bench.state(&ScopeName::model("p", "m"), at(15_100)),
        Some(State::Closed)
    );
    assert_eq!(provider.snapshot(at(15_100)).in_flight, 0);
}

#[test]
fn the_provider_opens_with_more_than_half_of_its_models() {
    let bench = Bench::new(&spec());
    for model in ["a", "b", "c"] {
        bench.record(model, &OK, at(0));
    }
    let open = |model: &str, now| {
        for _ in 0..2 {
            bench.record(model, &Outcome::failure(Kind::ServerError), now);
        }
    };
    let provider = ScopeName::provider("p");
    open("a", at(10));
    assert_eq!(
        bench.state(&provider, at(10)),
        Some(State::Closed),
        "one model is not two"
    );
    open("b", at(20));
    assert_eq!(
        bench.state(&provider, at(20)),
        Some(State::Open),
        "two of three"
    );
    let why = bench
        .registry
        .find_breaker(&provider)
        .unwrap()
        .snapshot(at(20))
        .why
        .unwrap()
        .why;
    assert_eq!(
        (why.cause, why.kind),
        (Cause::Models, Some(Kind::ServerError))
    );
    assert_eq!(why.to_string(), "models 2/1.5, server_error");
}

#[test]
fn two_of_four_models_are_not_more_than_half_unless_the_others_were_not_called_lately() {
    for (called_at, state) in [(30_000, State::Closed), (0, State::Open)] {
        let bench = Bench::new(&spec());
        for model in ["c", "d"] {
            bench.record(model, &OK, at(called_at));
        }
        for model in ["a", "b"] {
            for _ in 0..2 {
                bench.record(model, &Outcome::failure(Kind::Overloaded), at(70_000));
            }
        }
        assert_eq!(
            bench.state(&ScopeName::provider("p"), at(70_000)),
            Some(state),
            "others called at {called_at}"
        );
    }
}

#[test]
fn three_of_five_models_are_more_than_half() {
    let bench = Bench::new(&spec());
    for model in ["d", "e"] {
        bench.record(model, &OK, at(0));
    }
    for model in ["a", "b", "c"] {
        for _ in 0..2 {
            bench.record(model, &Outcome::failure(Kind::Overloaded), at(0));
        }
    }
    let provider = ScopeName::provider("p");
    assert_eq!(bench.state(&provider, at(0)), Some(State::Open));
}

/// A model that nobody calls any more counts as long as its cooldown runs, and not in the instant it ends.
#[test]
fn a_model_that_opened_long_ago_counts_while_its_cooldown_runs() {
    for (cooldown, state) in [
        (119, State::Closed),
        (120, State::Closed),
        (121, State::Open),
    ] {
        let cooldown = Some(Duration::from_secs(cooldown));
        let bench = Bench::new(&PolicySpec {
            cooldown,
            max_cooldown: cooldown,
            ..spec()
        });
        for (model, now) in [("a", at(0)), ("b", at(120_000))] {
            for _ in 0..2 {
                bench.record(model, &Outcome::failure(Kind::Overloaded), now);
            }
        }
        assert_eq!(
            bench.state(&ScopeName::provider("p"), at(120_000)),
            Some(state),
            "{cooldown:?}"
        );
    }
}

#[test]
fn a_hold_makes_calls_of_its_key_wait_and_only_a_success_or_an_operator_clears_it() {
    let bench = Bench::new(&spec());
    let scopes = bench.scopes("m", "0");
    let flying = scopes.try_acquire(Duration::ZERO, at(0)).unwrap();
    scopes.hold(Duration::from_secs(10), at(0));
    scopes.hold(Duration::from_secs(3), at(0));
    let refused = scopes
        .try_acquire(Duration::ZERO, at(1_000))
        .unwrap_err()
        .rejection;
    assert_eq!(
        (refused.reason, refused.retry_after),
        (Reason::Held, Duration::from_secs(9))
    );
    assert!(
        bench.acquire("m", "1", at(1_000)).is_ok(),
        "other keys serve"
    );
    let key = bench
        .registry
        .find_breaker(&ScopeName::key("p", "0"))
        .unwrap();
    assert_eq!(key.snapshot(at(1_000)).run, 0, "no counter moved");
    flying.record(&Outcome::failure(Kind::BadRequest), None, at(1_000));
    assert!(scopes.check(at(1_000)).is_err());
    bench
        .registry
        .find_breaker(&ScopeName::key("p", "0"))
        .unwrap()
        .reset(at(1_000));
    assert!(scopes.check(at(1_000)).is_ok());
    scopes.hold(Duration::from_secs(10), at(1_000));
    assert!(scopes.check(at(11_000)).is_ok(), "it ends by itself");
}

#[test]
fn a_kind_that_does_not_count_is_neutral_and_makes_no_breaker() {
    let bench = Bench::new(&spec());
    for kind in [
        Kind::BadRequest,
        Kind::NotFound,
        Kind::Auth,
        Kind::Cancelled,
        Kind::Local,
    ] {
        bench.record("m", &Outcome::failure(kind), at(0));
    }
    assert_eq!(bench.registry.len(), 1, "the provider's alone");
    let mut counted = spec();
    counted.kinds.insert(
        Kind::Auth,
        KindSpec {
            count: Some(true),
            ..KindSpec::default()
        },
    );
    let bench = Bench::new(&counted);
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::Auth), at(0));
    }
    assert_eq!(
        bench.state(&ScopeName::key("p", "0"), at(0)),
        Some(State::Open),
        "a key of our own rests"
    );
}

#[test]
fn a_shadow_refuses_nobody_and_says_whom_it_would() {
    let bench = Bench::new(&PolicySpec {
        mode: Some(Mode::Shadow),
        ..spec()
    });
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::ServerError), at(0));
    }
    let permit = bench.acquire("m", "0", at(1)).unwrap();
    assert_eq!(
        permit.would_reject().map(|rejection| rejection.reason),
        Some(Reason::Open)
    );
}

#[test]
fn a_registry_full_of_open_breakers_guards_newcomers_by_their_provider_and_counts_them() {
    let config = RegistryConfig {
        max_breakers: 3,
        clock: Clock::manual(),
        ..RegistryConfig::default()
    };
    let bench = Bench {
        registry: Registry::new(config),
        ..Bench::new(&spec())
    };
    for model in ["a", "b"] {
        for _ in 0..2 {
            let permit = bench.acquire(model, "0", at(0));
            if let Ok(permit) = permit {
                permit.record(&Outcome::failure(Kind::ServerError), None, at(0));
            }
        }
    }
    let provider = bench
        .registry
        .find_breaker(&ScopeName::provider("p"))
        .unwrap();
    provider.reset(at(0));
    bench.record("newcomer", &Outcome::failure(Kind::ServerError), at(1));
    assert_eq!((bench.registry.len(), bench.registry.unguarded()), (3, 1));
    let full = bench
        .registry
        .get_breaker(&ScopeName::provider("q"), &Policy::default(), at(1))
        .unwrap_err();
    assert_eq!(
        full.to_string(),
        "no room for breaker `q`: all 3 (max_breakers) are open or in use"
    );
    drop(provider);
    assert!(
        bench
            .registry
            .get_breaker(&ScopeName::provider("q"), &Policy::default(), at(1))
            .is_ok()
    );
}

#[test]
fn mode_off_is_no_breaker_at_all() {
    let bench = Bench::new(&PolicySpec {
        mode: Some(Mode::Off),
        max_in_flight: Some(1),
        ..spec()
    });
    for call in 0..20 {
        let first = bench.acquire("m", "0", at(call)).unwrap();
        let second = bench.acquire("m", "0", at(call)).unwrap();
        first.record(&Outcome::failure(Kind::ServerError), None, at(call));
        second.record(&Outcome::failure(Kind::Network), None, at(call));
    }
    let seen = bench
        .registry
        .find_breaker(&ScopeName::provider("p"))
        .unwrap()
        .snapshot(at(20));
    assert_eq!((seen.state, seen.run, seen.late), (State::Closed, 0, 0));
}

#[test]
fn only_a_closing_counts_as_closed_and_pressure_that_falls_does_not() {
    let bench = Bench::new(&PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 3 }]),
        ..spec()
    });
    let fail = |times, now| {
        (0..times).for_each(|_| bench.record("m", &Outcome::failure(Kind::ServerError), now))
    };
    fail(2, at(0));
    bench.record("m", &OK, at(0));
    fail(3, at(1));
    bench.record("m", &OK, at(15_001));
    let seen = bench
        .registry
        .find_breaker(&ScopeName::model("p", "m"))
        .unwrap()
        .snapshot(at(15_001));
    let entered: Vec<_> = State::ALL.into_iter().zip(seen.entered).collect();
    let expected = [
        (State::Closed, 1),
        (State::Degraded, 2),
        (State::Open, 1),
        (State::HalfOpen, 1),
        (State::ForcedOpen, 0),
        (State::ForcedClosed, 0),
    ];
    assert_eq!(entered, expected);
}

#[test]
fn a_models_probe_that_cannot_connect_has_failed_and_no_second_call_knocks() {
    let bench = Bench::new(&spec());
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::ServerError), at(0));
    }
    let probe = bench.acquire("m", "0", at(15_000)).unwrap();
    assert!(probe.is_probe());
    probe.record(&Outcome::failure(Kind::Network), None, at(15_001));
    assert_eq!(
        bench.state(&ScopeName::model("p", "m"), at(15_001)),
        Some(State::Open)
    );
    assert!(bench.acquire("m", "0", at(15_002)).is_err());
    let provider = bench
        .registry
        .find_breaker(&ScopeName::provider("p"))
        .unwrap();
    assert_eq!(
        provider.snapshot(at(15_002)).run,
        0,
        "charged once, to the breaker under probe"
    );
    bench.record("n", &Outcome::failure(Kind::Network), at(15_003));
    assert_eq!(
        provider.snapshot(at(15_003)).run,
        1,
        "any other call's is the provider's"
    );
}

#[test]
fn the_result_of_a_call_older_than_its_breaker_is_late_once_that_has_changed() {
    let bench = Bench::new(&spec());
    let old: Vec<_> = (0..2)
        .map(|_| bench.acquire("m", "0", at(0)).unwrap())
        .collect();
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::ServerError), at(1));
    }
    let model = bench
        .registry
        .find_breaker(&ScopeName::model("p", "m"))
        .unwrap();
    assert_eq!(model.state(at(1)), State::Open);
    // Past the cooldown: these two were never probes.
    for permit in old {
        permit.record(&OK, None, at(20_000));
    }
    let seen = model.snapshot(at(20_000));
    assert_eq!(
        (seen.state, seen.late, seen.retry_after),
        (State::Open, 2, Some(Duration::ZERO))
    );
}

#[test]
fn scopes_and_the_parts_of_names_read_as_they_are_written() {
    let names = [
        ScopeName::provider("p"),
        ScopeName::model("p", "m"),
        ScopeName::key("p", "0"),
    ];
    let seen = names.map(|name| (name.scope().to_string(), name.part().map(str::to_owned)));
    let wanted = [("provider", None), ("model", Some("m")), ("key", Some("0"))];
    assert_eq!(
        seen,
        wanted.map(|(scope, part)| (scope.to_owned(), part.map(str::to_owned)))
    );
}

#[test]
fn scopes_are_due_where_the_next_call_would_be_a_probe_and_its_permit_says_so() {
    let bench = Bench::new(&spec());
    let scopes = bench.scopes("m", "0");
    assert_eq!(scopes.check_due(at(0)), Ok(false));
    let plain = scopes.try_acquire(Duration::ZERO, at(0)).unwrap();
    assert!(!plain.is_probe());
    plain.record(&OK, None, at(0));
    for _ in 0..2 {
        bench.record("m", &Outcome::failure(Kind::Overloaded), at(0));
    }
    assert!(scopes.check_due(at(14_999)).is_err());
    assert_eq!(scopes.check_due(at(15_000)), Ok(true));
    let probe = scopes.try_acquire(Duration::ZERO, at(15_000)).unwrap();
    assert!(probe.is_probe());
    probe.cancel(at(15_000));
    assert_eq!(
        scopes.check_due(at(15_000)),
        Ok(true),
        "its slot is free again"
    );
}
