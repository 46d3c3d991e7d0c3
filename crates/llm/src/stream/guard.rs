//! `StreamGuard`: one stream's judge. It decides which bytes go on to the caller and when, and how the stream ended.
//!
//! A driver does the I/O and tells what it saw:
//!
//! 1. [`bytes`](StreamGuard::bytes) for each chunk, then [`forward`](StreamGuard::forward) until it gives none: what
//!    it gives goes to the caller. When he has taken it and more is read, [`resumed`](StreamGuard::resumed).
//! 2. It wakes at [`deadline`](StreamGuard::deadline) and says [`timeout`](StreamGuard::timeout).
//! 3. [`end`](StreamGuard::end), [`broke`](StreamGuard::broke), [`left`](StreamGuard::left) or
//!    [`stopped`](StreamGuard::stopped) when the stream goes on no longer, and [`forward`](StreamGuard::forward) once more.
//! 4. From the moment that there is an [`ending`](StreamGuard::ending) it can be recorded. A complete stream is passed
//!    on to its last byte all the same; of a stream that failed nothing more is wanted, and the upstream is closed.
//!
//! **Nothing goes out before commitment.** Until a stream is [committed](StreamGuard::is_committed), another target may
//! answer in its place without a trace. It is committed at its first content event, or, where it is held back, at the
//! first content event that comes `hold_back` after that one: so an early stall, cut or error stays hidden. A complete
//! answer is committed at once; so is whatever has grown beyond 64 KiB.
//!
//! **The bytes are the upstream's own**, but for events that are no JSON, which are left out, and the error event with
//! which a committed stream ends that failed. Events go out when their last byte is there; what is not whole never does.
//!
//! Hot path. Nothing is allocated for events that lie in one chunk of a committed stream: what goes on are slices of it.

mod ending;
mod error_event;
mod judge;
mod queue;
mod reasoning;
mod timers;

use std::time::Duration;

use bytes::Bytes;
use fuseline_core::Tick;

pub use self::ending::StreamEnding;
use self::error_event::error_event;
pub(super) use self::judge::{Judge, Judgement};
use self::queue::Queue;
pub use self::reasoning::reasoning_first_token;
use self::timers::Pace;
pub use self::timers::{StreamTimers, Timer, read_timeout};
use super::{Dialect, ErrorEvent, Framing, Scanner, Usage};
use crate::classify::Transcript;
use crate::evidence::Fault;

/// What has grown beyond this is committed.
const MOST_HELD: usize = 64 << 10;

/// One stream on its way from the provider to the caller.
///
/// ```
/// use std::time::Duration;
/// use bytes::Bytes;
/// use fuseline_core::Tick;
/// use fuseline_llm::{Dialect, Framing, StreamEnding, StreamGuard, StreamTimers, Timer};
///
/// let sent = Tick::ZERO;
/// let timers = StreamTimers::default();
/// let mut guard = StreamGuard::new(Dialect::OpenAiChat, Framing::Sse, timers, Duration::ZERO, sent);
/// guard.bytes(Bytes::from("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"), Tick::from_millis(200));
/// assert_eq!(guard.forward(), None, "another target could still answer");
///
/// let token = Bytes::from("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
/// guard.bytes(token.clone(), Tick::from_millis(900));
/// assert!(guard.is_committed());
/// assert!(guard.forward().is_some() && guard.forward() == Some(token));
///
/// let (at, timer) = guard.deadline().expect("a stream is never without a limit");
/// assert_eq!((at, timer), (Tick::from_millis(30_900), Timer::Stall));
/// guard.timeout(at);
/// let limit = Duration::from_secs(30);
/// assert_eq!(guard.ending(), Some(StreamEnding::TimedOut { timer, limit }));
/// assert!(guard.forward().is_some_and(|event| event.starts_with(b"data: {\"error\":")));
/// ```
#[derive(Debug)]
pub struct StreamGuard {
    dialect: Dialect,
    framing: Framing,
    timers: StreamTimers,
    hold_back: Duration,
    scanner: Scanner,
    judge: Judge,
    pace: Pace,
    /// Whole pieces: held until commitment, then on their way.
    whole: Queue,
    /// The piece that is not whole yet.
    partial: Queue,
    /// See [`error_event`].
    last: Option<u8>,
    is_committed: bool,
    content_events: u64,
    left_out: u64,
    /// Whether a failure is told in the stream.
    tells: bool,
    closed: Option<StreamEnding>,
    /// No error event could be told.
    is_cut: bool,
}

impl StreamGuard {
    /// A guard for a stream whose head has come. The last byte of the request went at `sent`: `first_token` and `total`
    /// run from there.
    pub fn new(
        dialect: Dialect,
        framing: Framing,
        timers: StreamTimers,
        hold_back: Duration,
        sent: Tick,
    ) -> Self {
        Self {
            dialect,
            framing,
            timers,
            hold_back,
            scanner: Scanner::new(framing, Scanner::EVENT_LIMIT),
            judge: Judge::new(dialect, framing),
            pace: Pace::new(sent),
            whole: Queue::default(),
            partial: Queue::default(),
            last: None,
            is_committed: false,
            content_events: 0,
            left_out: 0,
            tells: true,
            closed: None,
            is_cut: false,
        }
    }

    /// For a driver whose caller asks for bytes himself, and is told of failures by other means: nothing is held back
    /// but what is not whole, and no error event is added. Nobody has asked yet: until
    /// [`resumed`](Self::resumed) the time is not the provider's.
    #[must_use]
    pub fn pulled(mut self, now: Tick) -> Self {
        self.tells = false;
        self.is_committed = true;
        self.pace.unasked(now);
        self
    }

    /// A chunk of the body has come. After a failure it is ignored.
    pub fn bytes(&mut self, chunk: Bytes, now: Tick) {
        if chunk.is_empty() || self.closed.is_some() {
            return;
        }
        self.pace.bytes(now);
        // What goes on together lies between `begin` and `at`.
        let (mut begin, mut at) = (0, 0);
        while let Some(scanned) = self.scanner.scan(chunk.get(at..).unwrap_or_default()) {
            let end = at + scanned.end;
            let judgement = self.judge.piece(&scanned.piece);
            match judgement {
                Judgement::LeaveOut | Judgement::Stop(_) => {
                    self.partial.clear();
                    self.pass(chunk.slice(begin..at));
                    begin = end;
                }
                Judgement::Pass | Judgement::Content(_) | Judgement::Error => {
                    self.whole.append(&mut self.partial);
                }
            }
            at = end;
            if let Some(ending) = self.take_in(judgement, now) {
                self.pass(chunk.slice(begin..at));
                return self.close(ending);
            }
        }
        self.pass(chunk.slice(begin..at));
        self.partial.keep(chunk.slice(at..));
        self.is_committed |= self.whole.len() > MOST_HELD;
    }

    /// The caller has taken what went on, and the upstream is asked for more. While it was not, its silence was not its
    /// own: only `total` counts that time.
    pub fn resumed(&mut self, now: Tick) {
        self.pace.resumed(now);
    }

    /// The stream has come to its end.
    pub fn end(&mut self, now: Tick) {
        self.close_after_rest(None, now);
    }

    /// The connection has broken.
    pub fn broke(&mut self, fault: Fault, now: Tick) {
        self.close_after_rest(Some(StreamEnding::Broken(fault)), now);
    }

    /// A deadline may have passed. Says nothing before it has.
    pub fn timeout(&mut self, now: Tick) {
        let Some((_, timer)) = self.deadline().filter(|(at, _)| *at <= now) else {
            return;
        };
        let limit = self.timers.limit(timer).unwrap_or_default();
        self.close_after_rest(Some(StreamEnding::TimedOut { timer, limit }), now);
    }

    /// The caller has left.
    pub fn left(&mut self, now: Tick) {
        let waited = self.pace.waited_in_vain(now);
        let is_unserved = waited.is_some_and(|waited| waited >= self.timers.cancel_counts_after);
        self.close(if is_unserved {
            StreamEnding::Unserved
        } else {
            StreamEnding::Cancelled
        });
    }

    /// The stream can be passed on no longer, which is nobody's fault and is told to the caller.
    pub fn stopped(&mut self, now: Tick) {
        self.close_after_rest(Some(StreamEnding::Stopped), now);
    }

    /// Commits a stream that is held, for a driver that has nowhere else to go: what it said is passed on, and if it
    /// failed, that it did.
    pub fn commit(&mut self) {
        if !self.is_committed {
            self.is_committed = true;
            self.tell_failure();
        }
    }

    /// The next bytes for the caller; none when there are no more for now. Until it gives none no more chunks are to be
    /// read: that is what bounds the memory of a stream.
    pub fn forward(&mut self) -> Option<Bytes> {
        if self.is_committed {
            self.whole.pop()
        } else {
            None
        }
    }

    /// When [`timeout`](Self::timeout) is due, and what will have passed; none once the stream is over.
    pub fn deadline(&self) -> Option<(Tick, Timer)> {
        if self.closed.is_some() {
            return None;
        }
        self.pace
            .deadline(&self.timers, self.judge.reader.is_complete())
    }

    /// How the stream ended, once that is known.
    pub fn ending(&self) -> Option<StreamEnding> {
        let is_complete = self.judge.reader.is_complete();
        self.closed
            .or_else(|| is_complete.then_some(StreamEnding::Complete))
    }

    /// Whether nothing more is wanted from the upstream: it has ended, or is to be closed.
    pub const fn is_over(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether bytes go to the caller. As long as they do not, another target may answer.
    pub const fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// When the last content event came: what renews a probe's lease.
    pub const fn last_content(&self) -> Option<Tick> {
        self.pace.last_content
    }

    /// From the first content event to the last: what proves a probe. None before the first.
    pub fn delivered_for(&self) -> Option<Duration> {
        let last = self.pace.last_content?;
        Some(last.since(self.pace.first_content?))
    }

    /// How long the first content event took, from the last byte of the request.
    pub fn first_token(&self) -> Option<Duration> {
        Some(self.pace.first_content?.since(self.pace.sent))
    }

    /// The error that the stream told of: at most the first 64 KiB of its data.
    pub fn error(&self) -> Option<ErrorEvent<'_>> {
        self.judge.error()
    }

    /// What the events said, for the classifier; it goes with [`StreamEnding::for_classifier`].
    pub fn transcript(&self) -> Transcript {
        self.judge.transcript()
    }

    /// The tokens counted so far.
    pub const fn usage(&self) -> Usage {
        self.judge.reader.usage()
    }

    /// When the request was sent, as it was told.
    pub const fn sent(&self) -> Tick {
        self.pace.sent
    }

    /// Whether the end tells the caller all: the answer is complete, or an error event says that it is not. Where it
    /// does not, the connection to him must break off, lest he take the end for a finish.
    pub const fn ends_honestly(&self) -> bool {
        !self.is_cut
    }

    /// How many events brought content.
    pub const fn content_events(&self) -> u64 {
        self.content_events
    }

    /// How many events were left out because they were no JSON.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many bytes are kept: held back, not yet whole, or not yet forwarded.
    pub const fn held(&self) -> usize {
        self.whole.len() + self.partial.len()
    }

    /// Takes a judgement in; gives the ending where it is one.
    fn take_in(&mut self, judgement: Judgement, now: Tick) -> Option<StreamEnding> {
        match judgement {
            Judgement::Pass => {}
            Judgement::Content(bytes) => {
                self.content_events += 1;
                self.pace.content(bytes, &self.timers, now);
                let first = self.pace.first_content.unwrap_or(now);
                self.is_committed |= now.since(first) >= self.hold_back;
            }
            Judgement::LeaveOut => self.left_out += 1,
            Judgement::Error => return Some(StreamEnding::Error),
            Judgement::Stop(ending) => return Some(ending),
        }
        self.is_committed |= self.judge.reader.is_complete();
        None
    }

    fn pass(&mut self, slice: Bytes) {
        if self.framing == Framing::JsonArray {
            let is_said = |byte: &&u8| !byte.is_ascii_whitespace();
            self.last = slice.iter().rfind(is_said).copied().or(self.last);
        }
        if self.is_committed {
            self.whole.push(slice);
        } else {
            self.whole.keep(slice);
        }
    }

    /// Reads what the stream left without its delimiter: often it is whole. No `cause` is the proper end.
    fn close_after_rest(&mut self, cause: Option<StreamEnding>, now: Tick) {
        if self.closed.is_some() {
            return;
        }
        let judgement = match self.scanner.finish() {
            Some(event) => self.judge.event(&event),
            None if matches!(self.framing, Framing::NdJson | Framing::Sse) => Judgement::Pass,
            // A frame or an object that was cut.
            None => Judgement::LeaveOut,
        };
        let mut ending = cause;
        match judgement {
            Judgement::LeaveOut | Judgement::Stop(_) => self.partial.clear(),
            Judgement::Pass | Judgement::Content(_) | Judgement::Error => {
                self.last = self.partial.last().or(self.last);
                self.whole.append(&mut self.partial);
                ending = self.take_in(judgement, now).or(cause);
            }
        }
        self.close(ending.unwrap_or_else(|| self.judge.at_end()));
    }

    fn close(&mut self, ending: StreamEnding) {
        if self.closed.is_some() {
            return;
        }
        let is_complete = self.judge.reader.is_complete();
        self.closed = Some(if is_complete {
            StreamEnding::Complete
        } else {
            ending
        });
        self.partial.clear();
        if self.is_committed {
            self.tell_failure();
        }
    }

    /// Ends a stream that failed with the error event, unless the provider has told of the error itself.
    fn tell_failure(&mut self) {
        let failure = self.closed.filter(|ending| ending.is_failure());
        let is_untold = self.tells && !self.judge.has_raised();
        let Some(ending) = failure.filter(|_| is_untold) else {
            return;
        };
        match error_event(self.dialect, self.framing, ending, self.last) {
            Some(event) => self.whole.push(event),
            None => self.is_cut = true,
        }
    }
}
