//! Fuseline: permits and calls of the public library, and what must not matter: traffic, windows, other breakers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fuseline::{Breaker, Clock, Kind, Policy, PolicySpec, TripRule};

use crate::measure::{Contestant, Loop, looped, median, nanos};

const MINUTE: Duration = Duration::from_secs(60);

/// Borrowed permit first, owned permit second, then the calls; last what the clock alone takes of each.
pub fn contestants() -> Vec<Contestant> {
    vec![borrowed(), owned(), calls(), clock_alone()]
}

fn borrowed() -> Contestant {
    let (success, refusing, failing) = (closed(MINUTE), open(), patient());
    Contestant {
        name: "fuseline, permit",
        success: permits(success),
        refusal: looped(move || refusing.try_acquire().is_ok()),
        failure: looped(move || {
            let Ok(permit) = failing.try_acquire() else {
                return false;
            };
            permit.failure(Kind::ServerError).is_none()
        }),
    }
}

fn owned() -> Contestant {
    let (success, refusing, failing) = (closed(MINUTE), open(), patient());
    Contestant {
        name: "fuseline, owned permit",
        success: looped(move || {
            let Ok(permit) = success.try_acquire_owned() else {
                return false;
            };
            permit.success().is_none()
        }),
        refusal: looped(move || refusing.try_acquire_owned().is_ok()),
        failure: looped(move || {
            let permit = failing.try_acquire_owned();
            permit.map(|permit| permit.failure(Kind::ServerError).is_some())
        }),
    }
}

fn calls() -> Contestant {
    let (success, refusing, failing) = (closed(MINUTE), open(), patient());
    Contestant {
        name: "fuseline, call_blocking",
        success: looped(move || success.call_blocking(|| Ok::<_, ()>(1)).is_ok()),
        refusal: looped(move || refusing.call_blocking(|| Ok::<_, ()>(1)).is_ok()),
        failure: looped(move || failing.call_blocking(|| Err::<u8, _>(())).is_ok()),
    }
}

/// Two readings of the coarse clock a call, one a refusal: what no breaker that tells the time can be faster than.
fn clock_alone() -> Contestant {
    let [a, b, c] = [Clock::system(), Clock::system(), Clock::system()];
    Contestant {
        name: "the coarse clock's readings alone",
        success: looped(move || (a.now(), a.now())),
        refusal: looped(move || b.now()),
        failure: looped(move || (c.now(), c.now())),
    }
}

/// A rate rule over this window, and the consecutive rule.
fn closed(window: Duration) -> Breaker {
    with_rules(5, 0.5, window, 10)
}

/// The same two rules, out of reach.
fn patient() -> Breaker {
    with_rules(u32::MAX, 1.0, MINUTE, u32::MAX)
}

fn open() -> Breaker {
    let breaker = closed(MINUTE);
    breaker.force_open(None);
    breaker.release();
    for _ in 0..5 {
        let _ = breaker.call_blocking(|| Err::<(), _>(()));
    }
    assert!(!breaker.is_available());
    breaker
}

fn with_rules(failures: u32, threshold: f64, window: Duration, min_calls: u32) -> Breaker {
    let spec = PolicySpec {
        trip: Some(vec![
            TripRule::Consecutive { failures },
            TripRule::Rate {
                threshold,
                window,
                min_calls,
            },
        ]),
        cooldown: Some(Duration::from_secs(3_600)),
        max_cooldown: Some(Duration::from_secs(3_600)),
        ..PolicySpec::default()
    };
    Breaker::new("openai", Policy::new(&spec).expect("settings are in range"))
}

/// Successes on one thread, where something else changes.
pub fn print_flatness() {
    let second = Duration::from_secs(1);
    let busy = closed(MINUTE);
    for _ in 0..2_000_000 {
        let _ = busy.call_blocking(|| Ok::<_, ()>(()));
    }
    let rows: [(&str, Loop); 6] = [
        ("a 60 s window", permits(closed(MINUTE))),
        ("after 2,000,000 calls", permits(busy)),
        ("a 1 s window", permits(closed(second))),
        ("an hour's window", permits(closed(3_600 * second))),
        ("10 breakers in turn", in_turn(10)),
        ("500 breakers in turn", in_turn(500)),
    ];
    println!("| fuseline, permit, success | ns |");
    println!("|---|---:|");
    let mut samples = vec![Vec::new(); rows.len()];
    for _ in 0..41 {
        for ((_, calls), sample) in rows.iter().zip(&mut samples) {
            sample.push(nanos(calls, 1));
        }
    }
    for ((what, _), sample) in rows.iter().zip(samples) {
        println!("| {what} | {:.1} |", median(sample));
    }
}

fn permits(breaker: Breaker) -> Loop {
    looped(move || {
        let Ok(permit) = breaker.try_acquire() else {
            return false;
        };
        permit.success().is_none()
    })
}

fn in_turn(many: usize) -> Loop {
    let breakers: Vec<Breaker> = (0..many).map(|_| closed(MINUTE)).collect();
    let next = AtomicUsize::new(0);
    looped(move || {
        let at = next.load(Ordering::Relaxed);
        next.store((at + 1) % many, Ordering::Relaxed);
        let Ok(permit) = breakers[at].try_acquire() else {
            return false;
        };
        permit.success().is_none()
    })
}
