//! `Database`: one SQLite file of ours, held by this process alone, and begun anew where it is damaged.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::file::{self, Found};
use super::schema::{self, Schema};
use crate::error::StoreError;

/// A file that this process writes.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    schema: &'static Schema,
    /// None after damage, until a new file could be begun.
    pub(super) connection: Option<Connection>,
    /// Held for as long as this lives.
    _lock: File,
}

impl Database {
    /// Opens the file, or makes it. A damaged one is moved aside and reported in the log.
    pub(super) fn open(path: &Path, schema: &'static Schema) -> Result<Self, StoreError> {
        let lock = file::lock(path)?;
        let connection = match connect(path, schema) {
            Err(StoreError::Damaged { .. }) => {
                let moved_to = file::set_aside(path)?;
                tracing::warn!(
                    state = %path.display(),
                    moved_to = %moved_to.display(),
                    "the {} file is damaged and was moved aside; a new one is begun",
                    schema.what
                );
                connect(path, schema)?
            }
            opened => opened?,
        };
        Ok(Self {
            path: path.to_owned(),
            schema,
            connection: Some(connection),
            _lock: lock,
        })
    }

    /// Asks the file for something. If that shows it to be damaged, it is moved aside.
    pub(super) fn run<T>(
        &mut self,
        ask: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let told = ask(self.connection()?);
        told.map_err(|error| self.failed(error))
    }

    /// An error where the file was taken away; the next question begins a new one.
    pub(super) fn must_be_there(&mut self) -> Result<(), StoreError> {
        if self.connection.is_some() && !self.path.exists() {
            self.connection = None;
            return Err(StoreError::Gone(self.path.clone()));
        }
        Ok(())
    }

    /// The connection, or a new one to a new file where damage has taken the last.
    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.path, self.schema)?,
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

/// Opens a file for writing: one of ours, or a new one.
fn connect(path: &Path, schema: &Schema) -> Result<Connection, StoreError> {
    let told = |error| file::told(path, error);
    match file::look(path)? {
        Found::NotOurs => return Err(StoreError::Foreign(path.to_owned())),
        Found::Garbage => {
            return Err(StoreError::Damaged {
                path: path.to_owned(),
                moved_to: None,
            });
        }
        Found::Nothing if schema.is_private => file::make_private(path)?,
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
    schema::prepare(&mut connection, schema, path)?;
    Ok(connection)
}

/// Opens a file of ours for reading.
pub(super) fn connect_to_read(path: &Path, schema: &Schema) -> Result<Connection, StoreError> {
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
    schema::check(&connection, schema, path)?;
    Ok(connection)
}
