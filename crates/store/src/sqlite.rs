//! `Sqlite`: state in one SQLite file, written by one process and readable by any, while it runs too.
//!
//! The file is in WAL mode: readers and the writer do not wait for one another, and a batch that was committed is there
//! after the process is killed. It carries an application id and a schema version; migrations stand in `sqlite/` and run
//! in one transaction each. A lock beside the file (`.lock`, the system's, so that it goes with its process) keeps a
//! second process out. A damaged file is moved aside, under the same name with `.damaged`; one that is not ours is left
//! alone.

mod database;
mod file;
mod queue;
mod rows;
mod schema;

use std::path::Path;

use rusqlite::Connection;

use crate::entry::Entry;
use crate::error::StoreError;
use crate::record::Record;
use crate::store::{Batch, Store};
use database::Database;
pub use queue::SqliteQueue;

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
    database: Database,
}

impl Sqlite {
    /// Opens the file, or makes it. A damaged one is moved aside and reported in the log.
    ///
    /// # Errors
    /// It belongs to something else, to a newer version or to another process, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::open(path, &schema::STATE)?;
        Ok(Self { database })
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
        let connection = database::connect_to_read(path, &schema::STATE)?;
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
}

impl Store for Sqlite {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        self.database.run(|connection| rows::records(connection))
    }

    fn publish(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.database.must_be_there()?;
        self.database
            .run(|connection| Self::write(connection, batch))
    }
}

#[cfg(test)]
mod tests;
