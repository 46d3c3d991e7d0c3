//! `Delivery`: one call on its way from the queue to its target, and what becomes of it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fuseline_core::Kind;
use fuseline_llm::Protocol;
use fuseline_store::{Sent, Taken};
use http::Response;
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;

use super::super::super::Proxy;
use super::super::super::context::{Context, Delivered};
use super::super::super::course::Course;
use super::super::super::refusal::Refusal;
use super::super::super::respond::{Body, respond};
use super::super::super::story::Story;
use super::super::super::trace;
use super::super::paper::{self, Answer};
use super::Opening;
use super::rests::Rests;
use crate::caller::Caller;
use crate::queue::{Desk, Held, LEASE};

/// How often a result that the queue does not take is offered again, and after how long each time.
const OFFERS: u32 = 20;
const OFFER_EVERY: Duration = Duration::from_secs(1);

/// One call on its way from the queue to its target.
pub(super) struct Delivery {
    pub(super) proxy: Arc<Proxy>,
    pub(super) desk: Desk,
    pub(super) rests: Arc<Rests>,
    pub(super) taken: Taken,
    pub(super) lane: String,
    pub(super) opening: Opening,
    /// Until it is given back or has served its purpose: a process that ends while it sends gives the call back.
    pub(super) held: Held,
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
    /// With a place among the calls that are sent from the queue, and one among all that are under way.
    pub(super) async fn run(mut self, _own: OwnedSemaphorePermit, common: OwnedSemaphorePermit) {
        let proxy = Arc::clone(&self.proxy);
        let (id, request) = (self.taken.lease.id.clone(), self.taken.request.clone());
        let outcome = {
            let is_repeated = self.taken.sends > 1;
            let mut sending = pin!(send(&proxy, &id, request, is_repeated, common));
            loop {
                tokio::select! {
                    outcome = &mut sending => break outcome,
                    () = tokio::time::sleep(LEASE / 3) => if !self.keep().await {
                        // Its caller does not want it any more, or another sends it.
                        self.held.let_go();
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
        if self.opening == Opening::Closed && !self.proxy.lasting.outage.stands() {
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
            self.held.let_go();
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
                self.held.let_go();
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
            tokio::time::sleep(OFFER_EVERY).await;
            // So that nobody sends it meanwhile.
            self.keep().await;
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
async fn send(
    proxy: &Arc<Proxy>,
    id: &str,
    request: Vec<u8>,
    is_repeated: bool,
    _place: OwnedSemaphorePermit,
) -> Outcome {
    let mut share = proxy.uploads.share();
    if !share.grow(request.len() as u64) {
        return Outcome::Unsent;
    }
    let Some(call) = proxy.queued_call(&request, is_repeated, share) else {
        let refusal = Refusal::no_route("the queued call any more");
        return Outcome::Result(told(refusal, Protocol::OpenAi).await);
    };
    drop(request);
    let protocol = call.facts.protocol();
    // Its caller's trace goes on.
    let span = proxy
        .lasting
        .otlp
        .as_ref()
        .map(|otlp| otlp.call(&call.headers));
    let mut context = Context::begin(proxy.registry(), proxy.metrics(), Caller::absent(), span);
    trace::name(&call, &mut context);
    context.because(format_args!("queued call {id}"));
    let end = context.delivery();
    let ending = Course::new(proxy, &call, &mut context).run().await;
    let response = respond(ending, protocol, context, None);
    // Its room is somebody else's from now on.
    drop(call);
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
async fn told(refusal: Refusal, protocol: Protocol) -> Vec<u8> {
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
