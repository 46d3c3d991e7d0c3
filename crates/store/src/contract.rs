//! The suite that every store passes: what `Store` promises, asked of each in turn.

use std::path::Path;
use std::time::Duration;

use fuseline_core::{Breaker, Kind, Outcome, Policy, ScopeName, State, Tick};

use crate::{Batch, Boot, Entry, Memory, Moment, Record, Sqlite, Store};

/// A store, and how the next process comes to it once this one is gone.
trait Place {
    type Kept: Store;

    fn open(&self) -> Self::Kept;

    fn history(&self) -> Vec<Entry>;
}

impl Place for Memory {
    type Kept = Self;

    fn open(&self) -> Self {
        self.clone()
    }

    fn history(&self) -> Vec<Entry> {
        self.history()
    }
}

struct File(tempfile::TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> impl AsRef<Path> {
        self.0.path().join("state.db")
    }
}

impl Place for File {
    type Kept = Sqlite;

    fn open(&self) -> Sqlite {
        Sqlite::open(self.path().as_ref()).unwrap()
    }

    fn history(&self) -> Vec<Entry> {
        Sqlite::history(self.path().as_ref(), None, 1_000).unwrap()
    }
}

fn now() -> Moment {
    Moment {
        tick: Tick::from_millis(50_000),
        wall_ms: 1_800_000_000_000,
        boot: Some(Boot {
            id: "b".into(),
            ms: 7_000,
        }),
    }
}

fn broken(name: ScopeName) -> Breaker {
    let breaker = Breaker::new(name, Policy::default());
    for _ in 0..5 {
        let permit = breaker.try_acquire(now().tick).unwrap();
        permit.record(&Outcome::failure(Kind::ServerError), now().tick);
    }
    breaker
}

fn record(breaker: &Breaker) -> Record {
    Record::of(&breaker.export(now().tick), &now())
}

fn records(breakers: &[Breaker]) -> Batch {
    Batch {
        records: breakers.iter().map(record).collect(),
        ..Batch::default()
    }
}

/// One of each scope, names that need care, every state that can be kept.
fn breakers() -> Vec<Breaker> {
    let forced = broken(ScopeName::provider("forced"));
    forced.force_open(None, now().tick);
    let passing = broken(ScopeName::provider("passing"));
    passing.force_closed(Some(now().tick + Duration::from_secs(60)), now().tick);
    let probed = broken(ScopeName::provider("probed"));
    let later = now().tick + Duration::from_secs(60);
    drop(probed.try_acquire(later).unwrap());
    let closed = broken(ScopeName::provider("closed"));
    closed.reset(now().tick);
    let mut all = vec![forced, passing, probed, closed];
    let names = [
        ScopeName::provider("p"),
        ScopeName::model("p", "org/model:free"),
        ScopeName::model("p/org", "model:free"),
        ScopeName::model("p", "日本'; DROP TABLE breakers; --"),
        ScopeName::key("p", "0"),
        ScopeName::model("p", "0"),
    ];
    all.extend(names.map(broken));
    all
}

fn gives_back_what_was_published_last(place: &impl Place) {
    let all = breakers();
    assert_eq!(place.open().load().unwrap(), []);
    place.open().publish(&records(&all)).unwrap();
    let mut expected: Vec<Record> = all.iter().map(record).collect();
    expected.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(place.open().load().unwrap(), expected);
    let states: Vec<State> = expected.iter().map(|record| record.state).collect();
    for state in [
        State::Open,
        State::HalfOpen,
        State::Closed,
        State::ForcedOpen,
        State::ForcedClosed,
    ] {
        assert!(states.contains(&state), "{state}");
    }

    let mut kept = place.open();
    all[4].reset(now().tick);
    kept.publish(&records(&all[4..5])).unwrap();
    drop(kept);
    let found = place.open().load().unwrap();
    assert_eq!(found.len(), all.len());
    let changed = found.iter().find(|record| record.name == *all[4].name());
    assert_eq!(changed.unwrap().state, State::Closed);
}

fn forgets_what_it_is_told_to(place: &impl Place) {
    let all = breakers();
    let mut kept = place.open();
    kept.publish(&records(&all)).unwrap();
    let names = all.iter().map(|breaker| breaker.name().clone());
    let batch = Batch {
        forgotten: names
            .skip(1)
            .chain([ScopeName::provider("never seen")])
            .collect(),
        ..Batch::default()
    };
    kept.publish(&batch).unwrap();
    assert_eq!(kept.load().unwrap(), [record(&all[0])]);
    kept.publish(&Batch {
        forgotten: vec![all[0].name().clone()],
        records: vec![record(&all[0])],
        entries: Vec::new(),
    })
    .unwrap();
    assert_eq!(
        kept.load().unwrap().len(),
        1,
        "made anew under its old name"
    );
}

fn keeps_history_once_and_in_order(place: &impl Place) {
    let breaker = broken(ScopeName::model("p", "m"));
    let twin = broken(ScopeName::key("p", "m"));
    breaker.reset(now().tick);
    let entries = |run| {
        let of = |breaker: &Breaker| {
            let name = breaker.name().clone();
            let entry = move |change| Entry::of(&name, &change, run, &now());
            breaker
                .history(0)
                .into_iter()
                .map(entry)
                .collect::<Vec<_>>()
        };
        [of(&breaker), of(&twin)].concat()
    };
    let batch = |run| Batch {
        entries: entries(run),
        ..records(std::slice::from_ref(&breaker))
    };
    let mut kept = place.open();
    kept.publish(&batch(1)).unwrap();
    kept.publish(&batch(1)).unwrap();
    kept.publish(&batch(2)).unwrap();
    assert_eq!(place.history(), [entries(1), entries(2)].concat());
    let first = &place.history()[1];
    assert_eq!(
        (
            first.to.as_str(),
            first.cause.as_str(),
            first.until_ms.is_some()
        ),
        ("open", "consecutive", true)
    );
}

fn keeps_a_bounded_history(place: &impl Place) {
    let breaker = broken(ScopeName::model("p", "m"));
    let change = breaker.history(0).pop().unwrap();
    let mut entry = Entry::of(breaker.name(), &change, 1, &now());
    let mut kept = place.open();
    for thousand in 0..11 {
        let entries = (0..1_000).map(|number| {
            entry.number = thousand * 1_000 + number;
            entry.clone()
        });
        let batch = Batch {
            entries: entries.collect(),
            ..Batch::default()
        };
        kept.publish(&batch).unwrap();
    }
    let kept = place.history();
    assert_eq!(kept.last().unwrap().number, 10_999);
    assert!(kept.len() <= 10_000, "{}", kept.len());
}

fn holds_numbers_beyond_all_measure(place: &impl Place) {
    let breaker = Breaker::new(ScopeName::provider("far"), Policy::default());
    breaker.force_open(Some(Tick::MAX), now().tick);
    let far = record(&breaker);
    place
        .open()
        .publish(&records(std::slice::from_ref(&breaker)))
        .unwrap();
    let found = place.open().load().unwrap();
    let until = found[0].saved(&now()).until.unwrap();
    assert_eq!(found[0].state, far.state);
    let century = Duration::from_secs(100 * 365 * 86_400);
    assert!(until > now().tick + century);
}

#[test]
fn memory_gives_back_what_was_published_last() {
    gives_back_what_was_published_last(&Memory::default());
}

#[test]
fn sqlite_gives_back_what_was_published_last() {
    gives_back_what_was_published_last(&File::new());
}

#[test]
fn memory_forgets_what_it_is_told_to() {
    forgets_what_it_is_told_to(&Memory::default());
}

#[test]
fn sqlite_forgets_what_it_is_told_to() {
    forgets_what_it_is_told_to(&File::new());
}

#[test]
fn memory_keeps_history_once_and_in_order() {
    keeps_history_once_and_in_order(&Memory::default());
}

#[test]
fn sqlite_keeps_history_once_and_in_order() {
    keeps_history_once_and_in_order(&File::new());
}

#[test]
fn sqlite_keeps_a_bounded_history() {
    keeps_a_bounded_history(&File::new());
}

#[test]
fn memory_holds_numbers_beyond_all_measure() {
    holds_numbers_beyond_all_measure(&Memory::default());
}

#[test]
fn sqlite_holds_numbers_beyond_all_measure() {
    holds_numbers_beyond_all_measure(&File::new());
}
