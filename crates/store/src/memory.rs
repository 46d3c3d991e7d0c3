//! `Memory`: a store that lasts as long as its process, for tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuseline_core::ScopeName;

use crate::entry::Entry;
use crate::error::StoreError;
use crate::record::Record;
use crate::store::{Batch, Store};

/// Entries kept; the oldest leave first.
const MAX_ENTRIES: usize = 10_000;

/// Records in memory. Clones share them: one may play the process after the other.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    records: BTreeMap<ScopeName, Record>,
    entries: VecDeque<Entry>,
}

impl Memory {
    /// The history, oldest first; the last 10,000 are kept.
    pub fn history(&self) -> Vec<Entry> {
        self.lock().entries.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        Ok(self.lock().records.values().cloned().collect())
    }

    fn publish(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut inner = self.lock();
        for name in &batch.forgotten {
            inner.records.remove(name);
        }
        for record in &batch.records {
            inner.records.insert(record.name.clone(), record.clone());
        }
        for entry in &batch.entries {
            let key = |entry: &Entry| {
                (
                    entry.run,
                    entry.scope.clone(),
                    entry.breaker.clone(),
                    entry.number,
                )
            };
            if !inner.entries.iter().any(|kept| key(kept) == key(entry)) {
                inner.entries.push_back(entry.clone());
            }
        }
        let over = inner.entries.len().saturating_sub(MAX_ENTRIES);
        inner.entries.drain(..over);
        Ok(())
    }
}
