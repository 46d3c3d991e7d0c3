//! Rounds, threads and medians.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A loop of calls that runs so many times.
pub type Loop = Box<dyn Fn(u32) + Sync>;

/// One breaker, or one way to use it.
pub struct Contestant {
    pub name: &'static str,
    /// Calls that succeed, on a closed breaker.
    pub success: Loop,
    /// Calls that an open breaker refuses.
    pub refusal: Loop,
    /// Calls that fail, on a breaker whose rules never fire.
    pub failure: Loop,
}

/// By contestant: success, refusal and failure, each on one thread and on two.
pub type Table = Vec<[f64; 6]>;

/// A loop as a closure over one call.
pub fn looped<R>(call: impl Fn() -> R + Sync + 'static) -> Loop {
    Box::new(move |times| {
        for _ in 0..times {
            std::hint::black_box(call());
        }
    })
}

/// Medians over the rounds, in each of which every contestant takes its turn.
pub fn measure(contestants: &[Contestant], rounds: usize) -> Table {
    let columns = |contestant: &Contestant| -> [f64; 6] {
        let loops = [
            &contestant.success,
            &contestant.refusal,
            &contestant.failure,
        ];
        std::array::from_fn(|at| nanos(loops[at / 2], at % 2 + 1))
    };
    let samples: Vec<Vec<[f64; 6]>> = (0..rounds)
        .map(|_| contestants.iter().map(columns).collect())
        .collect();
    (0..contestants.len())
        .map(|who| {
            std::array::from_fn(|column| {
                median(samples.iter().map(|round| round[who][column]).collect())
            })
        })
        .collect()
}

/// Nanoseconds a call of one thread while `threads` run the same loop.
pub fn nanos(calls: &Loop, threads: usize) -> f64 {
    const TIMES: u32 = 20_000;
    let ready = AtomicUsize::new(0);
    let run = || {
        calls(100);
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < threads {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        calls(TIMES);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        let theirs = others.into_iter().map(|other| other.join().unwrap());
        theirs.fold(own, f64::max)
    })
}

/// The middle one.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
