//! `StoreError`: why state could not be kept or read, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file belongs to something else. It has not been touched.
    #[error("{} is no state of Fuseline; set `state` to another file, or move this one away", .0.display())]
    Foreign(PathBuf),
    /// The file was written by a newer version. It has not been touched.
    #[error("{} has schema version {found}, and this program knows {known} at most; run the newer one, or set `state` to another file", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that is known.
        known: u32,
    },
    /// Another process keeps its state there.
    #[error("{} is in use by another process; give each its own `state`", .0.display())]
    InUse(PathBuf),
    /// It cannot be written to.
    #[error("{} cannot be written to; let this user write the file and its folder, or set `state` to another file", .0.display())]
    ReadOnly(PathBuf),
    /// There is no such file.
    #[error("{} does not exist; a gateway with this `state` makes it", .0.display())]
    Missing(PathBuf),
    /// The file is damaged; it has been moved aside where `moved_to` says so.
    #[error("{} is damaged{}", path.display(), aside(moved_to.as_ref()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it lies now.
        moved_to: Option<PathBuf>,
    },
    /// The file was taken away while it was in use.
    #[error("{} was taken away; a new one is begun", .0.display())]
    Gone(PathBuf),
    /// There is no room.
    #[error("{}: the disk is full; make room", .0.display())]
    Full(PathBuf),
    /// The system refused.
    #[error("{} cannot be used: {cause}; set `state` to another file", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The database refused.
    #[error("{} cannot be used: {cause}; set `state` to another file", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        cause: Box<dyn core::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether what was kept before is there no more, so that everything must be kept anew.
    pub(crate) const fn is_loss(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Gone(_))
    }
}

fn aside(moved_to: Option<&PathBuf>) -> String {
    moved_to.map_or_else(
        || "; move it away".to_owned(),
        |to| format!(" and now lies at {}; a new one is begun", to.display()),
    )
}
