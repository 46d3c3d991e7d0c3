//! `Caller`: whether the one who asked is still there, and takes what he is sent.
//!
//! His socket tells three things. A reset: he is gone. Bytes that it does not take for `write_idle`: he is there and
//! does not read, and is dropped. And a FIN, by which he has left or has merely nothing more to say; the two look the
//! same. So:
//!
//! - Before anything of an answer was sent, a FIN is his leaving.
//! - After that it is not: the next bytes tell, since a socket that was closed answers them with a reset.
//! - Unless there are none. Where nothing is sent for 350 ms after the FIN, or after the last bytes since, and none are
//!   waiting to be taken, he counts as gone: nobody would ever tell, and a provider would work for nobody.
//!
//! Whoever closes is thus noticed within half a second, and whoever only half-closes gets his answer as long as
//! something of it comes every 350 ms. This is looked for while a call is under way; what he sends meanwhile is kept for
//! the next one.

mod awaited;
mod line;
mod state;
mod turn;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::Instant;

pub(crate) use awaited::Awaited;
pub(crate) use line::Line;
use state::{Gone, Outlook, State};
use turn::Turn;

/// The log's kind of what ended because the caller did not read. Providers are not charged with it.
pub(crate) const CLIENT_SLOW: &str = "client_slow";

/// The one at the other end of a connection. Clones share what is known of him.
#[derive(Clone)]
pub(crate) struct Caller(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    turn: Turn,
    /// His call is to end, whole or not.
    is_ending: AtomicBool,
}

impl Caller {
    /// Takes a connection apart: what HTTP is spoken over, and what is watched meanwhile. He is given `write_idle` to
    /// take something of what he is sent, unless a call says otherwise.
    pub(crate) fn at(stream: TcpStream, write_idle: Duration) -> (Line, Watch) {
        let caller = Self(Arc::new(Shared {
            state: Mutex::new(State::new(write_idle)),
            turn: Turn::default(),
            is_ending: AtomicBool::new(false),
        }));
        let (read, write) = stream.into_split();
        let write = Arc::new(write);
        let line = Line::new(read, Arc::clone(&write), caller.clone());
        (line, Watch { write, caller })
    }

    /// Nobody: a call is made for somebody who comes back for its answer.
    pub(crate) fn absent() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State::new(Duration::MAX)),
            turn: Turn::default(),
            is_ending: AtomicBool::new(false),
        }))
    }

    /// The head of a request of his was read: what is sent from now on is the answer.
    pub(crate) fn asks(&self) -> Asking {
        self.0.turn.begin();
        Asking(self.clone())
    }

    /// Whether what is sent is the answer to a request that was read.
    pub(crate) fn is_asking(&self) -> bool {
        self.0.turn.is_ours()
    }

    /// All that was there to be sent is on its way.
    pub(crate) fn flushed(&self) {
        self.0.turn.flushed();
    }

    /// His call is to end, whole or not. Whoever drives his connection asks it again after this.
    pub(crate) fn end(&self) {
        self.0.is_ending.store(true, Ordering::Relaxed);
    }

    /// Whether his call is to end, whole or not.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.is_ending.load(Ordering::Relaxed)
    }

    /// Resolves once his call is to end. It wakes nobody: see [`end`](Self::end).
    pub(crate) async fn ends(&self) {
        std::future::poll_fn(|_| match self.is_ending() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// A request of his was read whole, and he waits for its answer.
    pub(crate) fn waits(&self) -> Waiting {
        self.state().begin();
        Waiting(self.clone())
    }

    /// From now on, and until the call's answer is sent, he has this long to take something of what he is sent.
    pub(crate) fn set_write_idle(&self, limit: Duration) {
        self.state().write_idle = limit;
    }

    /// How long he took nothing, if he was dropped for that.
    pub(crate) fn slow(&self) -> Option<Duration> {
        let state = self.state();
        (state.gone == Some(Gone::Slow)).then_some(state.write_idle)
    }

    /// Notes what became of an attempt to send him something.
    fn sent(&self, polled: &Poll<io::Result<usize>>) {
        match polled {
            Poll::Ready(Ok(1..)) => self.state().took(Instant::now),
            Poll::Ready(_) => {}
            Poll::Pending => self.state().blocked(Instant::now),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose answer is not yet taken over for sending. It is when this is dropped.
pub(crate) struct Asking(Caller);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.0.turn.end();
    }
}

/// A call that a caller waits for. It ends when this is dropped.
pub(crate) struct Waiting(Caller);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.state().end();
    }
}

/// The eye on one caller.
pub(crate) struct Watch {
    write: Arc<OwnedWriteHalf>,
    caller: Caller,
}

impl Watch {
    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    fn stream(&self) -> &TcpStream {
        self.write.as_ref().as_ref()
    }

    /// Resolves when he is gone, with the way he went; what is dropped then ends his call. To be asked by the task of his
    /// connection, after it.
    pub(crate) async fn gone(&self) -> Gone {
        let gone = self.wait().await;
        let mut state = self.caller.state();
        state.gone = Some(gone);
        if gone == Gone::Slow {
            // What he has not taken is of no use to him, and would stay in memory for minutes.
            drop(self.stream().set_zero_linger());
            if !state.waits() {
                let write_idle = state.write_idle;
                tracing::info!(kind = CLIENT_SLOW, ?write_idle, "an answer was not taken");
            }
        }
        gone
    }

    async fn wait(&self) -> Gone {
        loop {
            let outlook = self.caller.state().outlook();
            match outlook.due {
                Some((at, gone)) if at <= Instant::now() => return gone,
                _ => {}
            }
            tokio::select! {
                biased;
                () = self.otherwise_than(outlook) => {}
                () = at(outlook.due.map(|(at, _)| at)) => {}
                left = self.look(outlook.interest) => if left { return Gone::Left },
            }
        }
    }

    /// Resolves when something else is to be waited for. It wakes nobody: what changes that happens to the connection,
    /// which is asked before this whenever its task runs.
    async fn otherwise_than(&self, outlook: Outlook) {
        std::future::poll_fn(|_| match self.caller.state().outlook() == outlook {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    /// Waits for a word of him, and gives whether it was a reset.
    async fn look(&self, interest: Option<Interest>) -> bool {
        let Some(interest) = interest else {
            return std::future::pending().await;
        };
        match self.stream().ready(interest).await {
            Ok(ready) if !ready.is_error() => {
                let mut state = self.caller.state();
                state.waits() && state.read(self.stream(), Instant::now).is_err()
            }
            Ok(_) | Err(_) => true,
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
