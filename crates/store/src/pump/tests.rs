//! The pump in virtual time: what it writes when, what it drops, and how it takes a store that fails.

use std::sync::Mutex;

use fuseline_core::{
    Clock, Kind, Outcome, Policies, Policy, PolicySpec, RegistryConfig, Scopes, State,
};

use super::*;
use crate::memory::Memory;

/// A store that can be made to fail.
#[derive(Clone, Debug, Default)]
struct Moody {
    kept: Memory,
    mood: Arc<Mutex<Option<Mood>>>,
    batches: Arc<Mutex<Vec<Batch>>>,
}

#[derive(Clone, Copy, Debug)]
enum Mood {
    Full,
    Damaged,
}

impl Moody {
    fn set(&self, mood: Option<Mood>) {
        *self.mood.lock().unwrap() = mood;
    }

    /// What was tried since the last look.
    fn batches(&self) -> Vec<Batch> {
        std::mem::take(&mut self.batches.lock().unwrap())
    }

    fn states(&self) -> Vec<(String, State)> {
        let records = self.kept.clone().load().unwrap();
        let state = |record: &Record| (record.name.to_string(), record.state);
        records.iter().map(state).collect()
    }
}

impl Store for Moody {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        self.kept.load()
    }

    fn publish(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.batches.lock().unwrap().push(batch.clone());
        match *self.mood.lock().unwrap() {
            None => self.kept.publish(batch),
            Some(Mood::Full) => Err(StoreError::Full("f".into())),
            Some(Mood::Damaged) => Err(StoreError::Damaged {
                path: "f".into(),
                moved_to: None,
            }),
        }
    }
}

/// A registry, its pump and its store, at a time that tests move.
struct World {
    clock: Clock,
    registry: Registry,
    store: Moody,
    worker: Worker,
}

impl World {
    fn new() -> Self {
        Self::with(Moody::default(), 500)
    }

    /// The process after another, with what that kept.
    fn with(store: Moody, max_breakers: usize) -> Self {
        let clock = Clock::manual();
        clock.advance(Clock::PAST);
        let registry = Registry::new(RegistryConfig {
            clock: clock.clone(),
            max_breakers,
            ..RegistryConfig::default()
        });
        let worker = Worker::new(registry.clone(), Box::new(store.clone()), 1);
        Self {
            clock,
            registry,
            store,
            worker,
        }
    }

    fn now(&self) -> Moment {
        Moment {
            tick: self.clock.now(),
            wall_ms: 1_800_000_000_000 + self.clock.now().as_millis(),
            boot: None,
        }
    }

    /// Lets so much time pass, and the pump look once.
    fn turn(&mut self, after: Duration) {
        self.clock.advance(after);
        let now = self.now();
        self.worker.turn(&now, Extent::WhatIsDue);
    }

    fn look(&mut self) {
        self.turn(LOOK_EVERY);
    }

    fn breaker(&self, name: &str) -> Breaker {
        let policy = Policy::new(&PolicySpec {
            jitter: Some(0.0),
            ..PolicySpec::default()
        });
        let name = ScopeName::provider(name);
        self.registry
            .get_breaker(&name, &policy.unwrap(), self.clock.now())
            .unwrap()
    }

    fn fail(&self, name: &str, times: u32) {
        for _ in 0..times {
            let permit = self.breaker(name);
            let permit = permit.try_acquire(self.clock.now()).unwrap();
            permit.record(&Outcome::failure(Kind::ServerError), self.clock.now());
        }
    }

    fn tally(&self) -> Kept {
        self.worker.tally.kept()
    }
}

#[test]
fn transitions_are_written_at_once_and_counts_each_second() {
    let mut world = World::new();
    world.look();
    world.fail("a", 2);
    for _ in 0..30 {
        world.look();
    }
    assert_eq!(world.store.batches(), [], "750 ms: not yet");
    for _ in 0..10 {
        world.look();
    }
    let written = world.store.batches();
    assert_eq!(written.len(), 1, "once in the second");
    assert_eq!(written[0].records[0].counts.run, 2);
    world.fail("a", 3);
    world.look();
    let written = world.store.batches();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].records[0].state, State::Open);
    let to: Vec<_> = written[0]
        .entries
        .iter()
        .map(|entry| entry.to.as_str())
        .collect();
    assert_eq!(to, ["degraded", "open"]);
    assert_eq!(world.tally().transitions, 2);
}

#[test]
fn what_has_not_changed_is_not_written() {
    let mut world = World::new();
    world.fail("a", 5);
    world.breaker("quiet");
    world.look();
    world.store.batches();
    for _ in 0..20 {
        world.turn(COUNTS_EVERY);
    }
    assert_eq!(world.store.batches(), [], "an open breaker stays as it is");
    assert_eq!(world.store.states(), [("a".to_owned(), State::Open)]);
}

#[test]
fn a_breaker_that_is_as_new_again_needs_no_record() {
    let mut world = World::new();
    world.fail("a", 5);
    world.look();
    world.breaker("a").reset(world.clock.now());
    world.look();
    assert_eq!(world.store.states(), []);
}

#[test]
fn what_waited_while_the_store_failed_is_written_when_it_is_back() {
    let mut world = World::new();
    world.store.set(Some(Mood::Full));
    world.fail("a", 5);
    world.look();
    assert_eq!(world.store.batches().len(), 1);
    world.look();
    assert_eq!(
        world.store.batches(),
        [],
        "a store that failed is left alone"
    );
    world.breaker("a").force_open(None, world.clock.now());
    world.turn(COUNTS_EVERY);
    assert_eq!(world.store.batches()[0].entries.len(), 3);
    assert_eq!(world.tally().failures, 2);
    assert!(world.tally().is_failing);
    world.store.set(None);
    world.turn(COUNTS_EVERY);
    assert_eq!(world.store.states(), [("a".to_owned(), State::ForcedOpen)]);
    let kept = world.tally();
    assert_eq!(
        (kept.transitions, kept.dropped, kept.is_failing),
        (3, 0, false)
    );
}

#[test]
fn transitions_that_left_the_history_unread_are_counted_and_the_state_is_right() {
    let mut world = World::new();
    world.store.set(Some(Mood::Full));
    for _ in 0..50 {
        world.breaker("a").force_open(None, world.clock.now());
        world.breaker("a").release(world.clock.now());
    }
    world.breaker("a").force_open(None, world.clock.now());
    world.look();
    world.store.set(None);
    world.turn(COUNTS_EVERY);
    let kept = world.tally();
    assert_eq!((kept.transitions, kept.dropped), (20, 81));
    assert_eq!(world.store.states(), [("a".to_owned(), State::ForcedOpen)]);
}

#[test]
fn after_damage_everything_is_written_anew() {
    let mut world = World::new();
    world.fail("a", 5);
    world.look();
    world.store.set(Some(Mood::Damaged));
    world.fail("b", 5);
    world.look();
    world.store.set(None);
    world.store.batches();
    world.turn(COUNTS_EVERY);
    let written = world.store.batches();
    let mut names: Vec<_> = written[0]
        .records
        .iter()
        .map(|record| record.name.to_string())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn report_112_trouble_is_told_once_and_then_every_ten_seconds_at_most() {
    let mut world = World::new();
    world.store.set(Some(Mood::Full));
    world.fail("a", 5);
    let mut told = 0;
    for second in 0..25 {
        world.turn(COUNTS_EVERY);
        let trouble = world.worker.trouble.as_ref().unwrap();
        told += u32::from(trouble.told_at == world.clock.now());
        assert_eq!(world.tally().failures, second + 1);
    }
    assert_eq!(told, 3);
}

#[test]
fn records_of_breakers_that_are_gone_go_too() {
    let mut world = World::new();
    world.fail("a", 5);
    world.fail("b", 5);
    world.look();
    let mut next = World::with(world.store.clone(), 500);
    let now = next.now();
    for record in next.store.kept.clone().load().unwrap() {
        if record.name == ScopeName::provider("a") {
            let policy = Policy::default();
            next.registry
                .restore(&record.saved(&now), &policy, now.tick)
                .unwrap();
        }
    }
    next.look();
    assert_eq!(next.store.states(), [("a".to_owned(), State::Open)]);
    next.registry.remove(&ScopeName::provider("a"));
    next.turn(COUNTS_EVERY);
    assert_eq!(next.store.states(), []);
}

#[test]
fn one_made_anew_under_its_old_name_is_read_from_its_beginning() {
    let mut world = World::new();
    world.fail("a", 5);
    world.look();
    world.registry.remove(&ScopeName::provider("a"));
    world.breaker("a").force_open(None, world.clock.now());
    world.look();
    assert_eq!(world.tally().transitions, 3);
    assert_eq!(world.store.states(), [("a".to_owned(), State::ForcedOpen)]);
}

#[test]
fn report_95_a_process_that_starts_closes_nobodys_breaker() {
    let mut world = World::new();
    world.fail("a", 5);
    world.look();
    let end = world.breaker("a").snapshot(world.clock.now()).retry_after;
    // Made and asked before anything is restored, and stopped at once: it has nothing to say.
    let mut next = World::with(world.store.clone(), 500);
    next.clock.advance(LOOK_EVERY);
    let idle = next.breaker("a");
    assert_eq!(idle.state(next.clock.now()), State::Closed);
    let record = next.store.kept.clone().load().unwrap().remove(0);
    let now = next.now();
    next.registry
        .restore(&record.saved(&now), &idle.policy(), now.tick)
        .unwrap();
    next.look();
    assert_eq!(next.store.states(), [("a".to_owned(), State::Open)]);
    assert!(idle.snapshot(now.tick).retry_after == end);
    assert!(idle.try_acquire(now.tick).is_err());
}

#[test]
fn report_97_without_its_store_a_breaker_opens_probes_and_closes_as_ever() {
    let mut world = World::new();
    world.store.set(Some(Mood::Full));
    world.fail("a", 5);
    world.look();
    assert_eq!(world.breaker("a").state(world.clock.now()), State::Open);
    world.turn(Duration::from_secs(15));
    for _ in 0..2 {
        let breaker = world.breaker("a");
        let probe = breaker.try_acquire(world.clock.now()).unwrap();
        probe.record(&Outcome::success(Duration::ZERO), world.clock.now());
    }
    assert_eq!(world.breaker("a").state(world.clock.now()), State::Closed);
    world.fail("a", 5);
    world.store.set(None);
    world.turn(COUNTS_EVERY);
    assert_eq!(
        world.store.states(),
        [("a".to_owned(), State::Open)],
        "the local word counts"
    );
}

#[test]
fn report_103_what_nobody_calls_any_more_leaves_no_trace() {
    let mut world = World::with(Moody::default(), 50);
    for model in 0..10_000 {
        let scopes = Scopes::new(
            &world.registry,
            ScopeName::provider("p"),
            Some(ScopeName::model("p", &format!("m{model}"))),
            None,
            Policies::all(&Policy::default()),
            world.clock.now(),
        );
        let permit = scopes
            .unwrap()
            .try_acquire(Duration::ZERO, world.clock.now());
        let outcome = Outcome::failure(Kind::Overloaded);
        permit.unwrap().record(&outcome, None, world.clock.now());
        if model % 100 == 0 {
            world.turn(COUNTS_EVERY);
        }
    }
    world.turn(COUNTS_EVERY);
    assert!(world.store.states().len() <= 50);
    assert!(world.worker.seen.len() <= 50);
}

/// A store that never answers, as one on a disk that hangs.
#[derive(Debug)]
struct Frozen(Mutex<mpsc::Receiver<()>>, mpsc::Sender<()>);

impl Store for Frozen {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        Ok(Vec::new())
    }

    fn publish(&mut self, _: &Batch) -> Result<(), StoreError> {
        let _ = self.1.send(());
        // Ends when the test does.
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }
}

#[test]
fn report_91_a_frozen_store_freezes_no_call() {
    let (thaw, frozen) = mpsc::channel();
    let (asked, reached) = mpsc::channel();
    let registry = Registry::default();
    let name = ScopeName::provider("a");
    let breaker = registry
        .get_breaker(&name, &Policy::default(), registry.now())
        .unwrap();
    breaker.force_open(None, registry.now());
    let store = Frozen(Mutex::new(frozen), asked);
    let pump = Pump::start(&registry, Box::new(store)).unwrap();
    reached.recv().unwrap();
    breaker.release(registry.now());
    let now = registry.now();
    for _ in 0..5 {
        let permit = breaker.try_acquire(now).unwrap();
        permit.record(&Outcome::failure(Kind::ServerError), now);
    }
    assert!(breaker.try_acquire(now).is_err());
    assert_eq!(
        pump.tally().kept(),
        Kept::default(),
        "the store has not answered"
    );
    let other = |number: u32| ScopeName::provider(&number.to_string());
    for number in 0..600 {
        let made = registry.get_breaker(&other(number), &Policy::default(), now);
        assert!(
            made.is_ok(),
            "{number}: the pump holds no breaker while it waits"
        );
    }
    drop(pump);
    drop(thaw);
}

#[test]
fn a_running_pump_writes_what_is_left_when_it_is_stopped() {
    let store = Memory::default();
    let registry = Registry::default();
    let pump = Pump::start(&registry, Box::new(store.clone())).unwrap();
    let name = ScopeName::provider("a");
    let breaker = registry
        .get_breaker(&name, &Policy::default(), registry.now())
        .unwrap();
    breaker.force_open(None, registry.now());
    let kept = pump.stop();
    assert_eq!((kept.transitions, kept.dropped, kept.failures), (1, 0, 0));
    assert_eq!(store.clone().load().unwrap()[0].state, State::ForcedOpen);
}
