//! Sends the calls that wait, in their order, as soon as a breaker of their targets lets them pass.
//!
//! The queue says which lanes have a call; a lane whose breakers refuse is left alone, so that nothing is taken that could
//! not be sent. What is taken goes the way of every call. What becomes of it:
//!
//! | its end | then |
//! |---|---|
//! | a good answer, or one that is its caller's to mend | is its result |
//! | no target took it after all | it goes back, as if nothing had been |
//! | it failed as a probe, or because our own network is down | it goes back: that says nothing of the call |
//! | it failed although its circuit was closed | it goes back with a strike; the last of `attempts` is its result |
//! | this process ends, or is killed | its lease ends, and it is sent again under the same `Idempotency-Key` |

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fuseline_core::{Kind, Tick};
use fuseline_llm::{Admission, Owner, Target};
use fuseline_store::{Lease, Sent, Taken};
use http::Response;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::Proxy;
use super::super::context::{Context, Delivered};
use super::super::course::Course;
use super::super::refusal::Refusal;
use super::super::respond::{Body, respond};
use super::super::story::Story;
use super::super::upstream::Keys;
use super::super::way::NO_MODEL;
use super::paper::{self, Answer};
use crate::caller::Caller;
use crate::queue::{Desk, LEASE};
use crate::shutdown::Tasks;

/// How often is looked whether a breaker lets calls pass.
const EVERY: Duration = Duration::from_millis(250);
/// Calls that are sent at once, over all lanes.
const AT_ONCE: usize = 16;
/// A lane in which a call has failed rests for so long, and twice as long each further time.
const REST: Duration = Duration::from_secs(1);
const MAX_REST: Duration = Duration::from_secs(30);
/// How often a result that the queue does not take is offered again, a second later each time.
const OFFERS: u32 = 20;

/// Sends until the gateway drains.
pub(crate) async fn send_on(proxy: Arc<Proxy>, tasks: Tasks) {
    let Some(desk) = proxy.desk.clone() else {
        return;
    };
    let sender = Sender {
        proxy,
        desk,
        places: Arc::new(Semaphore::new(AT_ONCE)),
        rests: Arc::default(),
    };
    while !tasks.is_draining() {
        sender.turn(&tasks).await;
        tokio::select! {
            () = tasks.draining() => return,
            () = sender.desk.news() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

struct Sender {
    proxy: Arc<Proxy>,
    desk: Desk,
    places: Arc<Semaphore>,
    rests: Arc<Rests>,
}

impl Sender {
    /// Begins to send what can be sent, one call a lane.
    async fn turn(&self, tasks: &Tasks) {
        // What fails is told by the desk.
        let Ok(outlook) = self.desk.look().await else {
            return;
        };
        let now = self.proxy.registry().now();
        self.rests.forget(now);
        for lane in outlook.lanes {
            let opening = self.proxy.opening(&lane, now);
            let (Some(opening), false) = (opening, self.rests.rests(&lane, now)) else {
                continue;
            };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                return;
            };
            let of_lane = lane.clone();
            let taken = self.desk.ask(move |queue, now| queue.take(&of_lane, now));
            if let Ok(Some(taken)) = taken.await {
                tasks.spawn(self.delivery(taken, lane, opening).run(place));
                // There may be another place in the lane.
                self.desk.tell();
            }
        }
    }

    fn delivery(&self, taken: Taken, lane: String, opening: Opening) -> Delivery {
        Delivery {
            proxy: Arc::clone(&self.proxy),
            desk: self.desk.clone(),
            rests: Arc::clone(&self.rests),
            held: Some(taken.lease.clone()),
            taken,
            lane,
            opening,
        }
    }
}

/// How breakers let a lane's next call pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Closed,
    Probe,
}

impl Proxy {
    /// Whether some target of a lane takes calls now.
    fn opening(&self, lane: &str, now: Tick) -> Option<Opening> {
        let (route, model): (String, Option<String>) = serde_json::from_str(lane).ok()?;
        let mut routes = self.config.routes.iter();
        let at = routes.position(|known| known.model.as_str() == route)?;
        let mut found = None;
        for stop in self.rosters.get(at)?.own_stops() {
            let provider = &stop.target.provider;
            let Some(Keys::Own(keys)) = self.upstreams.get(provider).map(|to| &to.keys) else {
                continue;
            };
            let named = stop.target.model.as_deref().or(model.as_deref());
            for (id, _) in keys {
                let model = named.unwrap_or(NO_MODEL);
                let target = Target::new(provider.as_str(), model, id.as_str(), Owner::Gateway);
                let scopes = self.guards.scopes(&self.config, &target, now);
                match scopes.ok().map(|scopes| Admission::of(&scopes, now)) {
                    Some(Admission::Ready) => return Some(Opening::Closed),
                    Some(Admission::Probe) => found = Some(Opening::Probe),
                    _ => {}
                }
            }
        }
        found
    }
}

/// One call on its way from the queue to its target.
struct Delivery {
    proxy: Arc<Proxy>,
    desk: Desk,
    rests: Arc<Rests>,
    taken: Taken,
    lane: String,
    opening: Opening,
    /// The lease, until it is given back or has served its purpose.
    held: Option<Lease>,
}

/// What a delivery has come to.
enum Outcome {
    /// This is the call's result.
    Result(Vec<u8>),
    /// It would be, if the call had no further attempt.
    Failure(Vec<u8>),
    /// Nobody was asked.
    Unsent,
}

impl Delivery {
    async fn run(mut self, _place: OwnedSemaphorePermit) {
        let proxy = Arc::clone(&self.proxy);
        let (id, request) = (self.taken.lease.id.clone(), self.taken.request.clone());
        let outcome = {
            let mut sending = pin!(send(&proxy, &id, request, self.taken.sends > 1));
            loop {
                tokio::select! {
                    outcome = &mut sending => break outcome,
                    () = tokio::time::sleep(LEASE / 3) => if !self.keep().await {
                        // Its caller does not want it any more, or another sends it.
                        self.held = None;
                        return tracing::info!(queued = id, "a queued call is given up");
                    },
                }
            }
        };
        match outcome {
            Outcome::Result(result) => self.finish(result, Finish::Sent).await,
            Outcome::Failure(result) if self.is_last() => {
                self.finish(result, Finish::Failed).await;
            }
            Outcome::Failure(_) => self.give_back(self.weight()).await,
            Outcome::Unsent => self.give_back(Sent::NotAtAll).await,
        }
        self.desk.tell();
    }

    async fn keep(&self) -> bool {
        let lease = self.taken.lease.clone();
        let kept = self.desk.ask(move |queue, now| queue.keep(&lease, now));
        // A queue that cannot be asked has not given it to another.
        kept.await.unwrap_or(true)
    }

    /// What a failure says of the call.
    fn weight(&self) -> Sent {
        if self.opening == Opening::Closed && !self.proxy.outage.stands() {
            Sent::InVain
        } else {
            Sent::AsProbe
        }
    }

    fn is_last(&self) -> bool {
        let most = self.proxy.config.queue.attempts;
        self.weight() == Sent::InVain && self.taken.strikes + 1 >= most
    }

    async fn give_back(&mut self, how: Sent) {
        self.rests
            .fail(&self.lane, how, self.proxy.registry().now());
        let lease = self.taken.lease.clone();
        let given = self
            .desk
            .ask(move |queue, now| queue.give_back(&lease, how, now));
        // Where that fails the lease ends by itself.
        if given.await.is_ok() {
            self.held = None;
        }
        tracing::info!(
            queued = self.taken.lease.id,
            sends = self.taken.sends,
            sent = how != Sent::NotAtAll,
            "a queued call goes back into the queue"
        );
    }

    /// The result is kept, or the call is sent again when its lease has ended.
    async fn finish(&mut self, result: Vec<u8>, how: Finish) {
        self.rests.succeed(&self.lane);
        let (id, result) = (self.taken.lease.id.clone(), Bytes::from(result));
        for _ in 0..OFFERS {
            let (id, result) = (id.clone(), result.clone());
            let finished = self
                .desk
                .ask(move |queue, now| queue.finish(&id, &result, now));
            if let Ok(is_first) = finished.await {
                self.held = None;
                if !is_first {
                    // Somebody else has sent it meanwhile, or nobody wants it any more.
                    return;
                }
                let tally = self.desk.tally();
                let counter = match how {
                    Finish::Sent => &tally.sent,
                    Finish::Failed => &tally.failed,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                let outcome = how.as_str();
                let sends = self.taken.sends;
                return tracing::info!(
                    queued = self.taken.lease.id,
                    sends,
                    outcome,
                    "a queued call is done"
                );
            }
            tokio::time::sleep(REST).await;
            // So that nobody sends it meanwhile.
            self.keep().await;
        }
    }
}

/// A process that ends while it sends gives the call back, for another to send it.
impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(lease) = self.held.take() {
            self.desk.post(move |queue, now| {
                drop(queue.give_back(&lease, Sent::AsProbe, now));
            });
        }
    }
}

/// How a call leaves the queue.
#[derive(Clone, Copy)]
enum Finish {
    Sent,
    Failed,
}

impl Finish {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// Sends a call as if its caller were there, and collects the answer.
async fn send(proxy: &Arc<Proxy>, id: &str, request: Vec<u8>, is_repeated: bool) -> Outcome {
    let Some(call) = proxy.queued_call(&request, is_repeated) else {
        let refusal = Refusal::unreadable();
        return Outcome::Result(told(refusal, fuseline_llm::Protocol::OpenAi).await);
    };
    drop(request);
    let protocol = call.facts.protocol();
    let mut context = Context::begin(proxy.registry(), &proxy.metrics, Caller::absent());
    context.because(format_args!("queued call {id}"));
    let end = context.delivery();
    let ending = Course::new(proxy, &call, &mut context).run().await;
    let response = respond(ending, protocol, context, None);
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let most = usize::try_from(proxy.config.queue.max_entry).unwrap_or(usize::MAX);
    let body = collect(response, most).await;
    let Ok(Delivered { kind, attempts }) = end.await else {
        return Outcome::Unsent;
    };
    if attempts == 0 {
        return Outcome::Unsent;
    }
    let result = match body {
        Collected::Whole(body) => paper::fold(&Answer::of(status, &headers), &body),
        Collected::TooLong => {
            let refusal = Refusal::result_too_long(proxy.config.queue.max_entry);
            return Outcome::Result(told(refusal, protocol).await);
        }
        Collected::Broken => {
            let refusal = Refusal::exhausted("cut", "the answer broke off");
            told(refusal, protocol).await
        }
    };
    match kind {
        Some(kind) if may_pass(kind) => Outcome::Failure(result),
        _ => Outcome::Result(result),
    }
}

/// Whether a failure of this kind may be none the next time. Keys are the gateway's own here, so that an operator can mend
/// them.
const fn may_pass(kind: Kind) -> bool {
    kind.rule().count
        || matches!(
            kind,
            Kind::Auth | Kind::Permission | Kind::Local | Kind::Cancelled
        )
}

/// An answer of ours, as it is stored.
async fn told(refusal: Refusal, protocol: fuseline_llm::Protocol) -> Vec<u8> {
    let response = refusal.into_response(protocol, &Story::default());
    let answer = Answer::of(response.status().as_u16(), response.headers());
    match collect(response, usize::MAX).await {
        Collected::Whole(body) => paper::fold(&answer, &body),
        Collected::TooLong | Collected::Broken => paper::fold(&answer, b""),
    }
}

/// What there is of a body.
enum Collected {
    Whole(Bytes),
    TooLong,
    Broken,
}

/// Reads an answer to its end, and lets it go: with it ends its call.
async fn collect(response: Response<Body>, most: usize) -> Collected {
    let mut body = response.into_body();
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Collected::Broken;
        };
        let data = frame.into_data().unwrap_or_default();
        if read.len() + data.len() > most {
            return Collected::TooLong;
        }
        read.extend_from_slice(&data);
    }
    Collected::Whole(read.freeze())
}

/// Lanes in which calls fail, and until when each rests.
#[derive(Default)]
struct Rests(Mutex<HashMap<String, Rest>>);

struct Rest {
    until: Tick,
    failures: u32,
}

impl Rests {
    fn rests(&self, lane: &str, now: Tick) -> bool {
        let rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.get(lane).is_some_and(|rest| now < rest.until)
    }

    /// A call went back. Where nobody was asked, the breakers say themselves when it is worth another look.
    fn fail(&self, lane: &str, how: Sent, now: Tick) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = rests.entry(lane.to_owned()).or_insert(Rest {
            until: now,
            failures: 0,
        });
        if how == Sent::NotAtAll {
            rest.until = now + EVERY;
        } else {
            let longer = 1_u32.checked_shl(rest.failures).unwrap_or(u32::MAX);
            rest.until = now + REST.saturating_mul(longer).min(MAX_REST);
            rest.failures = (rest.failures + 1).min(16);
        }
    }

    fn succeed(&self, lane: &str) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.remove(lane);
    }

    /// Lets those go that have not failed for long.
    fn forget(&self, now: Tick) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.retain(|_, rest| now < rest.until + MAX_REST);
    }
}
