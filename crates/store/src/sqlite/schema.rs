//! The schema: its version, and the migrations that lead to it.

use std::path::Path;

use rusqlite::Connection;

use super::file::told;
use crate::error::StoreError;

/// Marks a file as ours: "FUSE".
const APPLICATION: u32 = 0x4655_5345;

/// Each brings the schema to the version of its place, counted from 1. What has been released never changes: a new
/// version is a new one.
const MIGRATIONS: [&str; 2] = [
    include_str!("0001-breakers.sql"),
    include_str!("0002-history.sql"),
];

/// The version from which on there is a history.
pub(super) const HISTORY_SINCE: u32 = 2;

/// Makes a file ready that is ours or new: checks it whole, and migrates it.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let told = |error| told(path, error);
    let found = check(connection, path)?;
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(told)?;
    if verdict != "ok" {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            moved_to: None,
        });
    }
    // Where the file system cannot do it, the mode stays as it is: then readers and the writer wait for one another.
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(told)?;
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(told)?;
    migrate(connection, found, MIGRATIONS.len()).map_err(told)
}

/// The version of a file that is ours or empty.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let told = |error| told(path, error);
    let application = application(connection).map_err(told)?;
    let is_empty = || {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
            row.get(0)
        })
    };
    if application != APPLICATION && !(application == 0 && is_empty().map_err(told)?) {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    let (found, known) = (version(connection).map_err(told)?, MIGRATIONS.len() as u32);
    if found > known {
        let path = path.to_owned();
        return Err(StoreError::Newer { path, found, known });
    }
    Ok(found)
}

/// Whose file it is.
pub(super) fn application(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// The version of its schema; 0 where there is none.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the schema from one version to another, each step in a transaction.
pub(super) fn migrate(connection: &mut Connection, from: u32, to: usize) -> rusqlite::Result<()> {
    let steps = MIGRATIONS.iter().zip(1_u32..).take(to);
    for (statements, version) in steps.filter(|(_, version)| *version > from) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(statements)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
