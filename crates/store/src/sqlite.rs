//! `Sqlite`: state in one SQLite file, written by one process and readable by any, while it runs too.
//!
//! The file is in WAL mode: readers and the writer do not wait for one another, and a batch that was committed is there
//! after the process is killed. It carries an application id and a schema version; migrations stand in `sqlite/` and run
//! in one transaction each. A lock beside the file (`.lock`, the system's, so that it goes with its process) keeps a
//! second process out. A damaged file is moved aside, under the same name with `.damaged`; one that is not ours is left
//! alone.

mod file;
mod rows;
mod schema;

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::record::Record;
use crate::store::{Batch, Store};
use file::Found;

/// Entries of the history kept; the oldest leave first.
const MAX_ENTRIES: u32 = 10_000;

/// Records and history in a file.
///
/// ```no_run
/// use std::path::Path;
///
/// use fuseline_store::{Sqlite, Store as _};
///
/// let mut kept = Sqlite::open(Path::new("fuseline.db"))?;
/// for record in kept.load()? {
///     println!("{} was {}", record.name, record.state);
/// }
/// # Ok::<(), fuseline_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    /// None after damage, until a new file could be begun.
    connection: Option<Connection>,
    /// Held for as long as this lives.
    _lock: File,
}

impl Sqlite {
    /// Opens the file, or makes it. A damaged one is moved aside and reported in the log.
    ///
    /// # Errors
    /// It belongs to something else, to a newer version or to another process, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = file::lock(path)?;
        let connection = match connect(path) {
            Err(StoreError::Damaged { .. }) => {
                let moved_to = file::set_aside(path)?;
                tracing::warn!(
                    state = %path.display(),
                    moved_to = %moved_to.display(),
                    "the state file is damaged and was moved aside; a new one is begun"
                );
                connect(path)?
            }
            opened => opened?,
        };
        Ok(Self {
            path: path.to_owned(),
            connection: Some(connection),
            _lock: lock,
        })
    }

    /// The last `most` entries of a file's history, oldest first, of one breaker or of all. Reads only, while a process
    /// writes too.
    ///
    /// # Errors
    /// There is no such file, or it is not ours, or cannot be read.
    pub fn history(
        path: &Path,
        breaker: Option<&str>,
        most: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let connection = connect_to_read(path)?;
        let told = |error| file::told(path, error);
        if schema::version(&connection).map_err(told)? < schema::HISTORY_SINCE {
            return Ok(Vec::new());
        }
        rows::entries(&connection, breaker, most).map_err(told)
    }

    fn write(connection: &mut Connection, batch: &Batch) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        rows::forget(&transaction, &batch.forgotten)?;
        rows::put_records(&transaction, &batch.records)?;
        rows::put_entries(&transaction, &batch.entries, MAX_ENTRIES)?;
        transaction.commit()
    }

    /// The connection, or a new one to a new file where damage has taken the last.
    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.path)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// What went wrong. A damaged file is moved aside.
    fn failed(&mut self, error: rusqlite::Error) -> StoreError {
        match file::told(&self.path, error) {
            StoreError::Damaged { path, .. } => {
                self.connection = None;
                let moved_to = file::set_aside(&path).ok();
                StoreError::Damaged { path, moved_to }
            }
            error => error,
        }
    }
}

impl Store for Sqlite {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        let loaded = rows::records(self.connection()?);
        loaded.map_err(|error| self.failed(error))
    }

    fn publish(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if self.connection.is_some() && !self.path.exists() {
            self.connection = None;
            return Err(StoreError::Gone(self.path.clone()));
        }
        let written = Self::write(self.connection()?, batch);
        written.map_err(|error| self.failed(error))
    }
}

/// Opens a file for writing: one of ours, or a new one.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let told = |error| file::told(path, error);
    match file::look(path)? {
        Found::NotOurs => return Err(StoreError::Foreign(path.to_owned())),
        Found::Garbage => {
            return Err(StoreError::Damaged {
                path: path.to_owned(),
                moved_to: None,
            });
        }
        Found::Database | Found::Nothing => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(told)?;
    connection.busy_timeout(file::BUSY).map_err(told)?;
    if connection.is_readonly("main").map_err(told)? {
        return Err(StoreError::ReadOnly(path.to_owned()));
    }
    schema::prepare(&mut connection, path)?;
    Ok(connection)
}

/// Opens a file of ours for reading.
fn connect_to_read(path: &Path) -> Result<Connection, StoreError> {
    match file::look(path)? {
        Found::Nothing => return Err(StoreError::Missing(path.to_owned())),
        Found::NotOurs | Found::Garbage => return Err(StoreError::Foreign(path.to_owned())),
        Found::Database => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags)
        .and_then(|connection| schema::application(&connection).map(|_| connection));
    // Without leave to write beside it, a file that nobody else has open can still be read as it lies.
    let connection = opened.or_else(|_| {
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(file::immutable_uri(path), flags)
    });
    let connection = connection.map_err(|error| file::told(path, error))?;
    connection
        .busy_timeout(file::BUSY)
        .map_err(|error| file::told(path, error))?;
    schema::check(&connection, path)?;
    Ok(connection)
}

#[cfg(test)]
mod tests;
