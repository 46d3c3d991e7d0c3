//! `Desk`: the queue, asked from a thread of its own, so that no call waits for a disk or a server but the one that is
//! queued.
//!
//! Whatever is wrong with the queue is said in the log, and service goes on without it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fuseline_core::Clock;
use fuseline_store::{
    Lease, Moment, NewCall, Outlook, Queue, QueueConfig, QueueError, RedisQueue, Sent, SqliteQueue,
    Submitted, Taken,
};
use fuseline_telemetry::QueueState;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::config::{Config, OnExhausted, QueuePlace};

/// How long a call that was being sent is left alone after its sender's end. A lease is renewed long before.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Questions that may wait for the thread.
const BACKLOG: usize = 64;
/// How long the last answers may take to be written when the process ends.
const CLOSE: Duration = Duration::from_secs(5);

/// Something to be done with the queue, at a time of day in ms since 1970.
type Job = Box<dyn FnOnce(&mut dyn Queue, u64) + Send>;

enum Order {
    Do(Job),
    /// Lets the queue go, and answers.
    Close(oneshot::Sender<()>),
}

/// The way to the queue. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Shared>);

struct Shared {
    orders: mpsc::Sender<Order>,
    /// There may be something to send.
    news: Notify,
    tally: Tally,
}

/// What is counted.
#[derive(Default)]
pub(crate) struct Tally {
    queued: AtomicU64,
    refused: AtomicU64,
    expired: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) failed: AtomicU64,
    waiting: AtomicU64,
    bytes: AtomicU64,
    is_failing: AtomicBool,
}

/// Why the queue gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeskError {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the queue is closed")]
    Closed,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Whether a route queues calls.
pub(crate) fn is_wanted(config: &Config) -> bool {
    let mut routes = config.routes.iter();
    routes.any(|route| route.on_exhausted.contains(&OnExhausted::Queue))
}

/// Opens the queue; none where none is wanted, or where it cannot be used.
pub(crate) fn open(config: &Config, clock: &Clock) -> Option<Desk> {
    if !is_wanted(config) {
        return None;
    }
    let desk = place(config).and_then(|queue| Ok(Desk::start(queue, clock.clone())?));
    desk.inspect_err(|error| {
        tracing::warn!(
            key = "queue",
            %error,
            "calls are not queued until the next start; other steps are taken as ever"
        );
    })
    .ok()
}

fn place(config: &Config) -> anyhow::Result<Box<dyn Queue>> {
    let spec = &config.queue;
    let bounds = QueueConfig {
        max_calls: spec.max_calls,
        max_bytes: spec.max_bytes,
        expires: spec.expires,
        ttl: spec.ttl,
        lease: LEASE,
        lane_places: spec.in_flight,
    };
    // Which replica it is means nothing to a queue.
    let fleet = config.fleet_of(0);
    match fleet.filter(|_| spec.store != Some(QueuePlace::State)) {
        Some(fleet) => Ok(Box::new(RedisQueue::new(&fleet, bounds)?)),
        None => {
            let state = config.state.as_deref();
            let state = state.ok_or_else(|| anyhow::anyhow!("there is no state file"))?;
            Ok(Box::new(SqliteQueue::beside(state, bounds)?))
        }
    }
}

impl Desk {
    fn start(mut queue: Box<dyn Queue>, clock: Clock) -> std::io::Result<Self> {
        let (orders, mut waiting) = mpsc::channel(BACKLOG);
        let work = move || {
            warn_if_forgetful(&mut *queue);
            while let Some(order) = waiting.blocking_recv() {
                match order {
                    Order::Do(job) => job(&mut *queue, Moment::read(&clock).wall_ms),
                    Order::Close(closed) => {
                        drop(queue);
                        let _heard = closed.send(());
                        return;
                    }
                }
            }
        };
        thread::Builder::new()
            .name("fuseline-queue".to_owned())
            .spawn(work)?;
        Ok(Self(Arc::new(Shared {
            orders,
            news: Notify::new(),
            tally: Tally::default(),
        })))
    }

    /// Keeps a call. Should nobody wait for the answer any more, it is removed again: its caller never learns of it.
    pub(crate) async fn submit(&self, call: NewCall) -> Result<Submitted, DeskError> {
        let (reply, told) = oneshot::channel();
        let job = move |queue: &mut dyn Queue, now| {
            let submitted = queue.submit(&call, now);
            let is_kept = matches!(submitted, Ok(Submitted::Kept));
            if reply.send(submitted).is_err() && is_kept {
                // If that fails, the call is sent for nobody: at least once, as ever.
                drop(queue.remove(&call.id, &call.tenant, now));
            }
        };
        let submitted = self.told(Box::new(job), told).await?;
        let tally = self.tally();
        match &submitted {
            Submitted::Kept => tally.queued.fetch_add(1, Ordering::Relaxed),
            Submitted::Full => tally.refused.fetch_add(1, Ordering::Relaxed),
            Submitted::Known(_) => 0,
        };
        self.tell();
        Ok(submitted)
    }

    /// What there is to do.
    pub(crate) async fn look(&self) -> Result<Outlook, DeskError> {
        let outlook = self.ask(|queue, now| queue.look(now)).await?;
        let tally = self.tally();
        tally.waiting.store(outlook.waiting, Ordering::Relaxed);
        tally.bytes.store(outlook.bytes, Ordering::Relaxed);
        if outlook.expired > 0 {
            tally.expired.fetch_add(outlook.expired, Ordering::Relaxed);
            tracing::warn!(
                calls = outlook.expired,
                "queued calls have waited for too long, and are not sent any more"
            );
        }
        Ok(outlook)
    }

    /// Takes a lane's next call to send it. Should nobody wait for it any more, it goes back.
    pub(crate) async fn take(&self, lane: String) -> Result<Option<(Taken, Held)>, DeskError> {
        let desk = self.clone();
        self.ask(move |queue, now| {
            let taken = queue.take(&lane, now)?;
            Ok(taken.map(|taken| {
                let held = Held {
                    desk,
                    lease: Some(taken.lease.clone()),
                    how: Sent::NotAtAll,
                };
                (taken, held)
            }))
        })
        .await
    }

    /// Asks the queue something.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut dyn Queue, u64) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, DeskError> {
        let (reply, told) = oneshot::channel();
        let job = move |queue: &mut dyn Queue, now| {
            // Who does not wait for the answer needs none.
            let _heard = reply.send(ask(queue, now));
        };
        self.told(Box::new(job), told).await
    }

    /// Has something done, if there is room for it just now, without waiting for it.
    pub(crate) fn post(&self, act: impl FnOnce(&mut dyn Queue, u64) + Send + 'static) {
        // What is not done now is done when the lease ends.
        drop(self.0.orders.try_send(Order::Do(Box::new(act))));
    }

    async fn told<T>(
        &self,
        job: Job,
        told: oneshot::Receiver<Result<T, QueueError>>,
    ) -> Result<T, DeskError> {
        let orders = &self.0.orders;
        let ordered = orders.send(Order::Do(job)).await;
        ordered.map_err(|_| DeskError::Closed)?;
        let told = told.await.map_err(|_| DeskError::Closed)?;
        self.note(told.as_ref().err());
        Ok(told?)
    }

    /// Says once that the queue fails, and once that it does not any more.
    fn note(&self, error: Option<&QueueError>) {
        let was_failing = self
            .tally()
            .is_failing
            .swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !was_failing => {
                tracing::warn!(%error, "the queue cannot be used at present; what is in it waits");
            }
            None if was_failing => tracing::info!("the queue can be used again"),
            _ => {}
        }
    }

    /// There may be something to send.
    pub(crate) fn tell(&self) {
        self.0.news.notify_one();
    }

    /// Resolves when there may be something to send.
    pub(crate) async fn news(&self) {
        self.0.news.notified().await;
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.tally
    }

    /// Lets the queue go, so that the next process can have it.
    pub(crate) async fn close(&self) {
        let (closed, told) = oneshot::channel();
        let close = async {
            let ordered = self.0.orders.send(Order::Close(closed)).await;
            ordered.is_ok() && told.await.is_ok()
        };
        if !matches!(tokio::time::timeout(CLOSE, close).await, Ok(true)) {
            tracing::warn!("the queue could not be closed in time");
        }
    }

    /// How it fares, for the metrics page.
    pub(crate) fn state(&self) -> QueueState {
        let tally = self.tally();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueState {
            queued: load(&tally.queued),
            sent: load(&tally.sent),
            failed: load(&tally.failed),
            expired: load(&tally.expired),
            refused: load(&tally.refused),
            waiting: load(&tally.waiting),
            bytes: load(&tally.bytes),
            is_failing: tally.is_failing.load(Ordering::Relaxed),
        }
    }
}

/// A call that was taken and is neither done nor back in the queue. Dropping it gives it back, for another to send it:
/// whoever took it was cut off, on whichever side of the thread that was.
pub(crate) struct Held {
    desk: Desk,
    lease: Option<Lease>,
    how: Sent,
}

impl Held {
    /// It is being sent.
    pub(crate) fn is_sent(&mut self) {
        self.how = Sent::AsProbe;
    }

    /// It is done, or back already.
    pub(crate) fn let_go(&mut self) {
        self.lease = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            let how = self.how;
            self.desk.post(move |queue, now| {
                drop(queue.give_back(&lease, how, now));
            });
        }
    }
}

/// A server that forgets everything when it ends keeps no promise of ours.
fn warn_if_forgetful(queue: &mut dyn Queue) {
    if matches!(queue.is_durable(), Ok(false)) {
        tracing::warn!(
            key = "queue.store",
            "the fleet's Redis forgets queued calls when it ends; set `appendonly yes` and `appendfsync always` there, or store = \"state\""
        );
    }
}
