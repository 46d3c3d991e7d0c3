//! Sentences of the design that nothing else would miss: each test fails where one line of the core says otherwise.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "rules/cusum.rs"]
mod cusum;
#[path = "rules/told.rs"]
mod told;

use core::time::Duration;
use std::thread;

use fuseline_core::{
    Breaker, Cause, Kind, KindSpec, Mode, Outcome, Policy, PolicySpec, ScopeName, State, Tick,
    TripRule,
};

const OK: Outcome = Outcome::success(Duration::from_millis(200));
const ERROR: Outcome = Outcome::failure(Kind::ServerError);
const MINUTE: Duration = Duration::from_secs(60);

fn at(ms: u64) -> Tick {
    Tick::from_millis(ms)
}

/// In a row, 15 s of cooldown without jitter or growth, one good probe closes.
fn spec(failures: u32) -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures }]),
        jitter: Some(0.0),
        backoff: Some(1.0),
        successes_to_close: Some(1),
        ..PolicySpec::default()
    }
}

fn by_rate(threshold: f64, min_calls: u32) -> PolicySpec {
    PolicySpec {
        trip: Some(vec![TripRule::Rate {
            threshold,
            window: MINUTE,
            min_calls,
        }]),
        ..spec(1)
    }
}

fn policy(spec: &PolicySpec) -> Policy {
    Policy::new(spec).unwrap()
}

fn breaker(spec: &PolicySpec) -> Breaker {
    Breaker::new(ScopeName::provider("p"), policy(spec))
}

fn record(breaker: &Breaker, outcome: &Outcome, now: Tick) {
    let permit = breaker.try_acquire(now).unwrap();
    permit.record(outcome, now);
}

#[test]
fn the_last_20_transitions_are_kept_and_numbered_from_1() {
    let breaker = breaker(&spec(5));
    for now in 1..=30 {
        breaker.reset(at(now));
    }
    let numbers: Vec<_> = breaker
        .history(0)
        .iter()
        .map(|change| change.number)
        .collect();
    assert_eq!(numbers, (11..=30).collect::<Vec<_>>());
    assert_eq!(breaker.changes(), 30);
    assert_eq!(breaker.history(29).len(), 1);
    assert!(breaker.history(30).is_empty());
}

#[test]
fn the_last_five_counted_failures_explain_and_no_others() {
    let breaker = breaker(&spec(9));
    record(&breaker, &Outcome::failure(Kind::Overloaded), at(0));
    for now in 1..=5 {
        record(&breaker, &Outcome::failure(Kind::BadRequest), at(now));
        record(&breaker, &ERROR, at(now));
    }
    let seen = breaker.snapshot(at(6)).last_failures;
    let seen: Vec<_> = seen.iter().map(|note| (note.at, note.kind)).collect();
    let expected: Vec<_> = (1..=5).map(|now| (at(now), Kind::ServerError)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_lease_outlives_the_attempts_own_limit_by_a_second_and_progress_renews_all_of_it() {
    let breaker = breaker(&spec(1));
    record(&breaker, &ERROR, at(0));
    let limit = Duration::from_secs(300);
    let probe = breaker.try_acquire_within(limit, at(15_000)).unwrap();
    assert_eq!(breaker.state(at(315_999)), State::HalfOpen);
    assert_eq!(breaker.state(at(316_000)), State::Open);
    probe.progress(at(315_999));
    assert_eq!(breaker.state(at(616_998)), State::HalfOpen);
    assert_eq!(breaker.state(at(616_999)), State::Open);
    probe.record(&OK, at(616_999));
    let seen = breaker.snapshot(at(616_999));
    assert_eq!((seen.state, seen.late), (State::Open, 1));
}

#[test]
fn a_lost_lease_opens_as_a_timeout_as_of_its_own_end() {
    let mut rested = spec(1);
    let row = KindSpec {
        count: Some(false),
        cooldown: Some(Duration::from_secs(40)),
        ..KindSpec::default()
    };
    rested.kinds.insert(Kind::Timeout, row);
    let breaker = breaker(&rested);
    record(&breaker, &ERROR, at(0));
    let _probe = breaker.try_acquire(at(15_000)).unwrap();
    let refused = breaker.try_acquire(at(80_000)).unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_secs(35));
    let opened = breaker.history(0).pop().unwrap();
    assert_eq!(
        (opened.at, opened.until, opened.why.cause, opened.why.kind),
        (
            at(75_000),
            Some(at(115_000)),
            Cause::Lease,
            Some(Kind::Timeout)
        )
    );
}

#[test]
fn an_expiry_is_applied_as_of_its_own_time() {
    let breaker = breaker(&spec(5));
    breaker.force_open(Some(at(5_000)), at(0));
    let refused = breaker.try_acquire(at(1_000)).unwrap_err();
    assert_eq!(refused.retry_after, Duration::from_secs(4));
    record(&breaker, &OK, at(90_000));
    let ended = breaker.history(0).pop().unwrap();
    assert_eq!(
        (ended.at, ended.to, ended.why.cause),
        (at(5_000), State::Closed, Cause::Expiry)
    );
    assert_eq!(breaker.snapshot(at(90_000)).since, at(5_000));
}

#[test]
fn reading_leaves_no_trace_though_it_sees_what_time_did() {
    let breaker = breaker(&spec(1));
    record(&breaker, &ERROR, at(0));
    let probe = breaker.try_acquire(at(15_000)).unwrap();
    let (changes, history) = (breaker.changes(), breaker.history(0));
    let seen = breaker.snapshot(at(500_000));
    assert_eq!(
        (seen.state, seen.episodes, seen.live_probes),
        (State::Open, 1, 0)
    );
    assert!(breaker.is_available(at(500_000)) && breaker.is_due(at(500_000)));
    assert!(!probe.is_current(at(500_000)));
    assert_eq!((breaker.changes(), breaker.history(0)), (changes, history));
    // Nor did any of it move the latest time: the probe's success, long before that, still counts.
    probe.record(&OK, at(16_000));
    let seen = breaker.snapshot(at(16_000));
    assert_eq!((seen.state, seen.late), (State::Closed, 0));
}

#[test]
fn a_now_that_goes_backwards_is_the_latest_one_seen() {
    let breaker = breaker(&spec(2));
    record(&breaker, &ERROR, at(60_000));
    record(&breaker, &ERROR, at(10));
    assert_eq!(breaker.history(0)[0].at, at(60_000));
    assert!(breaker.try_acquire(at(74_999)).is_err());
    let probe = breaker.try_acquire(at(75_000)).unwrap();
    probe.record(&OK, at(0));
    assert_eq!(breaker.snapshot(at(0)).since, at(75_000));
}

#[test]
fn an_incident_lasts_from_the_first_opening_to_the_closing() {
    let breaker = breaker(&spec(1));
    record(&breaker, &ERROR, at(1_000));
    record(&breaker, &ERROR, at(20_000));
    assert_eq!(
        breaker.snapshot(at(20_000)).incident_since,
        Some(at(1_000)),
        "a failed probe begins no second incident"
    );
    record(&breaker, &OK, at(40_000));
    assert_eq!(breaker.snapshot(at(40_000)).incident_since, None);
    record(&breaker, &ERROR, at(50_000));
    assert_eq!(
        breaker.snapshot(at(50_000)).incident_since,
        Some(at(50_000))
    );
}

#[test]
fn degraded_belongs_to_its_generation_and_is_announced_once_in_each() {
    let breaker = breaker(&spec(3));
    for start in [0, 100] {
        record(&breaker, &ERROR, at(start));
        record(&breaker, &ERROR, at(start));
        assert_eq!(breaker.state(at(start)), State::Degraded);
        breaker.reset(at(start + 1));
    }
    let seen: Vec<_> = breaker
        .history(0)
        .iter()
        .map(|change| (change.from, change.to, change.generation))
        .collect();
    let (closed, degraded) = (State::Closed, State::Degraded);
    assert_eq!(
        seen,
        [
            (closed, degraded, 0),
            (degraded, closed, 1),
            (closed, degraded, 1),
            (degraded, closed, 2)
        ]
    );
}

#[test]
fn degraded_at_1_is_never_even_where_the_share_is_past_its_threshold() {
    for (degraded_at, state) in [(1.0, State::Closed), (0.9, State::Degraded)] {
        let breaker = breaker(&PolicySpec {
            degraded_at: Some(degraded_at),
            ..by_rate(0.5, 4)
        });
        (0..8).for_each(|_| record(&breaker, &OK, at(0)));
        (0..4).for_each(|_| record(&breaker, &ERROR, at(30_000)));
        // The good calls have left and nothing was recorded since: the share is there to see, but not judged.
        let seen = breaker.snapshot(at(61_000));
        assert!(seen.pressure > 1.9);
        assert_eq!(seen.state, state);
    }
}

#[test]
fn the_rule_that_tripped_is_named_with_what_it_saw() {
    let breaker = breaker(&by_rate(0.5, 4));
    record(&breaker, &OK, at(0));
    record(&breaker, &OK, at(0));
    record(&breaker, &ERROR, at(0));
    record(&breaker, &ERROR, at(0));
    let why = breaker.history(0).pop().unwrap().why;
    assert_eq!(
        (why.cause, why.kind),
        (Cause::Rate, Some(Kind::ServerError))
    );
    assert!((why.observed - 0.5).abs() < 1e-12 && (why.threshold - 0.5).abs() < 1e-12);
}

/// Good calls that leave the window raise a share with no failure near: the first success afterwards must see it,
/// though the run is 0 and the rule had its calls.
#[test]
fn a_success_that_comes_as_good_calls_leave_the_window_trips() {
    let breaker = breaker(&by_rate(0.5, 4));
    for _ in 0..8 {
        record(&breaker, &OK, at(0));
    }
    for _ in 0..4 {
        record(&breaker, &ERROR, at(30_000));
        record(&breaker, &OK, at(30_000));
    }
    assert_eq!(breaker.snapshot(at(30_000)).run, 0);
    record(&breaker, &OK, at(30_001));
    assert_eq!(breaker.state(at(60_999)), State::Closed, "4 of 17");
    // Only the four failures and five good calls are left; one more makes 4 of 10 and no trip at 0.5.
    record(&breaker, &OK, at(61_000));
    assert_eq!(breaker.snapshot(at(61_000)).rules[0].calls, Some(10));
    let tight = self::breaker(&by_rate(0.4, 4));
    for _ in 0..8 {
        record(&tight, &OK, at(0));
    }
    for _ in 0..4 {
        record(&tight, &ERROR, at(30_000));
        record(&tight, &OK, at(30_000));
    }
    assert_eq!(tight.state(at(30_000)), State::Degraded, "4 of 16");
    record(&tight, &OK, at(61_000));
    assert_eq!(tight.state(at(61_000)), State::Open, "4 of 9");
}

#[test]
fn counts_are_right_whichever_threads_they_came_from() {
    let breaker = breaker(&by_rate(0.5, 1_000_000));
    let threads: Vec<_> = (0..80_u64)
        .map(|number| {
            let breaker = breaker.clone();
            thread::spawn(move || {
                for call in 0..50 {
                    record(&breaker, &OK, at(number + call));
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    record(&breaker, &ERROR, at(200));
    let rule = &breaker.snapshot(at(200)).rules[0];
    assert_eq!((rule.hits, rule.calls), (1, Some(4_001)));
}

#[test]
fn other_settings_are_judged_by_at_the_next_outcome_even_a_success() {
    let breaker = breaker(&by_rate(0.9, 4));
    for _ in 0..2 {
        record(&breaker, &ERROR, at(0));
        record(&breaker, &OK, at(0));
    }
    assert_eq!(breaker.state(at(0)), State::Closed);
    breaker.reconfigure(policy(&by_rate(0.4, 4)), at(1));
    record(&breaker, &OK, at(1));
    assert_eq!(breaker.state(at(1)), State::Open, "2 of 5");
}

#[test]
fn a_window_that_takes_anothers_place_counts_from_its_first_call() {
    let over = |secs| {
        policy(&PolicySpec {
            trip: Some(vec![TripRule::Rate {
                threshold: 0.9,
                window: Duration::from_secs(secs),
                min_calls: 9,
            }]),
            ..spec(1)
        })
    };
    let breaker = Breaker::new(ScopeName::provider("p"), over(3_600));
    record(&breaker, &OK, at(1_000));
    breaker.reconfigure(over(10), at(20_000));
    // The first comes by way of the lock, as after any reconfiguration; the others do not.
    for more in 1..=3 {
        record(&breaker, &OK, at(20_000));
        assert_eq!(breaker.snapshot(at(20_000)).rules[0].calls, Some(more));
    }
    assert_eq!(breaker.snapshot(at(31_000)).rules[0].calls, Some(0));
}

#[test]
fn seats_follow_a_reconfiguration_and_none_is_lost() {
    let limited = |seats| {
        policy(&PolicySpec {
            max_in_flight: Some(seats),
            ..spec(5)
        })
    };
    let breaker = Breaker::new(ScopeName::provider("p"), limited(0));
    let free = breaker.try_acquire(at(0)).unwrap();
    breaker.reconfigure(limited(1), at(0));
    let seated = breaker.try_acquire(at(0)).unwrap();
    assert!(breaker.try_acquire(at(0)).is_err());
    breaker.reconfigure(limited(0), at(0));
    let unlimited = breaker.try_acquire(at(0)).unwrap();
    breaker.force_open(None, at(0));
    for permit in [free, seated, unlimited] {
        permit.record(&OK, at(1));
    }
    let seen = breaker.snapshot(at(1));
    assert_eq!((seen.in_flight, seen.late), (0, 3));
}

#[test]
fn a_limit_holds_under_forced_closed_and_a_ghost_takes_no_seat() {
    let limited = |mode| PolicySpec {
        max_in_flight: Some(1),
        mode: Some(mode),
        ..spec(5)
    };
    let enforced = breaker(&limited(Mode::Enforce));
    enforced.force_closed(None, at(0));
    let first = enforced.try_acquire(at(0)).unwrap();
    assert!(enforced.try_acquire(at(0)).is_err());
    drop(first);
    assert!(enforced.try_acquire(at(0)).is_ok());

    let shadow = breaker(&limited(Mode::Shadow));
    let first = shadow.try_acquire(at(0)).unwrap();
    let ghosts: Vec<_> = (0..3).map(|_| shadow.try_acquire(at(0)).unwrap()).collect();
    assert_eq!(shadow.snapshot(at(0)).in_flight, 1);
    for ghost in ghosts {
        assert!(ghost.would_reject().is_some() && ghost.is_current(at(0)));
        ghost.record(&ERROR, at(0));
    }
    assert_eq!(shadow.snapshot(at(0)).run, 0);
    drop(first);
    let seen = shadow.snapshot(at(0));
    assert_eq!((seen.in_flight, seen.reason, seen.late), (0, None, 0));
}

#[test]
fn a_shadow_has_no_reason_to_wait_and_an_enforcing_breaker_has() {
    for (mode, wait) in [
        (Mode::Enforce, Some(Duration::from_secs(15))),
        (Mode::Shadow, None),
    ] {
        let breaker = breaker(&PolicySpec {
            mode: Some(mode),
            ..spec(1)
        });
        record(&breaker, &ERROR, at(0));
        let seen = breaker.snapshot(at(0));
        assert_eq!((seen.state, seen.retry_after), (State::Open, wait));
        assert_eq!(seen.reason.is_some(), wait.is_some());
    }
}

#[test]
fn a_sign_of_life_of_a_call_that_is_no_probe_moves_nothing_not_even_time() {
    let breaker = breaker(&spec(1));
    let plain = breaker.try_acquire(at(0)).unwrap();
    plain.progress(at(90_000));
    record(&breaker, &ERROR, at(10));
    assert_eq!(breaker.history(0)[0].at, at(10));
    drop(plain);
}

#[test]
fn jitter_lengthens_by_a_share_that_differs_and_never_shortens() {
    let jittered = PolicySpec {
        jitter: Some(0.5),
        ..spec(1)
    };
    let waits: Vec<_> = (0..40)
        .map(|seed| {
            let breaker = Breaker::with_seed(ScopeName::provider("p"), policy(&jittered), seed);
            record(&breaker, &ERROR, at(0));
            breaker.check(at(0)).unwrap_err().retry_after
        })
        .collect();
    let (low, high) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*low >= Duration::from_secs(15) && *high <= Duration::from_millis(22_500));
    assert!(*high - *low > Duration::from_secs(4), "{low:?} to {high:?}");
}

/// What a rule has in its window after one of its hits was counted under another.
fn hits_after(before: TripRule, after: TripRule) -> u64 {
    let with = |rule| PolicySpec {
        trip: Some(vec![rule]),
        ..spec(1)
    };
    let breaker = breaker(&with(before));
    let hit = match before {
        TripRule::Slow { .. } => Outcome::success(Duration::from_secs(5)),
        _ => ERROR,
    };
    record(&breaker, &hit, at(0));
    breaker.reconfigure(policy(&with(after)), at(1));
    let seen = breaker.snapshot(at(1)).rules;
    seen.iter().map(|rule| rule.hits).sum()
}

#[test]
fn what_was_counted_stays_where_the_new_rule_counts_the_same() {
    let slow = |secs, window| TripRule::Slow {
        slower_than: Duration::from_secs(secs),
        threshold: 0.9,
        window,
        min_calls: 9,
    };
    let rate = |window| TripRule::Rate {
        threshold: 0.9,
        window,
        min_calls: 9,
    };
    let window = |window| TripRule::Window {
        failures: 9,
        window,
    };
    let cusum = |well, calls_per_false_alarm| TripRule::Cusum {
        well,
        ill: 0.15,
        calls_per_false_alarm,
    };
    let stricter = TripRule::Slow {
        slower_than: Duration::from_secs(1),
        threshold: 0.5,
        window: MINUTE,
        min_calls: 5,
    };
    for (before, after, stays) in [
        (slow(1, MINUTE), stricter, true),
        (slow(1, MINUTE), slow(2, MINUTE), false),
        (slow(1, MINUTE), slow(1, 2 * MINUTE), false),
        (slow(1, MINUTE), slow(2, 2 * MINUTE), false),
        (slow(1, MINUTE), rate(MINUTE), false),
        (slow(1, MINUTE), window(MINUTE), false),
        (rate(MINUTE), slow(1, MINUTE), false),
        (window(MINUTE), slow(1, MINUTE), false),
        (rate(MINUTE), window(MINUTE), true),
        (window(MINUTE), rate(MINUTE), true),
        (window(MINUTE), window(2 * MINUTE), false),
        (cusum(0.02, 1e8), cusum(0.02, 1e9), true),
        (cusum(0.02, 1e8), cusum(0.03, 1e8), false),
        (cusum(0.02, 1e8), window(MINUTE), false),
        (window(MINUTE), cusum(0.02, 1e8), false),
    ] {
        let hits = hits_after(before, after);
        assert_eq!(hits, u64::from(stays), "{before:?}, then {after:?}");
    }
}

#[test]
fn a_run_begins_anew_after_each_success_though_nobody_asks_between() {
    let breaker = breaker(&PolicySpec {
        degraded_at: Some(1.0),
        ..spec(9)
    });
    for now in 0..5 {
        record(&breaker, &ERROR, at(now));
        record(&breaker, &OK, at(now));
    }
    assert_eq!(breaker.snapshot(at(5)).run, 0);
}
