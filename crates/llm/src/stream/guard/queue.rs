//! Bytes that wait: for the rest of their event, or for the stream's commitment.

use std::collections::VecDeque;
use std::fmt;

use bytes::{Bytes, BytesMut};

/// Less than this is copied together while it waits: a small slice costs more to keep, and keeps its chunk from being
/// freed.
const SMALL: usize = 1024;

/// Slices of chunks in their order.
#[derive(Default)]
pub(super) struct Queue {
    slices: VecDeque<Bytes>,
    /// What comes after them.
    small: BytesMut,
    length: usize,
}

impl Queue {
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Adds what will go on at once.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.length += bytes.len();
        self.seal();
        self.slices.push_back(bytes);
    }

    /// Adds what may wait for long.
    pub(super) fn keep(&mut self, bytes: Bytes) {
        if bytes.len() >= SMALL {
            return self.push(bytes);
        }
        self.length += bytes.len();
        self.small.extend_from_slice(&bytes);
    }

    /// Adds all that `other` has.
    pub(super) fn append(&mut self, other: &mut Self) {
        if other.length == 0 {
            return;
        }
        self.seal();
        other.seal();
        self.slices.append(&mut other.slices);
        self.length += std::mem::take(&mut other.length);
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        if self.slices.is_empty() {
            self.seal();
        }
        let bytes = self.slices.pop_front()?;
        self.length -= bytes.len();
        Some(bytes)
    }

    pub(super) fn clear(&mut self) {
        if self.length > 0 {
            *self = Self::default();
        }
    }

    pub(super) fn last(&self) -> Option<u8> {
        let slice = self.slices.back().map(|slice| &slice[..]);
        self.small.last().or_else(|| slice?.last()).copied()
    }

    fn seal(&mut self) {
        if !self.small.is_empty() {
            self.slices.push_back(self.small.split().freeze());
        }
    }
}

// What the model wrote stays out.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("bytes", &self.length)
            .finish_non_exhaustive()
    }
}
