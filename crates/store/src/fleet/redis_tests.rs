//! The scripts on a real Redis, compared with their twin in Rust, and the way there and back.

mod cluster;

use std::cell::{Cell, RefCell};
use std::process::Command;
use std::time::Duration;

use fuseline_core::{ScopeName, State};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::FleetConfig;
use super::error::FleetError;
use super::link::Link;
use super::message::{Ask, Offer, Record, Request, Weight};
use super::server::Shelf;
use super::turn::{Index, Server as _, Turn};
use crate::redis_server::Redis;

fn linked(url: &str, prefix: &str, replica: u64) -> Result<Link, FleetError> {
    Link::new(&FleetConfig {
        url: url.to_owned(),
        authorities: None,
        prefix: prefix.to_owned(),
        replica,
    })
}

fn link(redis: &Redis, me: u64) -> Link {
    linked(&redis.url(), "test", me).unwrap()
}

fn record(state: State, until: u64, by: &str) -> Record {
    Record {
        state,
        until,
        since: 7,
        episodes: 2,
        observed: 5_000,
        threshold: 4_000,
        kind: Some("server_error".to_owned()),
        by: by.to_owned(),
        is_command: false,
    }
}

/// A step: who, and what he says. Times are told from the server's present.
#[derive(Clone, Debug)]
struct Step {
    me: u8,
    late: bool,
    offer: Option<(u64, u8, bool, u64, bool)>,
    ask: u8,
    token: u64,
    good: u32,
}

fn step() -> impl Strategy<Value = Step> {
    let offer = (1_u64..5, 0_u8..4, any::<bool>(), 0_u64..4, any::<bool>());
    let rest = (0_u8..4, 0_u64..4, 0_u32..3);
    (
        0_u8..3,
        prop::bool::weighted(0.1),
        prop::option::of(offer),
        rest,
    )
        .prop_map(|(me, late, offer, (ask, token, good))| Step {
            me,
            late,
            offer,
            ask,
            token,
            good,
        })
}

impl Step {
    /// Ends lie far from now on either side, so that the milliseconds on the way decide nothing.
    fn request(&self, name: ScopeName, now: u64) -> Request {
        let length = 500_000;
        let token = self.token;
        let offer =
            |(version, state, is_over, token, is_command): (u64, u8, bool, u64, bool)| Offer {
                version,
                record: record(
                    match state {
                        0 | 1 => State::Open,
                        2 => State::Closed,
                        _ => State::ForcedOpen,
                    },
                    if is_over { now - 60_000 } else { now + 60_000 },
                    "x",
                ),
                token,
                weight: match is_command {
                    true => Weight::Command,
                    false => Weight::Evidence,
                },
            };
        Request {
            name,
            sent: if self.late { now - 30_000 } else { now },
            counts: format!("{{\"n\":{}}}", self.token),
            offer: self.offer.map(offer),
            ask: match self.ask {
                0 => Ask::Nothing,
                1 => Ask::Want {
                    seen: token,
                    length,
                },
                2 => Ask::Keep {
                    token,
                    length,
                    good: self.good,
                },
                _ => Ask::Back {
                    token,
                    good: self.good,
                },
            },
        }
    }
}

fn turn(requests: Vec<Request>) -> Turn {
    Turn {
        requests,
        index: Some(Index::default()),
    }
}

#[test]
fn the_script_does_what_its_twin_does() {
    let redis = Redis::start(&[]);
    let links = [10, 11, 12].map(|me| RefCell::new(link(&redis, me)));
    let present = links[0]
        .borrow_mut()
        .turn(&turn(Vec::new()))
        .unwrap()
        .present
        .unwrap();
    assert_eq!(present.alive, 1);
    let cases = Cell::new(0_u32);
    let steps = prop::collection::vec(step(), 1..25);
    let result = TestRunner::default().run(&steps, |steps| {
        cases.set(cases.get() + 1);
        let case = cases.get();
        let name = ScopeName::model("p", &format!("{{m}} \"{case}\""));
        let mut twin = Shelf::default();
        for step in steps {
            let mut link = links[usize::from(step.me)].borrow_mut();
            let now = link.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
            let request = step.request(name.clone(), now);
            let told = link.turn(&turn(vec![request.clone()])).unwrap();
            let mut reply = told.replies[0].clone();
            let me = ["a", "b", "c"].map(|me| format!("{me:0>16}"));
            let me = &me[usize::from(step.me)];
            let mut expected = twin.exchange(me, &request, reply.now);
            // Milliseconds pass between the two: times of counts and leases are the twin's own.
            for counts in [&mut reply.counts, &mut expected.counts] {
                counts.iter_mut().for_each(|(_, at, _)| *at = 0);
            }
            prop_assert_eq!(reply, expected);
        }
        Ok(())
    });
    result.unwrap();
    let kept = redis.ask(&["--scan"]);
    let keys: Vec<&str> = kept.lines().collect();
    assert!(keys.len() > 100, "{keys:?}");
    for key in keys {
        let left: i64 = redis.ask(&["PTTL", key]).trim().parse().unwrap();
        assert!(left > 0, "{key} has no end");
    }
}

#[test]
fn report_90_a_connection_that_died_is_followed_by_another() {
    let redis = Redis::start(&[]);
    let mut link = link(&redis, 10);
    link.turn(&turn(Vec::new())).unwrap();
    redis.ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert!(link.turn(&turn(Vec::new())).is_err(), "it was dead");
    link.turn(&turn(Vec::new())).unwrap();
}

#[test]
fn forgotten_scripts_are_told_again() {
    let redis = Redis::start(&[]);
    let mut link = link(&redis, 10);
    link.turn(&turn(Vec::new())).unwrap();
    redis.ask(&["SCRIPT", "FLUSH"]);
    let present = link.turn(&turn(Vec::new())).unwrap().present.unwrap();
    assert_eq!(present.alive, 1);
}

#[test]
fn an_error_repeats_no_secret() {
    let redis = Redis::start(&["--requirepass", "other"]);
    let url = format!("redis://user:sk-canary@127.0.0.1:{}", redis.port);
    let mut link = linked(&url, "test", 10).unwrap();
    let error = link.turn(&turn(Vec::new())).unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(
        told.contains("authentication failed") && !told.contains("canary"),
        "{told}"
    );
    let error = linked("redis://:sk-canary@:x", "test", 10).err().unwrap();
    assert!(!format!("{error} {error:?}").contains("canary"));
}

#[test]
fn a_user_of_its_own_needs_few_commands_and_one_pattern_of_keys() {
    let redis = Redis::start(&[]);
    redis.ask(&[
        "ACL",
        "SETUSER",
        "fleet",
        "on",
        ">pass",
        "~team:*",
        "-@all",
        "+eval",
        "+del",
        "+type",
        "+evalsha",
        "+script|load",
        "+select",
        "+time",
        "+hset",
        "+hgetall",
        "+hdel",
        "+pexpire",
        "+zadd",
        "+zremrangebyscore",
        "+zremrangebyrank",
        "+zcount",
        "+zrangebyscore",
    ]);
    let url = format!("redis://fleet:pass@127.0.0.1:{}/3", redis.port);
    let request = Step {
        me: 0,
        late: false,
        offer: None,
        ask: 0,
        token: 0,
        good: 0,
    }
    .request(ScopeName::provider("p"), 1);
    let mut link = linked(&url, "team", 10).unwrap();
    let replies = link.turn(&turn(vec![request.clone()])).unwrap().replies;
    assert_eq!(replies[0].version, 0);
    let mut link = linked(&url, "others", 10).unwrap();
    let error = link.turn(&turn(vec![request])).unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "{error}");
}

#[test]
fn a_frozen_server_costs_no_more_than_its_limit() {
    let redis = Redis::start(&[]);
    let mut link = link(&redis, 10);
    link.turn(&turn(Vec::new())).unwrap();
    let signal = |name: &str| {
        let pid = redis.child.id().to_string();
        let done = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(done.success());
    };
    signal("-STOP");
    let clock = fuseline_core::Clock::system();
    let before = clock.now();
    assert!(link.turn(&turn(Vec::new())).is_err());
    let took = clock.now().since(before);
    assert!(
        took >= Duration::from_millis(45) && took < Duration::from_millis(500),
        "{took:?}"
    );
    signal("-CONT");
    link.turn(&turn(Vec::new())).unwrap();
}

#[test]
fn report_94_a_key_that_is_broken_is_begun_anew() {
    let redis = Redis::start(&[]);
    let mut link = link(&redis, 10);
    let key = r#"test:{["provider","p",null]}"#;
    let breakages: [&[&str]; 6] = [
        &["SET", key, "garbage"],
        &["HSET", key, "body", "garbage"],
        &["HSET", key, "body", "{\"by\":7}"],
        &["HSET", key, "state", "from_the_future"],
        &["HSET", key, "ends", "never"],
        &["DEL", key],
    ];
    for breakage in breakages {
        let now = link.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
        let mut step = Step {
            me: 0,
            late: false,
            offer: Some((4, 0, false, 0, true)),
            ask: 0,
            token: 0,
            good: 0,
        };
        let name = ScopeName::provider("p");
        let offer = step.request(name.clone(), now);
        let replies = link.turn(&turn(vec![offer.clone()])).unwrap().replies;
        assert!(replies[0].taken, "{breakage:?}");
        redis.ask(breakage);
        step.offer = None;
        let look = step.request(name, now);
        let reply = link.turn(&turn(vec![look])).unwrap().replies.remove(0);
        assert_eq!((reply.version, reply.record), (0, None), "{breakage:?}");
        let replies = link.turn(&turn(vec![offer])).unwrap().replies;
        assert_eq!(replies[0].version, 4, "told again after {breakage:?}");
        redis.ask(&["DEL", key]);
    }
}

#[test]
fn report_103_every_key_ends_some_time_after_what_it_tells() {
    let redis = Redis::start(&[]);
    let mut link = link(&redis, 10);
    let index = Index {
        look_back: 0,
        names: vec![ScopeName::provider("p0")],
    };
    let first = Turn {
        requests: Vec::new(),
        index: Some(index),
    };
    let now = link.turn(&first).unwrap().present.unwrap().now;
    let step = Step {
        me: 0,
        late: false,
        offer: Some((1, 0, false, 0, false)),
        ask: 0,
        token: 0,
        good: 0,
    };
    let opens = (0..50).map(|at| step.request(ScopeName::provider(&format!("p{at}")), now));
    let replies = link.turn(&turn(opens.collect())).unwrap().replies;
    assert!(replies.iter().all(|reply| reply.taken));
    let kept = redis.ask(&["--scan"]);
    assert_eq!(kept.lines().count(), 52, "{kept}");
    for key in kept.lines() {
        let left: u64 = redis.ask(&["PTTL", key]).trim().parse().unwrap();
        // Open for another 60 s, and ten minutes more.
        let least = if key.contains("provider") { 60_000 } else { 1 };
        assert!((least..=660_000).contains(&left), "{key}: {left}");
    }
}
