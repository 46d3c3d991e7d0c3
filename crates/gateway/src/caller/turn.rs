//! `Turn`: whether what is sent to a caller is the answer to a request that was read.

use std::sync::atomic::{AtomicU8, Ordering};

/// Nothing is, but what the HTTP library says of what it could not read.
const NOBODYS: u8 = 0;
const OURS: u8 = 1;
/// The answer's last byte was taken over for sending, and may still wait.
const LEAVING: u8 = 2;

/// Whose turn it is to send.
#[derive(Default)]
pub(super) struct Turn(AtomicU8);

impl Turn {
    pub(super) fn begin(&self) {
        self.0.store(OURS, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.store(LEAVING, Ordering::Relaxed);
    }

    /// Nothing waits to be sent.
    pub(super) fn flushed(&self) {
        // Its own task alone moves it.
        if self.0.load(Ordering::Relaxed) == LEAVING {
            self.0.store(NOBODYS, Ordering::Relaxed);
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NOBODYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_ours_until_its_last_byte_is_on_its_way() {
        let turn = Turn::default();
        assert!(!turn.is_ours());
        turn.begin();
        turn.flushed();
        assert!(turn.is_ours(), "more of it may come");
        turn.end();
        assert!(turn.is_ours(), "the last of it may wait");
        turn.flushed();
        assert!(!turn.is_ours());
    }
}
