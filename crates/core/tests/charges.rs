//! Charges, holds and eviction: each test fails where one line of scopes or registry says otherwise.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;

use fuseline_core::{
    Breaker, Clock, Kind, KindSpec, Mode, Outcome, Policies, Policy, PolicySpec, Reason, Registry,
    RegistryConfig, Scope, ScopeName, Scopes, State, Tick, TripRule,
};

const OK: Outcome = Outcome::success(Duration::from_millis(200));
const ERROR: Outcome = Outcome::failure(Kind::ServerError);

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

fn policy(spec: &PolicySpec) -> Policy {
    Policy::new(spec).unwrap()
}

fn provider() -> ScopeName {
    ScopeName::provider("p")
}

fn key() -> ScopeName {
    ScopeName::key("p", "0")
}

struct Bench {
    registry: Registry,
    policies: Policies,
}

impl Bench {
    fn new(spec: &PolicySpec) -> Self {
        Self::of(spec, 500)
    }

    fn of(spec: &PolicySpec, max_breakers: usize) -> Self {
        let config = RegistryConfig {
            max_breakers,
            clock: Clock::manual(),
            ..RegistryConfig::default()
        };
        Self {
            registry: Registry::new(config),
            policies: Policies::all(&policy(spec)),
        }
    }

    fn scopes(&self, model: &str) -> Scopes {
        self.touching(provider(), Some(ScopeName::model("p", model)), Some(key()))
    }

    fn touching(
        &self,
        provider: ScopeName,
        model: Option<ScopeName>,
        key: Option<ScopeName>,
    ) -> Scopes {
        let policies = self.policies.clone();
        Scopes::new(&self.registry, provider, model, key, policies, at(0)).unwrap()
    }

    fn record(&self, model: &str, outcome: &Outcome, now: Tick) {
        let permit = self.scopes(model).try_acquire(Duration::ZERO, now);
        permit.unwrap().record(outcome, None, now);
    }

    fn find(&self, name: &ScopeName) -> Breaker {
        self.registry.find_breaker(name).unwrap()
    }

    fn rejected(&self, name: &ScopeName, why: Reason) -> u64 {
        let counts = self.find(name).snapshot(at(0)).rejected;
        counts.iter().find(|(reason, _)| *reason == why).unwrap().1
    }
}

#[test]
fn a_late_refusal_gives_back_what_was_reserved_before_it() {
    let limited = PolicySpec {
        max_in_flight: Some(1),
        ..spec()
    };
    let bench = Bench::new(&limited);
    // The same breaker twice: the question finds it free, the second reservation meets the first.
    let twice = bench.touching(provider(), Some(provider()), None);
    let refused = twice.try_acquire(Duration::ZERO, at(0)).unwrap_err();
    assert_eq!(refused.rejection.reason, Reason::Saturated);
    assert_eq!(bench.find(&provider()).snapshot(at(0)).in_flight, 0);
    assert_eq!(bench.rejected(&provider(), Reason::Saturated), 1);
}

#[test]
fn a_late_refusal_gives_a_probe_slot_back() {
    let bench = Bench::new(&spec());
    let twice = bench.touching(provider(), Some(provider()), None);
    let own = bench.find(&provider());
    for _ in 0..2 {
        own.try_acquire(at(0)).unwrap().record(&ERROR, at(0));
    }
    let refused = twice.try_acquire(Duration::ZERO, at(15_000)).unwrap_err();
    assert_eq!(refused.rejection.reason, Reason::Probing);
    assert_eq!(own.snapshot(at(15_000)).live_probes, 0);
}

#[test]
fn a_refusal_is_counted_once_and_by_the_breaker_that_is_named() {
    let bench = Bench::new(&spec());
    bench.record("m", &ERROR, at(0));
    bench.record("m", &ERROR, at(0));
    let refused = bench.scopes("m").try_acquire(Duration::ZERO, at(1));
    let model = ScopeName::model("p", "m");
    assert_eq!(refused.unwrap_err().name, model);
    assert!(
        bench.scopes("m").check(at(1)).is_err(),
        "a question is none"
    );
    assert_eq!(bench.rejected(&model, Reason::Open), 1);
    assert_eq!(bench.rejected(&provider(), Reason::Open), 0);
}

#[test]
fn a_hold_is_capped_and_a_success_or_an_operator_clears_it() {
    let bench = Bench::new(&spec());
    let scopes = bench.scopes("m");
    let flying = scopes.try_acquire(Duration::ZERO, at(0)).unwrap();
    scopes.hold(Duration::from_secs(86_400), at(0));
    let held = scopes.check(at(0)).unwrap_err().rejection;
    assert_eq!(held.retry_after, Duration::from_secs(3_600));
    flying.record(&OK, None, at(1));
    assert!(scopes.check(at(1)).is_ok());
    scopes.hold(Duration::from_secs(60), at(1));
    bench.find(&key()).release(at(2));
    assert!(scopes.check(at(2)).is_ok());
}

#[test]
fn a_hold_refuses_nobody_in_shadow() {
    let bench = Bench::new(&PolicySpec {
        mode: Some(Mode::Shadow),
        ..spec()
    });
    let scopes = bench.scopes("m");
    scopes.hold(Duration::from_secs(60), at(0));
    assert!(scopes.try_acquire(Duration::ZERO, at(0)).is_ok());
}

#[test]
fn a_permit_is_current_while_all_its_breakers_are_and_progress_reaches_each() {
    let bench = Bench::new(&spec());
    bench.record("m", &OK, at(0));
    let plain = bench
        .scopes("m")
        .try_acquire(Duration::ZERO, at(0))
        .unwrap();
    assert!(plain.is_current(at(0)));
    bench.find(&key()).reset(at(0));
    assert!(!plain.is_current(at(0)), "one of three is enough");
    plain.cancel(at(0));
    bench.record("m", &ERROR, at(0));
    bench.record("m", &ERROR, at(0));
    let probe = bench
        .scopes("m")
        .try_acquire(Duration::ZERO, at(15_000))
        .unwrap();
    let model = bench.find(&ScopeName::model("p", "m"));
    probe.progress(at(74_000));
    assert_eq!(model.state(at(133_999)), State::HalfOpen);
    assert_eq!(model.state(at(134_000)), State::Open);
}

#[test]
fn where_a_call_touches_no_key_its_model_bears_the_charge_and_where_no_model_its_provider() {
    let limited = Outcome::failure(Kind::RateLimit);
    let bench = Bench::new(&spec());
    let model = ScopeName::model("p", "m");
    let without_key = bench.touching(provider(), Some(model.clone()), None);
    let permit = without_key.try_acquire(Duration::ZERO, at(0)).unwrap();
    permit.record(&limited, None, at(0));
    assert_eq!(bench.find(&model).snapshot(at(0)).run, 1);
    let alone = bench.touching(provider(), None, None);
    let permit = alone.try_acquire(Duration::ZERO, at(0)).unwrap();
    permit.record(&limited, Some(Scope::Key), at(0));
    assert_eq!(bench.find(&provider()).snapshot(at(0)).run, 1);
}

#[test]
fn models_count_against_their_own_provider_and_only_by_failures_that_are_the_models() {
    // Of another provider.
    let bench = Bench::new(&spec());
    bench.record("a", &ERROR, at(0));
    bench.record("a", &ERROR, at(0));
    let elsewhere = bench.touching(
        ScopeName::provider("q"),
        Some(ScopeName::model("q", "a")),
        None,
    );
    for _ in 0..2 {
        let permit = elsewhere.try_acquire(Duration::ZERO, at(0)).unwrap();
        permit.record(&ERROR, None, at(0));
    }
    for name in ["p", "q"] {
        let state = bench.find(&ScopeName::provider(name)).state(at(0));
        assert_eq!(state, State::Closed, "{name} has one model that is open");
    }
    // By rate limits, which their models bear for want of a key.
    let bench = Bench::new(&spec());
    for model in ["a", "b"] {
        let scopes = bench.touching(provider(), Some(ScopeName::model("p", model)), None);
        for _ in 0..2 {
            let permit = scopes.try_acquire(Duration::ZERO, at(0)).unwrap();
            permit.record(&Outcome::failure(Kind::RateLimit), None, at(0));
        }
        let model = bench.find(&ScopeName::model("p", model));
        assert_eq!(model.state(at(0)), State::Open);
    }
    assert_eq!(bench.find(&provider()).state(at(0)), State::Closed);
}

#[test]
fn models_that_open_by_what_only_configuration_counts_say_nothing_of_their_provider() {
    let mut counted = spec();
    let row = KindSpec {
        count: Some(true),
        ..KindSpec::default()
    };
    counted.kinds.insert(Kind::NotFound, row);
    let bench = Bench::new(&counted);
    for model in ["a", "b"] {
        for _ in 0..2 {
            bench.record(model, &Outcome::failure(Kind::NotFound), at(0));
        }
        let model = bench.find(&ScopeName::model("p", model));
        assert_eq!(model.state(at(0)), State::Open);
    }
    assert_eq!(bench.find(&provider()).state(at(0)), State::Closed);
}

#[test]
fn an_operators_hand_on_the_provider_is_stronger_than_its_models() {
    let bench = Bench::new(&spec());
    bench.record("a", &OK, at(0));
    bench.find(&provider()).force_closed(None, at(0));
    for model in ["a", "b"] {
        bench.record(model, &ERROR, at(0));
        bench.record(model, &ERROR, at(0));
    }
    let provider = bench.find(&provider());
    assert_eq!(provider.state(at(0)), State::ForcedClosed);
}

#[test]
fn a_model_is_called_whenever_an_outcome_of_it_comes() {
    let bench = Bench::new(&spec());
    let success = |model, now| bench.record(model, &OK, at(now));
    for model in ["c", "d"] {
        success(model, 0);
        success(model, 60_000);
    }
    for model in ["a", "b"] {
        bench.record(model, &ERROR, at(70_000));
        bench.record(model, &ERROR, at(70_000));
    }
    let state = bench.find(&provider()).state(at(70_000));
    assert_eq!(state, State::Closed, "two of four called lately");
}

#[test]
fn who_leaves_a_full_registry_has_no_hold_no_failures_and_rested_longest() {
    let get = |bench: &Bench, name: &str, now| {
        let name = ScopeName::provider(name);
        bench
            .registry
            .get_breaker(&name, &bench.policies.provider, at(now))
            .map(|_| ())
    };
    let there = |bench: &Bench| -> Vec<String> {
        let all = bench.registry.breakers();
        all.iter()
            .map(|breaker| breaker.name().to_string())
            .collect()
    };
    let bench = Bench::of(&spec(), 3);
    for (name, now) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
        get(&bench, name, now).unwrap();
    }
    get(&bench, "d", 5).unwrap();
    assert_eq!(there(&bench), ["a", "c", "d"], "b was unused longest");
    let failing = bench.find(&ScopeName::provider("a"));
    failing.try_acquire(at(5)).unwrap().record(&ERROR, at(5));
    drop(failing);
    get(&bench, "c", 6).unwrap();
    get(&bench, "d", 7).unwrap();
    get(&bench, "e", 8).unwrap();
    assert_eq!(
        there(&bench),
        ["a", "d", "e"],
        "a has a failure to remember"
    );

    let bench = Bench::of(&spec(), 2);
    bench.scopes("m").hold(Duration::from_secs(60), at(0));
    get(&bench, "q", 1).unwrap();
    assert_eq!(
        there(&bench),
        ["q", "p#0"],
        "the provider left, not the key"
    );
    get(&bench, "r", 2).unwrap();
    assert_eq!(there(&bench), ["r", "p#0"], "a wait that runs is kept");
    get(&bench, "s", 60_000).unwrap();
    assert_eq!(there(&bench), ["r", "s"], "one that is over is not");
}

#[test]
fn what_further_failures_would_open_is_told_beforehand_and_changes_nothing() {
    let window = Duration::from_secs(10);
    let rules = [
        (TripRule::Consecutive { failures: 4 }, 3),
        (
            TripRule::Window {
                failures: 6,
                window,
            },
            5,
        ),
        (
            TripRule::Rate {
                threshold: 0.75,
                window,
                min_calls: 2,
            },
            5,
        ),
        (
            TripRule::Slow {
                slower_than: Duration::from_secs(1),
                threshold: 0.5,
                window,
                min_calls: 1,
            },
            u32::MAX,
        ),
        // One failure is on the sum, and eight more are 9 of 9.14.
        (TripRule::cusum(), 9),
    ];
    for (rule, needed) in rules {
        let bench = Bench::new(&PolicySpec {
            trip: Some(vec![rule]),
            ..spec()
        });
        let scopes = bench.scopes("m");
        // Two calls went well before one failed.
        for outcome in [&OK, &OK, &ERROR] {
            scopes
                .try_acquire(Duration::ZERO, at(0))
                .unwrap()
                .record(outcome, None, at(0));
        }
        assert!(!scopes.trips_with(needed - 1, at(0)), "{rule:?}");
        assert_eq!(
            scopes.trips_with(needed, at(0)),
            needed != u32::MAX,
            "{rule:?}"
        );
        for _ in 1..needed.min(9) {
            scopes
                .try_acquire(Duration::ZERO, at(0))
                .unwrap()
                .record(&ERROR, None, at(0));
        }
        let model = bench.find(&ScopeName::model("p", "m"));
        assert_ne!(model.state(at(0)), State::Open);
        let last = scopes
            .try_acquire(Duration::ZERO, at(0))
            .unwrap()
            .record(&ERROR, None, at(0));
        assert_eq!(last.is_empty(), needed == u32::MAX, "{rule:?}");
    }
}
