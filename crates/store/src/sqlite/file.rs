//! The file around the database: what lies there, who holds it, moving it aside, what SQLite's errors mean.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// How long a statement waits for somebody who reads or writes the file by hand.
pub(super) const BUSY: Duration = Duration::from_secs(2);

/// How every SQLite file begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No file, or an empty one.
    Nothing,
    /// A SQLite file, whosoever.
    Database,
    /// Somebody's text.
    NotOurs,
    /// Bytes that are neither.
    Garbage,
}

/// Looks at the beginning of a file. A text is taken for something that a mistyped path leads to, never for a damaged
/// state.
pub(super) fn look(path: &Path) -> Result<Found, StoreError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4_096).read_to_end(&mut head));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(cause) => Err(refused(path, cause)),
        Ok(0) => Ok(Found::Nothing),
        Ok(_) if head.starts_with(MAGIC) => Ok(Found::Database),
        Ok(_) if is_text(&head) => Ok(Found::NotOurs),
        Ok(_) => Ok(Found::Garbage),
    }
}

fn is_text(head: &[u8]) -> bool {
    // A letter may be cut by the end of what was read.
    let valid = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    valid && !head.contains(&0)
}

/// Takes the lock that says that this process keeps its state there.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let beside = with_end(path, ".lock");
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&beside);
    let file = opened.map_err(|cause| refused(path, cause))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(TryLockError::Error(cause)) => Err(refused(path, cause)),
    }
}

/// Makes an empty file that nobody but its owner may read; what SQLite lays beside it is as private as it is.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(path).map(drop);
    made.map_err(|cause| refused(path, cause))
}

/// Moves a damaged file aside, with its log of what was written last. One that was moved before is replaced.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let moved_to = with_end(path, ".damaged");
    let told = |cause| refused(path, cause);
    let absent = |result: io::Result<()>| match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    };
    // The log first: without its file it would be taken for that of the new one.
    let log = fs::rename(with_end(path, "-wal"), with_end(&moved_to, "-wal"));
    absent(log).map_err(told)?;
    absent(fs::remove_file(with_end(path, "-shm"))).map_err(told)?;
    absent(fs::rename(path, &moved_to)).map_err(told)?;
    Ok(moved_to)
}

/// A file to be read as it lies, without anything beside it.
pub(super) fn immutable_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(end);
    name.into()
}

fn refused(path: &Path, cause: io::Error) -> StoreError {
    let path = path.to_owned();
    match cause.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(path),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(path),
        _ => StoreError::Io { path, cause },
    }
}

/// What an error of SQLite means for the file.
pub(super) fn told(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged {
            path,
            moved_to: None,
        },
        Some(ErrorCode::DiskFull) => StoreError::Full(path),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly(path)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::InUse(path),
        _ => StoreError::Database {
            path,
            cause: Box::new(error),
        },
    }
}
