//! Registries in one process that share a server in memory, in virtual time; and the script on a real Redis, compared with
//! its twin in Rust.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fuseline_core::{
    Breaker, Clock, Failure, Kind, Outcome, Policy, PolicySpec, Reason, Registry, RegistryConfig,
    ScopeName, State, TripRule,
};

use super::error::FleetError;
use super::server::Shelf;
use super::turn::{Answers, Present, Server, Turn};
use super::worker::{Counters, Worker};

/// What the index and the scripts keep.
#[derive(Default)]
struct Kept {
    shelves: HashMap<ScopeName, Shelf>,
    names: BTreeMap<ScopeName, u64>,
    replicas: BTreeMap<String, u64>,
}

/// A server in memory, as one replica reaches it.
#[derive(Clone)]
struct Shared {
    kept: Arc<Mutex<Kept>>,
    away: Arc<AtomicBool>,
    clock: Clock,
    me: String,
}

/// The server's time is not the replicas'.
const SHIFT: u64 = 1_800_000_000_000;

impl Server for Shared {
    fn turn(&mut self, turn: &Turn) -> Result<Answers, FleetError> {
        if self.away.load(Relaxed) {
            return Err(FleetError::Away("away".to_owned()));
        }
        let now = self.clock.now().as_millis() + SHIFT;
        let mut kept = self.kept.lock().unwrap();
        let mut replies = Vec::new();
        for request in &turn.requests {
            let shelf = kept.shelves.entry(request.name.clone()).or_default();
            replies.push(shelf.exchange(&self.me, request, now));
        }
        let present = turn.index.as_ref().map(|index| {
            kept.replicas.insert(self.me.clone(), now);
            for name in &index.names {
                kept.names.insert(name.clone(), now);
            }
            let since = match index.look_back {
                0 => 0,
                back => now - back,
            };
            let alive = kept.replicas.values().filter(|at| **at + 1_000 >= now);
            let names = kept.names.iter().filter(|(_, at)| **at >= since);
            Present {
                now,
                alive: alive.count() as u64,
                names: names.map(|(name, _)| name.clone()).collect(),
            }
        });
        Ok(Answers { replies, present })
    }
}

struct Replica {
    registry: Registry,
    worker: Worker,
    away: Arc<AtomicBool>,
    counters: Arc<Counters>,
}

struct World {
    clock: Clock,
    kept: Arc<Mutex<Kept>>,
    replicas: Vec<Replica>,
    policy: Policy,
}

fn policy() -> Policy {
    Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 4 }]),
        cooldown: Some(Duration::from_secs(10)),
        jitter: Some(0.0),
        successes_to_close: Some(2),
        probe_timeout: Some(Duration::from_secs(5)),
        ..PolicySpec::default()
    })
    .unwrap()
}

fn name() -> ScopeName {
    ScopeName::model("p", "m")
}

impl World {
    fn new(replicas: usize) -> Self {
        Self::under(policy(), replicas)
    }

    fn under(policy: Policy, replicas: usize) -> Self {
        let mut world = Self {
            policy,
            clock: Clock::manual(),
            kept: Arc::default(),
            replicas: Vec::new(),
        };
        world.clock.advance(Duration::from_secs(100));
        (0..replicas).for_each(|_| world.add());
        world.pass(200);
        world
    }

    fn add(&mut self) {
        let registry = Registry::new(RegistryConfig {
            clock: self.clock.clone(),
            ..RegistryConfig::default()
        });
        let (away, counters) = (Arc::default(), Arc::default());
        let me = format!("r{}", self.replicas.len());
        let server = Shared {
            kept: Arc::clone(&self.kept),
            away: Arc::clone(&away),
            clock: self.clock.clone(),
            me: me.clone(),
        };
        let policy = self.policy.clone();
        let shares = Box::new(move |_: &ScopeName| Some(policy.clone()));
        let counted = Arc::clone(&counters);
        self.replicas.push(Replica {
            worker: Worker::new(registry.clone(), Box::new(server), shares, me, counted),
            registry,
            away,
            counters,
        });
    }

    /// Time passes, and everybody looks.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 25 {
            self.clock.advance(Duration::from_millis(25));
            self.replicas.iter_mut().for_each(|one| one.worker.look());
        }
    }

    fn breaker(&self, at: usize) -> Breaker {
        let registry = &self.replicas[at].registry;
        registry
            .get_breaker(&name(), &self.policy, registry.now())
            .unwrap()
    }

    fn fail(&self, at: usize, times: u32) {
        for _ in 0..times {
            let now = self.clock.now();
            let breaker = self.breaker(at);
            let permit = breaker.try_acquire(now).unwrap();
            permit.record(&Outcome::failure(Kind::ServerError), now);
        }
    }

    fn word(&self, at: usize) {
        let now = self.clock.now();
        let failure = Failure::new(Kind::ServerError).open_now();
        let breaker = self.breaker(at);
        let permit = breaker.try_acquire(now).unwrap();
        permit.record(&Outcome::Failure(failure), now);
    }

    fn states(&self) -> Vec<State> {
        let now = self.clock.now();
        (0..self.replicas.len())
            .map(|at| self.breaker(at).state(now))
            .collect()
    }

    /// A call that succeeds where it is let through; whether it was.
    fn call(&self, at: usize) -> Result<(), Reason> {
        let now = self.clock.now();
        let breaker = self.breaker(at);
        let permit = breaker.try_acquire(now).map_err(|refused| refused.reason)?;
        permit.record(&Outcome::success(Duration::ZERO), now);
        Ok(())
    }
}

use State::{Closed, HalfOpen, Open};

#[test]
fn a_trip_by_all_is_everywhere_within_250_ms_also_where_nobody_called() {
    let mut world = World::new(3);
    world.fail(0, 2);
    world.fail(1, 2);
    world.pass(250);
    assert_eq!(world.states(), [Open; 3]);
    let opened = world.breaker(2).history(0).pop().unwrap();
    assert_eq!(opened.why.to_string(), "fleet 4/4, server_error");
    let ends: Vec<_> = (0..3)
        .map(|at| world.breaker(at).history(0).pop().unwrap().until)
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

#[test]
fn one_replica_with_a_broken_way_out_opens_only_itself() {
    let mut world = World::new(3);
    world.fail(0, 4);
    for _ in 0..20 {
        world.call(1).unwrap();
        world.call(2).unwrap();
        world.pass(100);
    }
    assert_eq!(world.states(), [Open, Closed, Closed]);
    world.pass(10_000);
    assert_eq!(world.call(0), Ok(()), "its probe is its own business");
}

#[test]
fn a_cusum_rule_opens_the_replica_that_has_seen_enough() {
    let policy = Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::cusum()]),
        ..PolicySpec::default()
    });
    let mut world = World::under(policy.unwrap(), 2);
    world.fail(0, 10);
    world.fail(1, 5);
    world.pass(1_000);
    assert_eq!(world.states(), [Open, Closed]);
    world.fail(1, 5);
    world.pass(250);
    assert_eq!(world.states(), [Open; 2]);
}

#[test]
fn the_providers_own_word_opens_all() {
    let mut world = World::new(3);
    world.word(1);
    world.pass(250);
    assert_eq!(world.states(), [Open; 3]);
}

#[test]
fn one_call_in_the_whole_fleet_probes_and_all_close_with_it() {
    let mut world = World::new(3);
    world.word(0);
    world.pass(10_000);
    for at in 0..3 {
        assert_eq!(world.call(at), Err(Reason::Probing));
    }
    world.pass(100);
    let passed: Vec<_> = (0..3).filter(|at| world.call(*at).is_ok()).collect();
    assert_eq!(passed.len(), 1, "{passed:?}");
    world.pass(100);
    let holder = passed[0];
    assert_eq!(world.call((holder + 1) % 3), Err(Reason::Probing));
    assert_eq!(world.call(holder), Ok(()));
    world.pass(250);
    assert_eq!(world.states(), [Closed; 3]);
}

#[test]
fn good_probes_count_wherever_they_were() {
    let mut world = World::new(2);
    world.word(0);
    world.pass(10_100);
    assert_eq!(world.call(0), Err(Reason::Probing));
    world.pass(100);
    assert_eq!(world.call(0), Ok(()));
    assert_eq!(world.breaker(0).state(world.clock.now()), HalfOpen);
    world.pass(1_200);
    assert_eq!(world.call(1), Err(Reason::Probing));
    world.pass(100);
    assert_eq!(world.call(1), Ok(()), "the second of two");
    world.pass(250);
    assert_eq!(world.states(), [Closed; 2]);
}

#[test]
fn report_95_a_new_replica_closes_nobodys_breaker_and_finds_it_open() {
    let mut world = World::new(2);
    world.word(0);
    world.pass(5_000);
    world.add();
    world.pass(200);
    assert_eq!(world.states(), [Open; 3]);
    assert_eq!(world.call(2), Err(Reason::Open));
    let ends = |at: usize| world.breaker(at).history(0).pop().unwrap().until;
    assert_eq!((ends(1), ends(2)), (ends(0), ends(0)));
}

#[test]
fn report_97_with_the_server_away_each_decides_alone_and_its_open_outlives_the_return() {
    let mut world = World::new(2);
    world
        .replicas
        .iter()
        .for_each(|one| one.away.store(true, Relaxed));
    world.pass(1_000);
    assert!(world.replicas[0].counters.is_degraded.load(Relaxed));
    world.word(0);
    world.pass(500);
    assert_eq!(world.states(), [Open, Closed]);
    world.pass(9_500);
    assert_eq!(world.call(0), Ok(()), "a probe of its own");
    world.fail(0, 1);
    world
        .replicas
        .iter()
        .for_each(|one| one.away.store(false, Relaxed));
    world.pass(5_000);
    assert!(!world.replicas[0].counters.is_degraded.load(Relaxed));
    assert_eq!(world.states()[0], Open);
}

#[test]
fn report_94_an_emptied_server_is_told_again_and_nothing_closes() {
    let mut world = World::new(3);
    world.word(2);
    world.pass(1_000);
    *world.kept.lock().unwrap() = Kept::default();
    world.pass(500);
    assert_eq!(world.states(), [Open; 3]);
    let kept = world.kept.lock().unwrap();
    assert_eq!(kept.shelves[&name()].version, 1);
    let resets: u64 = world
        .replicas
        .iter()
        .map(|one| one.counters.resets.load(Relaxed))
        .sum();
    assert!(resets > 0);
}

#[test]
fn an_operator_forces_all_and_releases_all() {
    let mut world = World::new(3);
    world.breaker(1).force_open(None, world.clock.now());
    world.pass(250);
    assert_eq!(
        world.states(),
        [Closed, State::ForcedOpen, Closed].map(|_| State::ForcedOpen)
    );
    world.breaker(2).force_closed(None, world.clock.now());
    world.pass(250);
    assert_eq!(world.states(), [State::ForcedClosed; 3]);
    world.breaker(0).release(world.clock.now());
    world.pass(250);
    assert_eq!(world.states(), [Closed; 3]);
}

#[test]
fn an_operator_resets_what_only_another_replica_has_opened() {
    let mut world = World::new(3);
    world.fail(0, 4);
    world.pass(250);
    assert_eq!(world.states(), [Open, Closed, Closed]);
    world.breaker(1).reset(world.clock.now());
    world.pass(250);
    assert_eq!(world.states(), [Closed; 3]);
}

#[test]
fn what_led_to_an_opening_does_not_lead_to_the_next() {
    let share = Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::Rate {
            threshold: 0.5,
            window: Duration::from_secs(60),
            min_calls: 4,
        }]),
        successes_to_close: Some(1),
        cooldown: Some(Duration::from_secs(1)),
        jitter: Some(0.0),
        ..PolicySpec::default()
    });
    // Failures that all have counted together, and failures that have opened two replicas by themselves.
    for (policy, failures) in [(policy(), 2), (share.unwrap(), 2), (policy(), 4)] {
        let mut world = World::under(policy, 3);
        let trip = |world: &mut World| {
            world.fail(0, failures);
            world.fail(1, failures);
            while world.states() != [Open; 3] {
                world.pass(25);
            }
        };
        trip(&mut world);
        world.breaker(2).reset(world.clock.now());
        world.pass(2_000);
        assert_eq!(world.states(), [Closed; 3], "an operator ends it");
        trip(&mut world);
        world.pass(10_000);
        while world.call(2).is_err() || world.states()[2] != Closed {
            world.pass(25);
        }
        world.pass(2_000);
        assert_eq!(world.states(), [Closed; 3], "good probes end it");
    }
}

#[test]
fn an_operators_reset_ends_what_others_have_counted() {
    let mut world = World::new(2);
    world.fail(0, 3);
    world.pass(250);
    world.breaker(1).reset(world.clock.now());
    world.pass(250);
    world.fail(0, 3);
    assert_eq!(world.states(), [State::Degraded, Closed]);
    world.fail(0, 1);
    assert_eq!(world.states(), [Open, Closed]);
}

#[test]
fn an_opening_after_an_operators_reset_stands() {
    let mut world = World::new(2);
    world.breaker(1).reset(world.clock.now());
    world.clock.advance(Duration::from_millis(10));
    world.fail(0, 4);
    world.pass(1_000);
    assert_eq!(world.states(), [Open, Closed]);
    world.breaker(1).reset(world.clock.now());
    world.pass(250);
    assert_eq!(world.states(), [Closed; 2]);
}

#[test]
fn report_105_a_wait_that_the_provider_asked_one_key_for_is_everybodys() {
    let mut world = World::new(2);
    let until = world.clock.now() + Duration::from_secs(30);
    world.breaker(0).hold(until);
    world.breaker(1);
    world.pass(250);
    assert_eq!(
        world.breaker(1).snapshot(world.clock.now()).hold_until,
        Some(until)
    );
}

#[test]
fn report_92_three_failures_of_whatever_kind_and_the_server_is_left_alone() {
    let mut world = World::new(1);
    let failures = |world: &World| world.replicas[0].counters.failures.load(Relaxed);
    world.replicas[0].away.store(true, Relaxed);
    world.fail(0, 1);
    world.pass(1_000);
    assert_eq!(failures(&world), 3);
    world.pass(9_000);
    let asked = failures(&world);
    assert!(
        (4..=9).contains(&asked),
        "{asked}: one at a time, at a distance"
    );
}

#[test]
fn report_99_ends_are_told_in_the_servers_time_whatever_the_replicas_clocks_say() {
    let mut world = World::new(2);
    world.word(0);
    world.pass(250);
    let until = world.breaker(1).history(0).pop().unwrap().until.unwrap();
    let shelf = world.kept.lock().unwrap().shelves[&name()].clone();
    assert_eq!(shelf.record.unwrap().until, until.as_millis() + SHIFT);
}

/// Both have heard of an opening; then one is cut off.
fn cut_off_while_open() -> World {
    let mut world = World::new(2);
    world.word(1);
    world.pass(250);
    assert_eq!(world.states(), [Open; 2]);
    world.replicas[0].away.store(true, Relaxed);
    world.pass(10_000);
    world
}

/// It probes by itself, closes, and opens by its own counts.
fn opens_by_itself(world: &mut World) {
    assert_eq!([world.call(0), world.call(0)], [Ok(()); 2]);
    assert_eq!(world.states()[0], Closed);
    world.fail(0, 4);
    assert_eq!(world.states()[0], Open);
}

#[test]
fn an_opening_of_its_own_is_not_ended_by_a_closing_that_is_older() {
    let mut world = cut_off_while_open();
    assert_eq!(world.call(1), Err(Reason::Probing));
    world.pass(100);
    assert_eq!([world.call(1), world.call(1)], [Ok(()); 2]);
    world.pass(100);
    assert_eq!(world.states()[1], Closed);
    opens_by_itself(&mut world);
    world.replicas[0].away.store(false, Relaxed);
    world.pass(4_000);
    assert_eq!(world.states(), [Open, Closed]);
}

#[test]
fn an_opening_of_its_own_joins_the_fleets_where_that_is_open_too() {
    let mut world = cut_off_while_open();
    opens_by_itself(&mut world);
    world.replicas[0].away.store(false, Relaxed);
    world.pass(4_000);
    assert_eq!(world.states(), [Open; 2]);
    assert_eq!(
        world.call(0),
        Err(Reason::Probing),
        "the fleet's lease is asked for"
    );
}

#[test]
fn a_replica_that_leaves_gives_its_lease_back() {
    let mut world = World::new(2);
    world.word(0);
    world.pass(10_100);
    assert_eq!(world.call(0), Err(Reason::Probing));
    world.pass(100);
    world.replicas[0].worker.leave();
    assert_eq!(world.call(1), Err(Reason::Probing));
    drop(world.replicas.remove(0));
    world.pass(100);
    assert_eq!(world.call(0), Ok(()), "the other has it");
}

#[test]
fn an_opening_for_all_whose_probe_has_failed_before_anybody_heard_of_it_is_told_all_the_same() {
    let mut world = World::new(2);
    world.replicas[0].away.store(true, Relaxed);
    world.pass(1_000);
    world.word(0);
    world.pass(10_000);
    world.fail(0, 1);
    world.replicas[0].away.store(false, Relaxed);
    world.pass(4_000);
    assert_eq!(world.states(), [Open; 2]);
}
