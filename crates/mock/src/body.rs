//! The body of an answer: plays its steps, and tells how it ended.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use crate::answer::{HangUp, Step};
use crate::ledger::Exchange;

/// The most bytes handed over at once, so that a reader who never reads holds the rest back.
const FRAME: usize = 64 << 10;

/// Where an answer leaves word of how its connection shall end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWord(Arc<Mutex<Option<HangUp>>>);

impl LastWord {
    pub(crate) fn leave(&self, word: HangUp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(word);
    }

    pub(crate) fn take(&self) -> Option<HangUp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The connection breaks here because the script says so.
#[derive(Debug)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script breaks the connection here")
    }
}

impl std::error::Error for Broken {}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[derive(Debug)]
pub(crate) struct ScriptedBody {
    steps: VecDeque<Step>,
    waiting: Option<Pin<Box<Sleep>>>,
    exchange: Exchange,
    last_word: LastWord,
}

impl ScriptedBody {
    pub(crate) fn new(steps: VecDeque<Step>, mut exchange: Exchange, last_word: LastWord) -> Self {
        exchange.answering();
        if steps.is_empty() {
            exchange.finish();
        }
        Self {
            steps,
            waiting: None,
            exchange,
            last_word,
        }
    }

    /// The next frame's bytes; what exceeds a frame goes back to the front.
    fn frame(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        if bytes.len() > FRAME {
            let rest = bytes.split_off(FRAME);
            self.steps.push_front(Step::Send(rest));
        }
        if self.steps.is_empty() {
            self.exchange.finish();
        }
        Frame::data(bytes)
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(sleep) = &mut self.waiting {
                std::task::ready!(sleep.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(self.frame(bytes)))),
                Some(Step::Wait(time)) => self.waiting = Some(Box::pin(sleep(time))),
                Some(Step::Flush) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Break(word)) => {
                    self.exchange.finish();
                    self.last_word.leave(word);
                    return Poll::Ready(Some(Err(Broken)));
                }
                Some(Step::Stall) => {
                    self.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty()
    }
}
