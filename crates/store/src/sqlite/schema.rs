//! The schema: its version, and the migrations that lead to it.

use std::path::Path;

use rusqlite::Connection;

use super::file::told;
use crate::error::StoreError;

/// What one kind of file holds.
#[derive(Debug)]
pub(super) struct Schema {
    /// What such a file is called in messages.
    pub(super) what: &'static str,
    /// Marks a file as ours, and as of this kind.
    application: u32,
    /// Each brings the schema to the version of its place, counted from 1. What has been released never changes: a new
    /// version is a new one.
    migrations: &'static [&'static str],
    /// What else its connections are told.
    pragmas: &'static [(&'static str, &'static str)],
    /// Nobody but its owner may read it.
    pub(super) is_private: bool,
}

/// The states of breakers, and their history: "FUSE".
pub(super) const STATE: Schema = Schema {
    what: "state",
    application: 0x4655_5345,
    migrations: &[
        include_str!("0001-breakers.sql"),
        include_str!("0002-history.sql"),
    ],
    pragmas: &[("synchronous", "NORMAL")],
    is_private: false,
};

/// Calls that wait, and their results: "FUSQ". What was committed survives a loss of power, and what was deleted is
/// overwritten.
pub(super) const QUEUE: Schema = Schema {
    what: "queue",
    application: 0x4655_5351,
    migrations: &[include_str!("queue-0001.sql")],
    pragmas: &[("synchronous", "FULL"), ("secure_delete", "ON")],
    is_private: true,
};

/// The version from which on there is a history.
pub(super) const HISTORY_SINCE: u32 = 2;

/// Makes a file ready that is ours or new: checks it whole, and migrates it.
pub(super) fn prepare(
    connection: &mut Connection,
    schema: &Schema,
    path: &Path,
) -> Result<(), StoreError> {
    let told = |error| told(path, error);
    let found = check(connection, schema, path)?;
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
    for (name, value) in schema.pragmas {
        connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(no_answer)
            .map_err(told)?;
    }
    migrate(connection, schema, found, schema.migrations.len()).map_err(told)
}

/// Some pragmas say what holds now, and some say nothing.
fn no_answer(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        error => Err(error),
    }
}

/// The version of a file that is ours or empty.
pub(super) fn check(
    connection: &Connection,
    schema: &Schema,
    path: &Path,
) -> Result<u32, StoreError> {
    let told = |error| told(path, error);
    let application = application(connection).map_err(told)?;
    let is_empty = || {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
            row.get(0)
        })
    };
    if application != schema.application && !(application == 0 && is_empty().map_err(told)?) {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    let (found, known) = (
        version(connection).map_err(told)?,
        schema.migrations.len() as u32,
    );
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
pub(super) fn migrate(
    connection: &mut Connection,
    schema: &Schema,
    from: u32,
    to: usize,
) -> rusqlite::Result<()> {
    let steps = schema.migrations.iter().zip(1_u32..).take(to);
    for (statements, version) in steps.filter(|(_, version)| *version > from) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(statements)?;
        transaction.pragma_update(None, "application_id", schema.application)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
