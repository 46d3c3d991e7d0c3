//! `Pump`: carries what changes in a registry to a store, from a thread of its own.
//!
//! **No call waits for it.** It reads what breakers keep anyway: their counters of changes, their histories, their
//! states. Nothing is handed to it, so there is no queue that could fill.
//!
//! **Bounded, coalescing.** A history holds the last 20 transitions of its breaker. However slow the store is, what
//! waits is that and one state a breaker, the latest. Transitions that left a history unread are counted as dropped.
//!
//! **When the store fails** nothing is forgotten: the next turn offers the same again, with what has happened since. It
//! is said once, then every ten seconds at most, and once more when the store is back.

mod trouble;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fuseline_core::{Breaker, Registry, SavedBreaker, ScopeName, Tick};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::moment::Moment;
use crate::record::Record;
use crate::store::{Batch, Store};
use trouble::Trouble;

/// How often it looks for transitions.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How often counts are written.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// A running pump. Dropped, it writes what is left and ends by itself; [`stop`](Self::stop) waits for that.
#[derive(Debug)]
pub struct Pump {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
    tally: Tally,
}

/// Reads what a pump has done, from anywhere. Clones read the same.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Counters>);

/// What a pump has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Transitions that are in the store.
    pub transitions: u64,
    /// Transitions that left their breaker's history before they could be written.
    pub dropped: u64,
    /// Batches that the store did not take.
    pub failures: u64,
    /// Whether the last one is among these.
    pub is_failing: bool,
}

#[derive(Debug, Default)]
struct Counters {
    transitions: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
    is_failing: AtomicBool,
}

impl Pump {
    /// Starts to carry. Records in the store whose breakers are not in the registry are forgotten, so restore first.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(registry: &Registry, store: Box<dyn Store>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let clock = registry.clock().clone();
        let mut worker = Worker::new(registry.clone(), store, Moment::read(&clock).wall_ms);
        let tally = worker.tally.clone();
        let work = move || {
            loop {
                worker.turn(&Moment::read(&clock), Extent::WhatIsDue);
                if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return worker.turn(&Moment::read(&clock), Extent::Everything);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("fuseline-store".to_owned())
            .spawn(work)?;
        Ok(Self {
            stop,
            thread,
            tally,
        })
    }

    /// What it has done, to be read from elsewhere.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// Writes what is left, and waits for it as long as the store takes.
    pub fn stop(self) -> Kept {
        drop(self.stop);
        // One that panicked has nothing left to write.
        drop(self.thread.join());
        self.tally.kept()
    }
}

impl Tally {
    /// What the pump has done so far.
    pub fn kept(&self) -> Kept {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Kept {
            transitions: load(&self.0.transitions),
            dropped: load(&self.0.dropped),
            failures: load(&self.0.failures),
            is_failing: self.0.is_failing.load(Ordering::Relaxed),
        }
    }
}

/// What a turn writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Transitions; counts where a second has passed, nothing while the store is left alone.
    WhatIsDue,
    /// All there is.
    Everything,
}

/// What the store has of one breaker.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The number of the last transition.
    number: u64,
    saved: Option<SavedBreaker>,
}

struct Worker {
    registry: Registry,
    store: Box<dyn Store>,
    run: u64,
    seen: HashMap<ScopeName, Seen>,
    has_loaded: bool,
    counts_due: Tick,
    trouble: Option<Trouble>,
    tally: Tally,
}

/// What to write, and what the store will then have.
#[derive(Default)]
struct Load {
    batch: Batch,
    seen: Vec<(ScopeName, Option<Seen>)>,
    dropped: u64,
}

impl Worker {
    fn new(registry: Registry, store: Box<dyn Store>, run: u64) -> Self {
        Self {
            registry,
            store,
            run,
            seen: HashMap::new(),
            has_loaded: false,
            counts_due: Tick::ZERO,
            trouble: None,
            tally: Tally::default(),
        }
    }

    fn turn(&mut self, now: &Moment, extent: Extent) {
        let everything = extent == Extent::Everything;
        let rests = |trouble: &Trouble| trouble.rests(now.tick);
        if !everything && self.trouble.as_ref().is_some_and(rests) {
            return;
        }
        let counts = everything || now.tick >= self.counts_due;
        let result = self.learn().and_then(|()| {
            let load = self.load(counts, now);
            if !load.batch.is_empty() {
                self.store.publish(&load.batch)?;
            }
            self.done(load);
            Ok(())
        });
        if counts {
            self.counts_due = now.tick + COUNTS_EVERY;
        }
        match result {
            Ok(()) => self.well(),
            Err(error) => self.failed(&error, now),
        }
    }

    /// Learns what the store has, so that records of breakers that are gone can go too.
    fn learn(&mut self) -> Result<(), StoreError> {
        if !self.has_loaded {
            for record in self.store.load()? {
                self.seen.entry(record.name).or_default();
            }
            self.has_loaded = true;
        }
        Ok(())
    }

    /// What has changed. Breakers are let go again before the store is asked: a registry that is full must find its
    /// idle ones unheld.
    fn load(&self, counts: bool, now: &Moment) -> Load {
        let mut load = Load::default();
        let breakers = self.registry.breakers();
        if counts {
            let live: HashSet<_> = breakers.iter().map(Breaker::name).collect();
            for name in self.seen.keys().filter(|name| !live.contains(name)) {
                load.batch.forgotten.push(name.clone());
                load.seen.push((name.clone(), None));
            }
        }
        for breaker in &breakers {
            self.add(breaker, counts, now, &mut load);
        }
        load.batch.entries.sort_by_key(|entry| entry.at_ms);
        load
    }

    fn add(&self, breaker: &Breaker, counts: bool, now: &Moment, load: &mut Load) {
        let (changes, before) = (breaker.changes(), self.seen.get(breaker.name()));
        if !counts && changes == before.map_or(0, |seen| seen.number) {
            return;
        }
        let mut seen = before.cloned().unwrap_or_default();
        if changes < seen.number {
            // Forgotten, and made anew under its old name.
            seen.number = 0;
        }
        for transition in breaker.history(seen.number) {
            load.dropped += transition.number.saturating_sub(seen.number + 1);
            seen.number = transition.number;
            let entry = Entry::of(breaker.name(), &transition, self.run, now);
            load.batch.entries.push(entry);
        }
        let name = breaker.name().clone();
        let saved = Some(breaker.export(now.tick)).filter(|saved| !saved.is_fresh());
        if saved != seen.saved {
            match &saved {
                Some(saved) => load.batch.records.push(Record::of(saved, now)),
                None => load.batch.forgotten.push(name.clone()),
            }
            seen.saved = saved;
        }
        load.seen.push((name, Some(seen)));
    }

    /// The store has it.
    fn done(&mut self, load: Load) {
        for (name, seen) in load.seen {
            match seen {
                Some(seen) => self.seen.insert(name, seen),
                None => self.seen.remove(&name),
            };
        }
        for entry in &load.batch.entries {
            tracing::debug!(
                breaker = entry.breaker,
                run = entry.run,
                number = entry.number,
                to = entry.to,
                "transition stored"
            );
        }
        let stored = load.batch.entries.len() as u64;
        self.tally
            .0
            .transitions
            .fetch_add(stored, Ordering::Relaxed);
        self.tally
            .0
            .dropped
            .fetch_add(load.dropped, Ordering::Relaxed);
        if load.dropped > 0 {
            tracing::warn!(
                dropped = load.dropped,
                "transitions came faster than they could be stored; the states are complete"
            );
        }
    }

    fn well(&mut self) {
        self.tally.0.is_failing.store(false, Ordering::Relaxed);
        if let Some(trouble) = self.trouble.take() {
            trouble.end();
        }
    }

    fn failed(&mut self, error: &StoreError, now: &Moment) {
        self.tally.0.failures.fetch_add(1, Ordering::Relaxed);
        self.tally.0.is_failing.store(true, Ordering::Relaxed);
        if error.is_loss() {
            // What it had is gone: it gets everything, transitions excepted.
            for seen in self.seen.values_mut() {
                seen.saved = None;
            }
        }
        self.trouble = Some(Trouble::tell(self.trouble.take(), error, now.tick));
    }
}

#[cfg(all(test, fuseline_loom))]
mod loom_tests;
#[cfg(test)]
mod tests;
