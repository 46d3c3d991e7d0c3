//! Failures that wait in the backlogs of their threads: nobody who asks can tell.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use core::time::Duration;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use fuseline_core::{
    Breaker, Failure, Kind, KindSpec, OnSuccess, Outcome, Permit, Policy, PolicySpec, ScopeName,
    State, Tick, TripRule,
};
use proptest::prelude::*;

/// One step of a schedule. A settled call is named by its place among those that are out.
#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Acquire,
    Fail {
        at: usize,
        kind: Kind,
        code: Option<u16>,
    },
    Storm {
        times: usize,
        kind: Kind,
    },
    Succeed {
        at: usize,
        took: u64,
    },
    Reset,
    Reconfigure(u32),
    Look,
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::ServerError,
        Kind::ServerError,
        Kind::Network,
        Kind::Timeout,
        Kind::QuotaExhausted,
        Kind::BadRequest,
    ])
}

fn ops() -> impl Strategy<Value = Op> {
    let waits = prop_oneof![5 => 1_u64..50, 2 => 50_u64..2_000, 1 => 2_000_u64..90_000];
    let codes = || prop::option::of(prop::sample::select(vec![0_u16, 500, u16::MAX]));
    prop_oneof![
        6 => waits.prop_map(Op::Wait),
        8 => Just(Op::Acquire),
        10 => (any::<usize>(), kinds(), codes()).prop_map(|(at, kind, code)| Op::Fail { at, kind, code }),
        4 => (1_usize..30, kinds()).prop_map(|(times, kind)| Op::Storm { times, kind }),
        1 => (any::<usize>(), 0_u64..2_000).prop_map(|(at, took)| Op::Succeed { at, took }),
        1 => Just(Op::Reset),
        1 => (1_u32..80).prop_map(Op::Reconfigure),
        2 => Just(Op::Look),
    ]
}

/// Rules far enough away for failures to wait, and near enough to fire.
fn spec(failures: u32, degraded_at: f64, decrement: bool) -> PolicySpec {
    let window = Duration::from_secs(10);
    let mut trip = vec![
        TripRule::Consecutive { failures },
        TripRule::Window {
            failures: 2 * failures,
            window,
        },
        TripRule::Rate {
            threshold: 0.5,
            window,
            min_calls: 3 * failures,
        },
        TripRule::Slow {
            slower_than: Duration::from_secs(1),
            threshold: 0.5,
            window,
            min_calls: 9,
        },
    ];
    // It would hide the others: so many failures, less what successes take off, are fewer.
    let cusum = TripRule::Cusum {
        well: 0.1,
        ill: 0.5,
        calls_per_false_alarm: 5_f64.powi((failures / 2).clamp(3, 21).cast_signed()),
    };
    trip.extend((failures % 2 == 1).then_some(cusum));
    let ninth = KindSpec {
        threshold: Some(9),
        ..KindSpec::default()
    };
    PolicySpec {
        trip: Some(trip),
        degraded_at: Some(degraded_at),
        on_success: Some(if decrement {
            OnSuccess::Decrement
        } else {
            OnSuccess::Reset
        }),
        cooldown: Some(Duration::from_secs(1)),
        kinds: [(Kind::Timeout, ninth)].into(),
        ..PolicySpec::default()
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that live at once, so that each has a slot of its own; they run one job at a time.
struct Crew(Vec<(Sender<Job>, JoinHandle<()>)>);

impl Crew {
    fn new(threads: usize) -> Self {
        let worker = |_| {
            let (jobs, inbox) = channel::<Job>();
            (
                jobs,
                thread::spawn(move || inbox.iter().for_each(|job| job())),
            )
        };
        Self((0..threads).map(worker).collect())
    }

    fn run<R: Send + 'static>(&self, who: usize, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, result) = channel();
        let job = Box::new(move || done.send(job()).unwrap());
        self.0.get(who % self.0.len()).unwrap().0.send(job).unwrap();
        result.recv().unwrap()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for (jobs, thread) in self.0.drain(..) {
            drop(jobs);
            thread.join().unwrap();
        }
    }
}

/// A breaker that is left alone, one that is asked after every step, so that nothing ever waits in it, and their permits.
struct Twins {
    alone: Breaker,
    asked: Breaker,
    out: Vec<(Permit, Permit)>,
    now: Tick,
}

impl Twins {
    fn new(spec: &PolicySpec) -> Self {
        let breaker = || Breaker::new(ScopeName::provider("p"), Policy::new(spec).unwrap());
        Self {
            alone: breaker(),
            asked: breaker(),
            out: Vec::new(),
            now: Tick::ZERO,
        }
    }

    fn step(&mut self, op: &Op, who: usize, crew: &Crew, tuning: (f64, bool)) {
        let now = self.now;
        match *op {
            Op::Wait(ms) => self.now = now + Duration::from_millis(ms),
            Op::Acquire => self.acquire(),
            Op::Fail { at, kind, code } => {
                let failure = Failure::new(kind);
                let failure = code.map_or(failure, |code| failure.code(code));
                self.settle(at, Outcome::Failure(failure), who, crew);
            }
            Op::Storm { times, kind } => {
                for _ in 0..times {
                    self.acquire();
                    self.settle(usize::MAX, Outcome::failure(kind), who, crew);
                }
            }
            Op::Succeed { at, took } => {
                self.settle(at, Outcome::success(Duration::from_millis(took)), who, crew);
            }
            Op::Reset => {
                self.alone.reset(now);
                self.asked.reset(now);
            }
            Op::Reconfigure(failures) => {
                let policy = Policy::new(&spec(failures, tuning.0, tuning.1)).unwrap();
                self.alone.reconfigure(policy.clone(), now);
                self.asked.reconfigure(policy, now);
            }
            Op::Look => self.compare(),
        }
    }

    fn acquire(&mut self) {
        let alone = self.alone.try_acquire_owned(Duration::ZERO, self.now);
        let asked = self.asked.try_acquire_owned(Duration::ZERO, self.now);
        match (alone, asked) {
            (Ok(alone), Ok(asked)) => self.out.push((alone, asked)),
            (alone, asked) => assert_eq!(alone.err(), asked.err()),
        }
    }

    /// Settles on the crew's thread; the last permit if `at` is out of range.
    fn settle(&mut self, at: usize, outcome: Outcome, who: usize, crew: &Crew) {
        let Some(last) = self.out.len().checked_sub(1) else {
            return;
        };
        let (alone, asked) = self.out.swap_remove(at.min(last));
        let now = self.now;
        let (alone, asked) = crew.run(who, move || {
            (alone.record(&outcome, now), asked.record(&outcome, now))
        });
        assert_eq!(alone, asked, "the transition that followed");
        self.asked.snapshot(now);
    }

    fn compare(&self) {
        assert_eq!(
            format!("{:#?}", self.alone.snapshot(self.now)),
            format!("{:#?}", self.asked.snapshot(self.now))
        );
        assert_eq!(self.alone.history(0), self.asked.history(0));
    }
}

proptest! {
    #[test]
    fn a_breaker_that_is_left_alone_is_as_one_that_is_asked_all_the_time(
        failures in 1_u32..80,
        tuning in (prop::sample::select(vec![0.0, 0.6, 1.0]), any::<bool>()),
        ops in prop::collection::vec((ops(), 0_usize..3), 1..200),
    ) {
        let (crew, mut twins) = (Crew::new(3), Twins::new(&spec(failures, tuning.0, tuning.1)));
        let mut before = 0;
        for (op, who) in &ops {
            // Within a millisecond, the order of two threads is anybody's.
            twins.now = twins.now + Duration::from_millis(u64::from(*who != before));
            before = *who;
            twins.step(op, *who, &crew, tuning);
        }
        twins.compare();
    }
}

/// Equal failures in a millisecond, as many as the rule allows: the next one trips.
#[test]
fn a_storm_within_a_millisecond_trips_at_exactly_its_threshold() {
    const FAILURES: u32 = 100_000;
    let rule = TripRule::Consecutive { failures: FAILURES };
    let spec = PolicySpec {
        trip: Some(vec![rule]),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new(ScopeName::provider("p"), Policy::new(&spec).unwrap());
    for count in 1..=FAILURES {
        let permit = breaker.try_acquire(Tick::ZERO).unwrap();
        let followed = permit.record(&Outcome::failure(Kind::ServerError), Tick::ZERO);
        let to = followed.map(|transition| transition.to);
        let expected = match count {
            60_000 => Some(State::Degraded),
            FAILURES => Some(State::Open),
            _ => None,
        };
        assert_eq!(to, expected, "failure {count}");
    }
}
