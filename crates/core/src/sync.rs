//! Atomics, locks and thread slots: std's, or loom's when the models run. Nothing else in the crate names either.
//!
//! A *slot* is a small number that belongs to one live thread and goes back when the thread ends. A breaker's shard of
//! that number is then written by one thread only, so no add is lost without a read-modify-write loop.

pub(crate) use imp::*;

/// Slots, and so shards a breaker, at most; threads beyond them use the lock.
#[cfg(not(fuseline_loom))]
pub(crate) const MAX_SLOTS: usize = 64;
#[cfg(fuseline_loom)]
pub(crate) const MAX_SLOTS: usize = 2;

#[cfg(not(fuseline_loom))]
mod imp {
    use core::cell::Cell;
    use std::sync::PoisonError;
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{
        Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    };

    use super::MAX_SLOTS;

    /// Taken slots, one bit each.
    static TAKEN: Mutex<u64> = Mutex::new(0);

    const UNASKED: usize = usize::MAX;
    const NONE: usize = usize::MAX - 1;

    thread_local! {
        // Without a destructor, so that it can still be read while the thread's other locals are dropped.
        static SLOT: Cell<usize> = const { Cell::new(UNASKED) };
        static LEASE: Lease = const { Lease };
    }

    /// Hands the thread's slot back when the thread ends.
    struct Lease;

    impl Drop for Lease {
        fn drop(&mut self) {
            let slot = SLOT.replace(NONE);
            if slot < MAX_SLOTS {
                *lock(&TAKEN) &= !(1 << slot);
            }
        }
    }

    /// This thread's slot, if there is one.
    #[inline]
    pub(crate) fn slot() -> Option<usize> {
        match SLOT.get() {
            UNASKED => take_slot(),
            slot if slot < MAX_SLOTS => Some(slot),
            _ => None,
        }
    }

    #[cold]
    fn take_slot() -> Option<usize> {
        SLOT.set(NONE);
        // Registers the hand-back first: a slot without it would be lost.
        LEASE.try_with(|_| ()).ok()?;
        let mut taken = lock(&TAKEN);
        let free = taken.trailing_ones() as usize;
        if free >= MAX_SLOTS {
            return None;
        }
        *taken |= 1 << free;
        SLOT.set(free);
        Some(free)
    }

    /// Stores a value that a later [`look`] of this thread does not overtake. A swap is store and barrier in one, at half
    /// the price of a fence. Who stores elsewhere, fences sequentially consistent and then reads the cell either reads
    /// this value, or his store is seen by the look: both orders cannot be missed at once.
    #[inline]
    pub(crate) fn announce(cell: &AtomicU64, value: u64) {
        cell.swap(value, Ordering::SeqCst);
    }

    /// Looks at a word after [`announce`].
    #[inline]
    pub(crate) fn look(word: &AtomicU64) -> u64 {
        word.load(Ordering::SeqCst)
    }

    /// Locks. Nothing panics while it holds one of our locks, so a poisoned one is whole.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks for reading; poisoned as [`lock`] says.
    pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks for writing; poisoned as [`lock`] says.
    pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(fuseline_loom)]
mod imp {
    use core::cell::Cell;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    loom::thread_local! {
        static SLOT: Cell<Option<usize>> = Cell::new(None);
    }

    /// The slot that the model gave this thread.
    pub(crate) fn slot() -> Option<usize> {
        SLOT.with(Cell::get)
    }

    /// Gives this thread a slot; a model gives each of its threads another.
    #[cfg(test)]
    pub(crate) fn set_slot(slot: usize) {
        SLOT.with(|own| own.set(Some(slot)));
    }

    /// loom knows the order of sequentially consistent fences, not of accesses: the same barrier, said as it can hear it.
    pub(crate) fn announce(cell: &AtomicU64, value: u64) {
        cell.store(value, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn look(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap()
    }

    pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap()
    }

    /// Filled at once: a lazily made atomic would have no place in the model's order of events.
    pub(crate) struct OnceLock<T>(T);

    impl<T: Default> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self(T::default())
        }

        pub(crate) fn get(&self) -> Option<&T> {
            Some(&self.0)
        }

        pub(crate) fn get_or_init(&self, _: impl FnOnce() -> T) -> &T {
            &self.0
        }
    }
}
