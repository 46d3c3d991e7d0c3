//! The mock's memory of what it was asked: counts that can be waited for, and two bounded logs.
//!
//! A caller has left if his `Exchange` is dropped before it is finished: hyper drops the answer in the making, or its body, as
//! soon as it sees the connection close, so no polling is needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::http::request::Parts;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::request::{BODY_KEPT, Recorded};

/// Requests and departures kept, and names counted one by one.
const KEPT: usize = 1000;
/// Bytes of bodies kept in all; beyond, the oldest requests lose theirs.
const BODIES_KEPT: usize = 64 << 20;

/// How often things happened since the mock started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Request heads received.
    pub hits: u64,
    /// Requests whose answer is not finished now.
    pub in_flight: u64,
    /// Callers who left before their answer was finished.
    pub left: u64,
}

/// A caller who left before his answer was finished.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Departure {
    /// The [`Recorded::number`] of his request.
    pub number: u64,
    /// How far his answer was.
    pub stage: Stage,
    /// When the mock saw the connection close.
    pub at: Instant,
}

/// How far an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// No head was sent.
    BeforeHead,
    /// The body was on its way.
    InBody,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    counts: watch::Sender<Counts>,
    log: Mutex<Log>,
    stopping: AtomicBool,
}

#[derive(Debug, Default)]
struct Log {
    requests: VecDeque<Recorded>,
    departures: VecDeque<Departure>,
    by_path: BTreeMap<String, u64>,
    by_model: BTreeMap<String, u64>,
}

impl Ledger {
    pub(crate) fn connected(&self) {
        self.counts.send_modify(|counts| counts.connections += 1);
    }

    /// Counts and records a head.
    pub(crate) fn arrived(self: &Arc<Self>, head: &Parts) -> Exchange {
        let mut number = 0;
        let mut log = self.log();
        count(&mut log.by_path, head.uri.path());
        self.counts.send_modify(|counts| {
            counts.hits += 1;
            counts.in_flight += 1;
            number = counts.hits;
            push(&mut log.requests, Recorded::new(number, head));
        });
        Exchange {
            ledger: Arc::clone(self),
            number,
            stage: Stage::BeforeHead,
            ending: Ending::Left,
        }
    }

    /// From now on a caller who is cut off has not left.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    pub(crate) fn hits_at(&self, path: &str) -> u64 {
        self.log().by_path.get(path).copied().unwrap_or(0)
    }

    pub(crate) fn hits_for(&self, model: &str) -> u64 {
        self.log().by_model.get(model).copied().unwrap_or(0)
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.log().requests.iter().cloned().collect()
    }

    pub(crate) fn departures(&self) -> Vec<Departure> {
        self.log().departures.iter().cloned().collect()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn request(&mut self, number: u64) -> Option<&mut Recorded> {
        self.requests
            .iter_mut()
            .rfind(|request| request.number == number)
    }

    fn bound_bodies(&mut self) {
        let mut kept = 0;
        for request in self.requests.iter_mut().rev() {
            kept += request.body.len();
            if kept > BODIES_KEPT {
                request.body = Bytes::new();
            }
        }
    }
}

/// One request from its head to the end of its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    ledger: Arc<Ledger>,
    number: u64,
    stage: Stage,
    ending: Ending,
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Finished,
    Left,
}

impl Exchange {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The body has arrived, and with it the model.
    pub(crate) fn read(&self, body: &Bytes, length: u64, model: Option<&str>) {
        let mut log = self.ledger.log();
        if let Some(model) = model {
            count(&mut log.by_model, model);
        }
        if let Some(request) = log.request(self.number) {
            request.body = Bytes::copy_from_slice(body.get(..BODY_KEPT).unwrap_or(body));
            request.body_len = Some(length);
            request.model = model.map(str::to_owned);
        }
        log.bound_bodies();
    }

    /// It is decided what the request gets.
    pub(crate) fn decided(&self, reply: String) {
        if let Some(request) = self.ledger.log().request(self.number) {
            request.reply = Some(reply);
        }
    }

    /// The head goes out.
    pub(crate) fn answering(&mut self) {
        self.stage = Stage::InBody;
    }

    /// The answer has ended as scripted.
    pub(crate) fn finish(&mut self) {
        self.ending = Ending::Finished;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let left = self.ending == Ending::Left && !self.ledger.stopping.load(Ordering::Acquire);
        if left {
            let departure = Departure {
                number: self.number,
                stage: self.stage,
                at: Instant::now(),
            };
            push(&mut self.ledger.log().departures, departure);
        }
        self.ledger.counts.send_modify(|counts| {
            counts.in_flight = counts.in_flight.saturating_sub(1);
            counts.left += u64::from(left);
        });
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == KEPT {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn count(names: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(known) = names.get_mut(name) {
        *known += 1;
    } else if names.len() < KEPT {
        names.insert(name.to_owned(), 1);
    }
}
