//! Random overlapping schedules: the breaker and a naive one agree on state, decision and counters at every step.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

#[path = "model/naive.rs"]
mod naive;

use core::time::Duration;
use std::collections::BTreeMap;

use fuseline_core::{
    Breaker, Failure, Kind, KindRule, OnSuccess, Outcome, Permit, Policy, Reason, ScopeName, Tick,
    TripRule,
};
use naive::{Call, Naive, Result_, Settings};
use proptest::prelude::*;

/// One step of a schedule. Calls are named by their place among those that are out, whatever that place is.
#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Acquire,
    Settle(usize, Result_),
    Drop(usize),
    Progress(usize),
    Force { open: bool, for_ms: Option<u64> },
    Release,
    Reset,
    Look,
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::ServerError,
        Kind::ServerError,
        Kind::ServerError,
        Kind::RateLimit,
        Kind::QuotaExhausted,
        Kind::Timeout,
        Kind::BadRequest,
    ])
}

fn results() -> impl Strategy<Value = Result_> {
    prop_oneof![
        5 => prop::sample::select(vec![5, 400, 900, 30_000]).prop_map(|took| Result_::Success { took }),
        6 => (kinds(), prop::option::weighted(0.2, 1_u64..200_000), prop::bool::weighted(0.05))
            .prop_map(|(kind, hint, open_now)| Result_::Failure { kind, hint, open_now }),
        1 => Just(Result_::Neutral),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let waits = prop_oneof![Just(0_u64), 1_u64..50, 50_u64..5_000, 5_000_u64..90_000];
    prop_oneof![
        8 => waits.prop_map(Op::Wait),
        14 => Just(Op::Acquire),
        12 => (any::<usize>(), results()).prop_map(|(at, result)| Op::Settle(at, result)),
        1 => any::<usize>().prop_map(Op::Drop),
        1 => any::<usize>().prop_map(Op::Progress),
        1 => (any::<bool>(), prop::option::of(1_u64..30_000)).prop_map(|(open, for_ms)| Op::Force { open, for_ms }),
        1 => Just(Op::Release),
        1 => Just(Op::Reset),
        1 => Just(Op::Look),
    ]
}

fn rules() -> impl Strategy<Value = TripRule> {
    let windows =
        || prop::sample::select(vec![1_000_u64, 10_000, 60_000]).prop_map(Duration::from_millis);
    let shares = || prop::sample::select(vec![0.07, 0.2, 0.3, 0.5, 0.9, 1.0]);
    prop_oneof![
        (1_u32..6).prop_map(|failures| TripRule::Consecutive { failures }),
        (1_u32..6, windows()).prop_map(|(failures, window)| TripRule::Window { failures, window }),
        (shares(), windows(), 1_u32..12).prop_map(|(threshold, window, min_calls)| {
            TripRule::Rate {
                threshold,
                window,
                min_calls,
            }
        }),
        (
            prop::sample::select(vec![300_u64, 800, 20_000]),
            shares(),
            windows(),
            1_u32..8
        )
            .prop_map(|(slower, threshold, window, min_calls)| {
                TripRule::Slow {
                    slower_than: Duration::from_millis(slower),
                    threshold,
                    window,
                    min_calls,
                }
            }),
        (
            prop::sample::select(vec![0.02, 0.1, 0.3]),
            prop::sample::select(vec![0.35, 0.6, 0.9]),
            prop::sample::select(vec![100.0, 3_000.0, 1e8]),
        )
            .prop_map(|(well, ill, calls_per_false_alarm)| TripRule::Cusum {
                well,
                ill,
                calls_per_false_alarm,
            }),
    ]
}

fn rows() -> impl Strategy<Value = BTreeMap<Kind, KindRule>> {
    let row = (
        any::<bool>(),
        prop::option::of(1_u32..4),
        prop::bool::weighted(0.2),
        prop::option::of(1_u64..100_000),
    );
    let row = row.prop_map(|(count, threshold, immediate_open, cooldown)| KindRule {
        count,
        threshold,
        immediate_open,
        cooldown: cooldown.map(Duration::from_millis),
    });
    prop::collection::btree_map(kinds(), row, 0..3)
}

fn settings() -> impl Strategy<Value = Settings> {
    let trip = (
        prop::collection::vec(rules(), 0..4),
        rows(),
        prop::bool::weighted(0.15),
        any::<bool>(),
    );
    let open = (
        1_u64..30_000,
        0_u32..3,
        prop::sample::select(vec![1.0, 2.0, 3.0]),
        1_u64..200_000,
        1_u64..100_000,
    );
    let half = (1_u32..4, 1_u32..4, 1_u64..90_000);
    let closed = (
        prop_oneof![2 => Just(0_u64), 1 => 1_000_u64..60_000],
        prop_oneof![2 => Just(0_u32), 1 => 1_u32..5],
        prop::sample::select(vec![0.0, 0.3, 0.6, 1.0]),
    );
    (trip, open, half, closed).prop_map(|(trip, open, half, closed)| Settings {
        trip: trip.0,
        kinds: trip.1,
        shadow: trip.2,
        on_success: if trip.3 {
            OnSuccess::Reset
        } else {
            OnSuccess::Decrement
        },
        cooldown: open.0,
        backoff_after: open.1,
        backoff: open.2,
        max_cooldown: open.3,
        max_retry_after: open.4,
        probes: half.0,
        successes_to_close: half.1,
        probe_timeout: half.2,
        ramp: closed.0,
        max_in_flight: closed.1,
        degraded_at: closed.2,
    })
}

/// Both breakers, the calls that are out, and the time.
struct Pair {
    breaker: Breaker,
    naive: Naive,
    out: Vec<(Permit, Call)>,
    now: u64,
    stale: u64,
}

impl Pair {
    fn new(settings: Settings) -> Self {
        let policy = Policy::new(&settings.spec()).unwrap();
        let breaker = Breaker::new(ScopeName::provider("p"), policy);
        Self {
            breaker,
            naive: Naive::new(settings),
            out: Vec::new(),
            now: 0,
            stale: 0,
        }
    }

    fn tick(&self) -> Tick {
        Tick::from_millis(self.now)
    }

    fn take(&mut self, at: usize) -> Option<(Permit, Call)> {
        (!self.out.is_empty()).then(|| self.out.swap_remove(at % self.out.len()))
    }

    fn step(&mut self, op: &Op) {
        let (now, tick) = (self.now, self.tick());
        match *op {
            Op::Wait(ms) => self.now += ms,
            Op::Acquire => self.acquire(),
            Op::Settle(at, result) => {
                if let Some((permit, call)) = self.take(at) {
                    let outcome = match result {
                        Result_::Success { took } => Outcome::success(Duration::from_millis(took)),
                        Result_::Neutral => Outcome::Neutral,
                        Result_::Failure {
                            kind,
                            hint,
                            open_now,
                        } => {
                            let mut failure = Failure::new(kind);
                            if let Some(hint) = hint {
                                failure = failure.retry_after(Duration::from_millis(hint));
                            }
                            Outcome::Failure(if open_now {
                                failure.open_now()
                            } else {
                                failure
                            })
                        }
                    };
                    permit.record(&outcome, tick);
                    self.naive.settle(call, result, now);
                }
            }
            Op::Drop(at) => {
                if let Some((permit, call)) = self.take(at) {
                    // A drop has no time of its own. Let the breaker see this one first.
                    self.breaker.release(tick);
                    self.naive.release(now);
                    drop(permit);
                    self.naive.settle(call, Result_::Neutral, now);
                }
            }
            Op::Progress(at) => {
                if let Some(at) = at.checked_rem(self.out.len()) {
                    self.out[at].0.progress(tick);
                    let call = self.out[at].1;
                    if call.probe {
                        self.naive.progress(call, now);
                    }
                }
            }
            Op::Force { open, for_ms } => {
                let until = for_ms.map(|ms| Tick::from_millis(now + ms));
                if open {
                    self.breaker.force_open(until, tick)
                } else {
                    self.breaker.force_closed(until, tick)
                }
                self.naive.force(open, for_ms.map(|ms| now + ms), now);
            }
            Op::Release => {
                self.breaker.release(tick);
                self.naive.release(now);
            }
            Op::Reset => {
                self.breaker.reset(tick);
                self.naive.reset(now);
            }
            Op::Look => self.stale += u64::from(self.breaker.is_available(tick)),
        }
    }

    fn acquire(&mut self) {
        let (now, tick) = (self.now, self.tick());
        let foreseen = self.breaker.check(tick).err();
        let real = self.breaker.try_acquire_owned(Duration::ZERO, tick);
        match (real, self.naive.acquire(now)) {
            (Ok(permit), Ok(call)) => {
                assert_eq!(foreseen, None);
                assert_eq!(permit.is_probe(), call.probe, "probe");
                assert_eq!(
                    permit.would_reject().map(|rejection| rejection.reason),
                    call.ghost,
                    "would_reject"
                );
                self.out.push((permit, call));
            }
            (Err(rejection), Err((reason, wait))) => {
                assert_eq!(foreseen, Some(rejection), "the question and the answer");
                assert_eq!(
                    (rejection.reason, rejection.retry_after),
                    (reason, Duration::from_millis(wait))
                );
            }
            (real, naive) => panic!("the breaker says {real:?}, the naive one {naive:?}"),
        }
    }

    /// Everything that there is to see agrees.
    fn compare(&mut self) {
        let (now, seen) = (self.now, self.breaker.snapshot(self.tick()));
        assert_eq!(seen.state, self.breaker.state(self.tick()));
        assert_eq!(seen.state, self.naive.state(now), "state");
        let probes = (seen.live_probes as usize, seen.good_probes);
        assert_eq!(
            (seen.episodes, seen.run, probes),
            (self.naive.episodes, self.naive.run, self.naive.probes()),
            "episodes, run, probes"
        );
        for (at, rule) in seen.rules.iter().enumerate() {
            let (hits, calls) = self.naive.observe(at, now);
            if rule.rule == "cusum" {
                let sum = self.naive.sum(self.naive.settings.trip[at]);
                assert!((rule.observed - sum).abs() < 1e-6, "{rule:?}: {sum}");
            } else {
                assert_eq!(rule.hits, hits, "hits of {rule:?}");
            }
            assert!(
                rule.calls.is_none_or(|seen| seen == calls),
                "calls of {rule:?}: {calls}"
            );
        }
        let kinds: BTreeMap<_, _> = seen.kinds.iter().copied().collect();
        let counted = self.naive.kinds.iter().filter(|(_, count)| **count > 0);
        assert_eq!(
            kinds,
            counted.map(|(kind, count)| (*kind, *count)).collect(),
            "kinds"
        );
        assert_eq!(seen.late, self.naive.late, "late");
        assert_eq!(seen.in_flight, u64::from(self.naive.in_flight), "in flight");
        let rejected: BTreeMap<Reason, u64> = seen
            .rejected
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(rejected, self.naive.rejected, "rejected");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn overlapping_schedules_agree_with_the_naive_breaker(
        settings in settings(),
        ops in prop::collection::vec(ops(), 1..250),
    ) {
        let mut pair = Pair::new(settings);
        for op in &ops {
            pair.step(op);
            pair.compare();
        }
    }

    /// The promise of a refusal: up to its end the answer is no, at its end it is yes.
    #[test]
    fn a_refusal_is_exact(failures in 1_u32..5, cooldown in 1_u64..100_000, steps in 1_u64..40) {
        let spec = fuseline_core::PolicySpec {
            trip: Some(vec![TripRule::Consecutive { failures }]),
            cooldown: Some(Duration::from_millis(cooldown)),
            ..fuseline_core::PolicySpec::default()
        };
        let breaker = Breaker::new(ScopeName::provider("p"), Policy::new(&spec).unwrap());
        for _ in 0..failures {
            breaker.try_acquire(Tick::ZERO).unwrap().record(&Outcome::failure(Kind::Network), Tick::ZERO);
        }
        let wait = breaker.try_acquire(Tick::ZERO).unwrap_err().retry_after;
        let end = wait.as_millis() as u64;
        for step in 0..steps {
            let now = Tick::from_millis(end * step / steps);
            let left = breaker.try_acquire(now).unwrap_err().retry_after;
            prop_assert_eq!(now + left, Tick::from_millis(end));
        }
        prop_assert!(breaker.try_acquire(Tick::from_millis(end - 1)).is_err());
        prop_assert!(breaker.try_acquire(Tick::from_millis(end)).unwrap().is_probe());
    }
}
