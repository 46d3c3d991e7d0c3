//! `Store`: where state is kept, and what every place for it promises.

use core::fmt;

use fuseline_core::ScopeName;

use crate::entry::Entry;
use crate::error::StoreError;
use crate::record::Record;

/// A place that keeps records of breakers.
///
/// What every store promises, and one suite of tests holds all of them to:
///
/// - **All or nothing.** When [`publish`](Self::publish) returns `Ok`, the whole batch is there, also for a process
///   that comes after this one was killed. When it returns an error, nothing of it is.
/// - **The latest counts.** [`load`](Self::load) gives back, for each name, the record published last, unless the name
///   was forgotten since.
/// - **Again is once.** Publishing a batch a second time changes nothing.
/// - **No panic.** What cannot be read is an error, or left out and logged.
///
/// A store may block: it is called from the pump's thread, and before anybody is served. It belongs to one process;
/// it stands by itself against a second one.
pub trait Store: fmt::Debug + Send {
    /// All records, in the order of their names.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&mut self) -> Result<Vec<Record>, StoreError>;

    /// Keeps all of this.
    ///
    /// # Errors
    /// Nothing has been kept: come again. After [`StoreError::Damaged`] and [`StoreError::Gone`] nothing of what was kept
    /// before is there any more, so come with everything.
    fn publish(&mut self, batch: &Batch) -> Result<(), StoreError>;
}

/// What is kept at once.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that stores read")]
pub struct Batch {
    /// Each replaces what was kept under its name.
    pub records: Vec<Record>,
    /// Names whose records go.
    pub forgotten: Vec<ScopeName>,
    /// What happened, oldest first for each breaker.
    pub entries: Vec<Entry>,
}

impl Batch {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.forgotten.is_empty() && self.entries.is_empty()
    }
}
