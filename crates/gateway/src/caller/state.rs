//! What is known of a caller, and what follows from it. No waiting here: time and socket are arguments.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::{Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long nothing may be sent after a FIN.
const SILENCE: Duration = Duration::from_millis(350);
/// What is kept of what he sends before his answer is there; a FIN behind more than that is not seen.
const MAX_AHEAD: usize = 16 << 10;

/// How a caller went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// He closed his connection.
    Left,
    /// He did not take what he was sent.
    Slow,
}

/// What is to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outlook {
    /// When he counts as gone if nothing else happens, and how.
    pub(super) due: Option<(Instant, Gone)>,
    /// What of him is to be looked for.
    pub(super) interest: Option<Interest>,
}

/// What is known.
pub(super) struct State {
    /// How long he may take nothing of what he is sent: of this call, and where no call says otherwise.
    pub(super) write_idle: Duration,
    usual: Duration,
    pub(super) gone: Option<Gone>,
    call: Option<Call>,
    /// Since when he takes nothing although something is there for him.
    blocked: Option<Instant>,
    /// When he had nothing more to say; moved on by whatever he is sent after it.
    fin: Option<Instant>,
    /// What he sent while a call was under way.
    ahead: BytesMut,
}

/// How far the answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Unanswered,
    Answering,
}

impl State {
    pub(super) fn new(write_idle: Duration) -> Self {
        Self {
            write_idle,
            usual: write_idle,
            gone: None,
            call: None,
            blocked: None,
            fin: None,
            ahead: BytesMut::new(),
        }
    }

    pub(super) fn begin(&mut self) {
        self.call = Some(Call::Unanswered);
        self.write_idle = self.usual;
    }

    pub(super) fn end(&mut self) {
        self.call = None;
    }

    /// He took something.
    pub(super) fn took(&mut self, now: impl FnOnce() -> Instant) {
        self.blocked = None;
        if let Some(call) = &mut self.call {
            *call = Call::Answering;
        }
        if let Some(fin) = &mut self.fin {
            *fin = now();
        }
    }

    /// He takes nothing more for now.
    pub(super) fn blocked(&mut self, now: impl FnOnce() -> Instant) {
        self.blocked.get_or_insert_with(now);
    }

    /// Reads what he sent, up to a bound.
    ///
    /// # Errors
    /// Where the connection is broken.
    pub(super) fn read(
        &mut self,
        socket: &TcpStream,
        now: impl FnOnce() -> Instant,
    ) -> io::Result<()> {
        loop {
            let room = MAX_AHEAD.saturating_sub(self.ahead.len());
            if room == 0 || self.fin.is_some() {
                return Ok(());
            }
            match socket.try_read_buf(&mut (&mut self.ahead).limit(room)) {
                Ok(0) => {
                    self.fin = Some(now());
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands on what was read meanwhile; false where the socket has to be asked.
    pub(super) fn hand_on(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if self.ahead.is_empty() {
            return self.fin.is_some();
        }
        let length = self.ahead.len().min(buffer.remaining());
        buffer.put(self.ahead.copy_to_bytes(length));
        true
    }

    pub(super) fn waits(&self) -> bool {
        self.call.is_some()
    }

    /// What is to be waited for.
    pub(super) fn outlook(&self) -> Outlook {
        Outlook {
            due: self.due(),
            interest: self.interest(),
        }
    }

    /// What of him is to be looked for.
    fn interest(&self) -> Option<Interest> {
        self.call?;
        let hears_more = self.fin.is_none() && self.ahead.len() < MAX_AHEAD;
        Some(if hears_more {
            Interest::READABLE | Interest::ERROR
        } else {
            Interest::ERROR
        })
    }

    /// When he counts as gone if nothing else happens, and how.
    fn due(&self) -> Option<(Instant, Gone)> {
        let slow = self
            .blocked
            .and_then(|since| since.checked_add(self.write_idle));
        let left = match (self.call, self.fin, self.blocked) {
            (Some(Call::Unanswered), Some(fin), _) => Some(fin),
            (Some(Call::Answering), Some(fin), None) => fin.checked_add(SILENCE),
            _ => None,
        };
        let slow = slow.map(|at| (at, Gone::Slow));
        let left = left.map(|at| (at, Gone::Left));
        left.into_iter().chain(slow).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    /// What happens to a caller, one after the other, a second apart.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Asks,
        Takes,
        Blocks,
        Fin,
        Answered,
    }
    use Event::*;

    #[test]
    fn when_a_caller_counts_as_gone() {
        let begun = Instant::now();
        let silent = |second: u64| Some((SECOND * second as u32 + SILENCE, Gone::Left));
        let at = |second: u64| Some((SECOND * second as u32, Gone::Left));
        let slow = |second: u64| Some((SECOND * second as u32 + LIMIT, Gone::Slow));
        let table: [(&[Event], _); 13] = [
            (&[], None),
            (&[Asks], None),
            (&[Asks, Fin], at(1)),
            (&[Asks, Takes], None),
            (&[Asks, Takes, Fin], silent(2)),
            (&[Asks, Takes, Fin, Takes], silent(3)),
            (&[Asks, Takes, Fin, Blocks], slow(3)),
            (&[Asks, Takes, Blocks, Fin], slow(2)),
            (&[Asks, Takes, Blocks, Fin, Takes], silent(4)),
            (&[Asks, Blocks], slow(1)),
            (&[Asks, Takes, Blocks, Blocks], slow(2)),
            // The last bytes are on their way: a FIN ends the connection after them, and not before.
            (&[Asks, Takes, Fin, Answered], None),
            (&[Asks, Takes, Blocks, Answered], slow(2)),
        ];
        for (events, expected) in table {
            let mut state = State::new(LIMIT);
            for (second, event) in (0..).zip(events) {
                let now = || begun + SECOND * second;
                match event {
                    Asks => state.begin(),
                    Takes => state.took(now),
                    Blocks => state.blocked(now),
                    Fin => state.fin = Some(now()),
                    Answered => state.end(),
                }
            }
            let due = state.due().map(|(at, gone)| (at - begun, gone));
            assert_eq!(due, expected, "{events:?}");
        }
    }

    #[test]
    fn one_calls_limit_is_not_the_nexts() {
        let mut state = State::new(LIMIT);
        state.begin();
        state.write_idle = SECOND;
        state.end();
        assert_eq!(
            state.write_idle, SECOND,
            "its last bytes may still be waiting"
        );
        state.begin();
        assert_eq!(state.write_idle, LIMIT);
    }
}
