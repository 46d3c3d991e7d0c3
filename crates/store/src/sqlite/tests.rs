//! The file: damage, strangers, a second process, no leave, no room, older and newer schemas.

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use fuseline_core::{Breaker, Policy, ScopeName, State, Tick};
use tempfile::TempDir;

use super::*;
use crate::moment::Moment;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.file("state.db")
    }

    fn open(&self) -> Result<Sqlite, StoreError> {
        Sqlite::open(&self.state())
    }

    fn error(&self) -> String {
        let folder = format!("{}/", self.0.path().display());
        self.open().unwrap_err().to_string().replace(&folder, "")
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn now() -> Moment {
    Moment {
        tick: Tick::from_millis(1_000),
        wall_ms: 1_800_000_000_000,
        boot: None,
    }
}

/// Records of so many forced breakers, with their entries.
fn batch(count: usize) -> Batch {
    let mut batch = Batch::default();
    for number in 0..count {
        let breaker = Breaker::new(
            ScopeName::model("p", &format!("m{number}")),
            Policy::default(),
        );
        breaker.force_open(None, now().tick);
        let saved = breaker.export(now().tick);
        batch.records.push(Record::of(&saved, &now()));
        for change in breaker.history(0) {
            batch
                .entries
                .push(Entry::of(breaker.name(), &change, 1, &now()));
        }
    }
    batch
}

/// A file with so many records, closed.
fn filled(count: usize) -> Folder {
    let folder = Folder::new();
    folder.open().unwrap().publish(&batch(count)).unwrap();
    folder
}

#[test]
fn a_file_that_is_damaged_anywhere_is_moved_aside_and_a_new_one_begun() {
    let whole = fs::read(filled(300).state()).unwrap();
    let mut damaged = vec![whole[..whole.len() / 2].to_vec(), vec![0; 5_000], {
        let mut bytes = whole.clone();
        bytes[..16].fill(0xa5);
        bytes
    }];
    for page in 1..whole.len() / 4_096 {
        let mut bytes = whole.clone();
        bytes[page * 4_096..page * 4_096 + 2_048].fill(0x5a);
        damaged.push(bytes);
    }
    for (at, bytes) in damaged.into_iter().enumerate() {
        let folder = Folder::new();
        fs::write(folder.state(), &bytes).unwrap();
        let mut kept = folder.open().unwrap();
        assert_eq!(kept.load().unwrap(), [], "{at}");
        assert_eq!(
            fs::read(folder.file("state.db.damaged")).unwrap(),
            bytes,
            "{at}"
        );
        kept.publish(&batch(2)).unwrap();
        assert_eq!(kept.load().unwrap().len(), 2);
    }
}

#[test]
fn damage_that_shows_while_it_runs_is_moved_aside_and_everything_asked_for() {
    let folder = filled(300);
    let mut kept = folder.open().unwrap();
    let mut file = OpenOptions::new().write(true).open(folder.state()).unwrap();
    let size = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(4_096)).unwrap();
    file.write_all(&vec![0x5a; usize::try_from(size).unwrap() - 4_096])
        .unwrap();
    let connection = kept.database.connection.as_ref().unwrap();
    connection.execute_batch("PRAGMA shrink_memory").unwrap();
    let error = kept.publish(&batch(300)).unwrap_err();
    assert!(
        matches!(
            &error,
            StoreError::Damaged {
                moved_to: Some(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("state.db.damaged; a new one is begun"),
        "{error}"
    );
    kept.publish(&batch(3)).unwrap();
    drop(kept);
    assert_eq!(folder.open().unwrap().load().unwrap().len(), 3);
}

#[test]
fn a_file_that_is_taken_away_while_it_runs_is_begun_anew() {
    let folder = filled(3);
    let mut kept = folder.open().unwrap();
    kept.publish(&batch(4)).unwrap();
    fs::remove_file(folder.state()).unwrap();
    assert!(matches!(kept.publish(&batch(1)), Err(StoreError::Gone(_))));
    kept.publish(&batch(2)).unwrap();
    drop(kept);
    assert_eq!(folder.open().unwrap().load().unwrap().len(), 2);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let folder = Folder::new();
    let text = "listen = \"127.0.0.1:8080\" # grüße\n";
    fs::write(folder.state(), text).unwrap();
    assert_eq!(
        folder.error(),
        "state.db is no state of Fuseline; set `state` to another file, or move this one away"
    );
    assert_eq!(fs::read_to_string(folder.state()).unwrap(), text);

    let folder = Folder::new();
    let other = Connection::open(folder.state()).unwrap();
    other.execute_batch("CREATE TABLE letters (text)").unwrap();
    drop(other);
    let before = fs::read(folder.state()).unwrap();
    assert!(folder.error().contains("is no state of Fuseline"));
    assert!(matches!(
        Sqlite::history(&folder.state(), None, 1),
        Err(StoreError::Foreign(_))
    ));
    assert_eq!(fs::read(folder.state()).unwrap(), before);
    assert_eq!(folder.names(), ["state.db", "state.db.lock"]);
}

#[test]
fn an_empty_file_is_a_new_one() {
    let folder = Folder::new();
    fs::write(folder.state(), "").unwrap();
    folder.open().unwrap().publish(&batch(1)).unwrap();
    assert_eq!(folder.open().unwrap().load().unwrap().len(), 1);
}

#[test]
fn a_second_process_is_told_and_the_first_goes_on() {
    let folder = filled(1);
    let mut first = folder.open().unwrap();
    assert_eq!(
        folder.error(),
        "state.db is in use by another process; give each its own `state`"
    );
    first.publish(&batch(2)).unwrap();
    drop(first);
    assert_eq!(folder.open().unwrap().load().unwrap().len(), 2);
}

#[test]
fn history_is_read_while_a_process_writes_and_after_it() {
    let folder = Folder::new();
    assert!(matches!(
        Sqlite::history(&folder.state(), None, 9),
        Err(StoreError::Missing(_))
    ));
    let mut kept = folder.open().unwrap();
    kept.publish(&batch(3)).unwrap();
    let read = |breaker, most| {
        let entries = Sqlite::history(&folder.state(), breaker, most).unwrap();
        entries
            .into_iter()
            .map(|entry| entry.breaker)
            .collect::<Vec<_>>()
    };
    assert_eq!(read(None, 9), ["p/m0", "p/m1", "p/m2"]);
    assert_eq!(read(None, 2), ["p/m1", "p/m2"], "the last");
    assert_eq!(read(Some("p/m1"), 9), ["p/m1"]);
    kept.publish(&batch(4)).unwrap();
    assert_eq!(read(None, 9).len(), 4);
    drop(kept);
    assert_eq!(read(None, 9).len(), 4);
}

#[test]
fn who_may_not_write_is_told() {
    let folder = Folder::new();
    for (path, expected) in [
        (
            folder.file("no/such/folder/state.db"),
            "cannot be used: No such file",
        ),
        (folder.0.path().to_owned(), "cannot be used: Is a directory"),
        (PathBuf::from("/proc/state.db"), "state.db cannot be "),
    ] {
        let error = Sqlite::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_file_that_became_read_only_is_told_and_nothing_is_lost() {
    let folder = filled(1);
    let mut kept = folder.open().unwrap();
    let pragma = |kept: &Sqlite, on| {
        let connection = kept.database.connection.as_ref().unwrap();
        connection.pragma_update(None, "query_only", on).unwrap();
    };
    pragma(&kept, true);
    let error = kept.publish(&batch(2)).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly(_)), "{error}");
    pragma(&kept, false);
    kept.publish(&batch(2)).unwrap();
    assert_eq!(kept.load().unwrap().len(), 2);
}

#[test]
fn a_file_that_somebody_holds_is_told_and_written_later() {
    let folder = filled(1);
    let mut kept = folder.open().unwrap();
    let connection = kept.database.connection.as_ref().unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(folder.state()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = kept.publish(&batch(2)).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    kept.publish(&batch(2)).unwrap();
    assert_eq!(kept.load().unwrap().len(), 2);
}

#[test]
fn a_full_disk_is_told_and_nothing_of_the_batch_is_there() {
    let folder = filled(1);
    let mut kept = folder.open().unwrap();
    let pages = |kept: &Sqlite, most: u32| {
        let connection = kept.database.connection.as_ref().unwrap();
        let set = connection.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()));
        set.unwrap();
    };
    pages(&kept, 20);
    let error = kept.publish(&batch(2_000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: the disk is full; make room", folder.state().display())
    );
    assert_eq!(kept.load().unwrap().len(), 1);
    pages(&kept, 1_000_000);
    kept.publish(&batch(2_000)).unwrap();
    assert_eq!(kept.load().unwrap().len(), 2_000);
}

#[test]
fn an_older_schema_is_migrated_with_what_it_holds() {
    let folder = Folder::new();
    let mut old = Connection::open(folder.state()).unwrap();
    schema::migrate(&mut old, &schema::STATE, 0, 1).unwrap();
    let transaction = old.transaction().unwrap();
    rows::put_records(&transaction, &batch(1).records).unwrap();
    transaction.commit().unwrap();
    drop(old);
    assert_eq!(Sqlite::history(&folder.state(), None, 9).unwrap(), []);
    let mut kept = folder.open().unwrap();
    assert_eq!(kept.load().unwrap(), batch(1).records);
    kept.publish(&batch(2)).unwrap();
    assert_eq!(Sqlite::history(&folder.state(), None, 9).unwrap().len(), 2);
}

#[test]
fn a_newer_schema_is_told_and_left_alone() {
    let folder = filled(1);
    let newer = Connection::open(folder.state()).unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    assert_eq!(
        folder.error(),
        "state.db has schema version 7, and this program knows 2 at most; run the newer one, or set `state` to another file"
    );
    assert!(!folder.names().contains(&"state.db.damaged".to_owned()));
}

#[test]
fn report_94_rows_that_cannot_be_read_are_left_out_and_written_afresh() {
    let folder = filled(3);
    let odd = Connection::open(folder.state()).unwrap();
    odd.execute_batch(
        "UPDATE breakers SET counts = 'garbage' WHERE part = 'm0';
         UPDATE breakers SET state = 'of_the_future' WHERE part = 'm1';
         INSERT INTO breakers SELECT 'galaxy', provider, part, state, since_ms, end_ms, end_boot_ms, full_ms, taken_ms,
            boot_id, boot_ms, counts FROM breakers WHERE part = 'm2';",
    )
    .unwrap();
    drop(odd);
    let mut kept = folder.open().unwrap();
    let found = kept.load().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, ScopeName::model("p", "m2"));
    kept.publish(&batch(3)).unwrap();
    let states = kept.load().unwrap();
    assert_eq!(states.len(), 3);
    assert!(
        states
            .iter()
            .all(|record| record.state == State::ForcedOpen)
    );
}
