//! A driver in virtual time: it feeds a guard, fires its timer when it is due, and gathers what goes to the caller.

use std::time::Duration;

use bytes::Bytes;
use fuseline_core::Tick;
use fuseline_llm::{
    Dialect, Ending, Fault, Framing, StreamEnding, StreamGuard, StreamTimers, Timer,
};

pub(crate) struct Run {
    pub(crate) guard: StreamGuard,
    pub(crate) out: Vec<u8>,
    pub(crate) now: Tick,
    /// The most that was kept at once.
    pub(crate) most_held: usize,
}

impl Run {
    pub(crate) fn new(dialect: Dialect, framing: Framing) -> Self {
        Self::with(dialect, framing, StreamTimers::default(), Duration::ZERO)
    }

    pub(crate) fn with(
        dialect: Dialect,
        framing: Framing,
        timers: StreamTimers,
        hold_back: Duration,
    ) -> Self {
        Self {
            guard: StreamGuard::new(dialect, framing, timers, hold_back, Tick::ZERO),
            out: Vec::new(),
            now: Tick::ZERO,
            most_held: 0,
        }
    }

    /// A chunk comes at this time, unless a limit passes before.
    pub(crate) fn at(&mut self, millis: u64, chunk: impl AsRef<[u8]>) -> &mut Self {
        self.wait(millis);
        self.guard
            .bytes(Bytes::copy_from_slice(chunk.as_ref()), self.now);
        self.check_deadline();
        self.drain();
        self.guard.resumed(self.now);
        self
    }

    /// Time passes; limits pass with it.
    pub(crate) fn wait(&mut self, millis: u64) -> &mut Self {
        let until = Tick::from_millis(millis);
        assert!(until >= self.now, "time does not run backwards");
        while let Some((at, _)) = self.guard.deadline().filter(|(at, _)| *at <= until) {
            let before = Tick::from_millis(at.as_millis().saturating_sub(1));
            self.guard.timeout(before);
            assert!(!self.guard.is_over(), "nothing passes before its time");
            self.now = at;
            self.guard.timeout(at);
            assert!(self.guard.is_over(), "and all at its time");
        }
        if !self.guard.is_over() {
            self.now = until;
        }
        self.drain();
        self
    }

    /// Until a limit passes.
    pub(crate) fn silence(&mut self) -> &mut Self {
        self.wait(u64::MAX)
    }

    pub(crate) fn end(&mut self) -> &mut Self {
        self.guard.end(self.now);
        self.drain();
        self
    }

    pub(crate) fn broke(&mut self) -> &mut Self {
        self.guard.broke(Fault::Reset, self.now);
        self.drain();
        self
    }

    pub(crate) fn left(&mut self, millis: u64) -> &mut Self {
        self.wait(millis);
        self.guard.left(self.now);
        self.drain();
        self
    }

    pub(crate) fn stopped(&mut self) -> &mut Self {
        self.guard.stopped(self.now);
        self.drain();
        self
    }

    pub(crate) fn ending(&self) -> StreamEnding {
        self.guard.ending().expect("an ending")
    }

    pub(crate) fn text(&self) -> String {
        self.out.escape_ascii().to_string()
    }

    pub(crate) fn sees_broken(&self) -> bool {
        matches!(self.ending().for_classifier(), Ending::Broken(_))
    }

    fn drain(&mut self) {
        self.most_held = self.most_held.max(self.guard.held());
        while let Some(bytes) = self.guard.forward() {
            assert!(self.guard.is_committed() && !bytes.is_empty());
            self.out.extend_from_slice(&bytes);
        }
    }

    fn check_deadline(&self) {
        match self.guard.deadline() {
            Some((at, _)) => assert!(at > self.now, "a limit that has just begun lies ahead"),
            None => assert!(self.guard.is_over(), "only what is over has no limit"),
        }
    }
}

pub(crate) fn timed_out(timer: Timer, seconds: u64) -> StreamEnding {
    let limit = Duration::from_secs(seconds);
    StreamEnding::TimedOut { timer, limit }
}
