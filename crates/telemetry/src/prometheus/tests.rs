//! The page, line by line.

use std::time::Duration;

use fuseline_core::{Clock, Outcome, Policies, Policy, RegistryConfig, ScopeName, Scopes};

use super::*;
use crate::traffic::CallOutcome;

fn registry() -> (Registry, Clock) {
    let clock = Clock::manual();
    (
        Registry::new(RegistryConfig {
            clock: clock.clone(),
            ..RegistryConfig::default()
        }),
        clock,
    )
}

/// `m` at `p` is known.
fn metrics(registry: &Registry) -> Metrics {
    Metrics::new(registry, [("p", Some("m"))].into_iter().collect())
}

fn page(registry: &Registry) -> Result<String, fmt::Error> {
    metrics(registry).page(None, None, None)
}

fn fail(registry: &Registry, key: &str, kind: Kind, times: u32) {
    let policies = Policies::all(&Policy::default());
    let (model, key) = (
        Some(ScopeName::model("p", "m")),
        Some(ScopeName::key("p", key)),
    );
    let now = registry.now();
    let scopes = Scopes::new(
        registry,
        ScopeName::provider("p"),
        model,
        key,
        policies,
        now,
    )
    .unwrap();
    for _ in 0..times {
        if let Ok(permit) = scopes.try_acquire(Duration::ZERO, now) {
            permit.record(&Outcome::failure(kind), None, now);
        }
    }
}

#[test]
fn an_opening_is_counted_once_and_the_rejections_after_it() {
    let (registry, _) = registry();
    fail(&registry, "k", Kind::ServerError, 7);
    let page = page(&registry).unwrap();
    for line in [
        r#"breaker_opened_total{scope="model",provider="p",model="m"} 1"#,
        r#"breaker_opened_total{scope="provider",provider="p",model=""} 0"#,
        r#"breaker_rejected_total{scope="model",provider="p",model="m",reason="open"} 2"#,
        r#"breaker_state{scope="model",provider="p",model="m",state="open"} 1"#,
        r#"breaker_state{scope="model",provider="p",model="m",state="closed"} 0"#,
        r#"breaker_late_total{scope="model",provider="p",model="m"} 0"#,
        "# EOF",
    ] {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
}

#[test]
fn keys_of_a_provider_share_their_series() {
    let (registry, _) = registry();
    fail(&registry, "one", Kind::RateLimit, 5);
    fail(&registry, "two", Kind::RateLimit, 5);
    let page = page(&registry).unwrap();
    let line = r#"breaker_opened_total{scope="key",provider="p",model=""} 2"#;
    assert_eq!(
        page.lines().filter(|other| *other == line).count(),
        1,
        "{page}"
    );
}

#[test]
fn what_the_catalogue_holds_is_there_from_the_start() {
    let page = page(&registry().0).unwrap();
    for line in [
        r#"breaker_opened_total{scope="model",provider="p",model="m"} 0"#,
        r#"breaker_state{scope="provider",provider="p",model="",state="closed"} 1"#,
        r#"attempts_total{provider="p",model="other",outcome="success",kind="none"} 0"#,
        r#"calls_total{outcome="rejected",kind="local"} 0"#,
        "fallback_total 0",
        "call_seconds_count 0",
    ] {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
    assert!(!page.contains("state_stored"));
}

#[test]
fn time_spent_open_and_the_incident_grow_until_it_closes() {
    let (registry, clock) = registry();
    let metrics = metrics(&registry);
    fail(&registry, "k", Kind::ServerError, 5);
    let seen = |name: &str| {
        let start = format!(r#"{name}{{scope="model",provider="p",model="m"}} "#);
        let page = metrics.page(None, None, None).unwrap();
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(&start).map(str::to_owned));
        value.unwrap().parse::<f64>().unwrap()
    };
    clock.advance(Duration::from_secs(20));
    let (open, incident) = ("breaker_open_seconds_total", "breaker_incident_seconds");
    assert_eq!((seen(open), seen(incident)), (20.0, 20.0));
    let breaker = registry.find_breaker(&ScopeName::model("p", "m")).unwrap();
    for _ in 0..2 {
        let probe = breaker.try_acquire(clock.now()).unwrap();
        clock.advance(Duration::from_secs(1));
        let success = Outcome::success(Duration::ZERO);
        assert_eq!(seen(open), 20.0);
        probe.record(&success, clock.now());
    }
    assert_eq!((seen(open), seen(incident)), (20.0, 0.0));
}

#[test]
fn report_109_long_calls_fall_into_different_buckets() {
    let metrics = metrics(&registry().0);
    for seconds in [0.2, 12.0, 45.0, 120.0, 400.0] {
        let took = Duration::from_secs_f64(seconds);
        metrics.call(&EndedCall {
            outcome: CallOutcome::Success,
            kind: None,
            took,
            first_token: Some(took),
            by_fallback: false,
        });
    }
    let page = metrics.page(None, None, None).unwrap();
    let buckets = |name: &str| -> Vec<(String, u64)> {
        let start = format!("{name}_bucket{{le=\"");
        let lines = page.lines().filter_map(|line| line.strip_prefix(&start));
        let buckets = lines.map(|line| line.split_once("\"} ").unwrap());
        buckets
            .map(|(bound, count)| (bound.to_owned(), count.parse().unwrap()))
            .collect()
    };
    let (call, first_token) = (buckets("call_seconds"), buckets("first_token_seconds"));
    assert_eq!(call, first_token, "the same bounds");
    let mut before = 0;
    let grown = call.iter().filter(|(bound, count)| {
        let grew = *count - std::mem::replace(&mut before, *count);
        assert!(grew <= 1, "{bound} holds two of them");
        grew == 1 && bound != "+Inf"
    });
    assert_eq!(grown.count(), 5);
    let largest = call.iter().rev().nth(1).unwrap();
    assert!(largest.0.parse::<f64>().unwrap() >= 600.0, "{largest:?}");
}

#[test]
fn series_follow_the_catalogue_and_what_stays_goes_on_counting() {
    let (registry, _) = registry();
    let metrics = metrics(&registry);
    fail(&registry, "k", Kind::ServerError, 5);
    for provider in ["p", "never"] {
        metrics.attempt(provider, "m", Some(Kind::ServerError));
    }
    let has = |line: &str| metrics.page(None, None, None).unwrap().contains(line);
    let (attempts, opened) = (
        r#"attempts_total{provider="p",model="m",outcome="failure",kind="server_error"} 1"#,
        r#"breaker_opened_total{scope="model",provider="p",model="m"} 1"#,
    );
    assert!(has(attempts) && has(opened) && !has("never"));
    metrics.set_catalogue([("p", Some("m")), ("q", None)].into_iter().collect());
    assert!(has(attempts) && has(opened) && has(r#"provider="q""#));
    registry.remove(&ScopeName::model("p", "m"));
    assert!(has(opened), "a counter does not fall");
    metrics.set_catalogue([("q", None)].into_iter().collect());
    metrics.attempt("p", "m", None);
    assert!(!has(r#"provider="p""#), "late calls bring no series back");
}

#[test]
fn what_is_kept_is_told_where_it_is() {
    let kept = KeptState {
        stored: 7,
        dropped: 2,
        failures: 1,
        is_failing: true,
    };
    let page = metrics(&registry().0).page(Some(kept), None, None).unwrap();
    for line in [
        "state_stored_total 7",
        "state_dropped_total 2",
        "state_failures_total 1",
        "state_failing 1",
    ] {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
}
