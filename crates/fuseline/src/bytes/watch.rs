//! `Watch`: a stream's guard together with its permit, on the breaker's clock. It settles the permit at the first moment
//! at which that can be done, and once.

use std::borrow::Borrow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use fuseline_core::{Kind, Outcome, Tick};
use fuseline_llm::{
    Answer, Body, Classifier, Fault, Head, Operation, StreamEnding, StreamGuard, Verdict,
};

use super::StreamTerms;
use crate::breaker::Breaker;
use crate::permit::Permit;
use crate::verdict::{outcome, wall};

const OK: u16 = 200;
const NO_HEADERS: &[(&str, &str)] = &[];

/// A streamed answer under a permit, for a driver that reads the bytes itself: another language, a callback. Whoever has a
/// `Stream` takes [`Permit::guard_bytes`], which is driven by this.
///
/// Say [`asked`](Self::asked) before more is read, [`bytes`](Self::bytes), [`end`](Self::end) or [`broke`](Self::broke) when it
/// has come, and give on what [`forward`](Self::forward) has until there is none. If nothing comes within
/// [`time_left`](Self::time_left), say `asked` again: a limit has passed. Once [`is_over`](Self::is_over), stop reading.
///
/// ```
/// use bytes::Bytes;
/// use fuseline::{Breaker, Kind, Policy, Watch, classify::Dialect};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// let mut watch = Watch::new(breaker.try_acquire_owned()?, Dialect::OpenAiChat.into());
/// watch.asked();
/// watch.bytes(Bytes::from("data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n"));
/// assert!(watch.forward().is_some() && watch.forward().is_none());
/// assert!(watch.time_left().is_some_and(|left| left.as_secs() >= 29));
/// watch.end(); // without its end marker
/// assert!(watch.is_over());
/// assert_eq!(watch.kind(), Kind::StreamTruncated);
/// assert_eq!(breaker.snapshot().run, 1);
/// # Ok::<(), fuseline::Rejection>(())
/// ```
pub struct Watch<B: Borrow<fuseline_core::Breaker> = Breaker> {
    /// Whose clock it is.
    breaker: B,
    /// None once it is settled.
    permit: Option<Permit<B>>,
    terms: StreamTerms,
    guard: StreamGuard,
    verdict: Option<Verdict>,
}

impl<B: Borrow<fuseline_core::Breaker>> Watch<B> {
    /// A watch over a stream whose head has come, in an answer to a request that was sent when the permit was given.
    pub fn new(permit: Permit<B>, terms: StreamTerms) -> Self
    where
        B: Clone,
    {
        let breaker = permit.breaker().clone();
        let now = breaker.borrow().now();
        let sent = now.as_millis().saturating_sub(millis(permit.elapsed()));
        Self {
            breaker,
            permit: Some(permit),
            guard: terms.guard(Tick::from_millis(sent), now),
            terms,
            verdict: None,
        }
    }

    /// Bytes are asked for: from now on silence is the provider's. Sees whether a limit has passed.
    pub fn asked(&mut self) {
        let now = self.now();
        self.guard.resumed(now);
        self.guard.timeout(now);
        self.settle(now);
    }

    /// A chunk of the body has come.
    pub fn bytes(&mut self, chunk: Bytes) {
        let now = self.now();
        self.guard.bytes(chunk, now);
        self.settle(now);
    }

    /// The body has come to its end.
    pub fn end(&mut self) {
        let now = self.now();
        self.guard.end(now);
        self.settle(now);
    }

    /// The connection has broken.
    pub fn broke(&mut self, fault: Fault) {
        let now = self.now();
        self.guard.broke(fault, now);
        self.settle(now);
    }

    /// The next bytes for the caller; none when there are no more for now.
    pub fn forward(&mut self) -> Option<Bytes> {
        self.guard.forward()
    }

    /// All that goes on for now, in one piece; empty when there is nothing.
    pub fn forward_all(&mut self) -> Bytes {
        let first = self.forward().unwrap_or_default();
        let Some(second) = self.forward() else {
            return first;
        };
        let mut all = [first, second].concat();
        while let Some(more) = self.forward() {
            all.extend_from_slice(&more);
        }
        all.into()
    }

    /// Whether nothing more is to be read: the body has ended, or is to be closed.
    pub const fn is_over(&self) -> bool {
        self.guard.is_over()
    }

    /// How the answer ended, once that is known: it may be complete while bytes still come.
    pub fn ending(&self) -> Option<StreamEnding> {
        self.guard.ending()
    }

    /// How long until the next limit passes; none once the stream is over.
    pub fn time_left(&self) -> Option<Duration> {
        let (at, now) = self.deadline()?;
        Some(at.since(now))
    }

    /// When the next limit passes, and the present.
    pub(crate) fn deadline(&self) -> Option<(Tick, Tick)> {
        let (at, _) = self.guard.deadline()?;
        Some((at, self.now()))
    }

    pub(crate) const fn guard(&self) -> &StreamGuard {
        &self.guard
    }

    pub(crate) const fn terms(&self) -> &StreamTerms {
        &self.terms
    }

    pub(crate) const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Whether the permit has been settled; what still comes is not counted.
    pub const fn is_settled(&self) -> bool {
        self.permit.is_none()
    }

    /// The kind of a failure, once the stream is over.
    pub fn kind(&self) -> Kind {
        let kind = self.verdict.as_ref().and_then(|verdict| verdict.kind);
        kind.unwrap_or(Kind::StreamTruncated)
    }

    fn now(&self) -> Tick {
        self.breaker.borrow().now()
    }

    fn settle(&mut self, now: Tick) {
        if self.verdict.is_some() {
            return;
        }
        if let Some(ending) = self.guard.ending() {
            let verdict = self.judge(ending);
            if let Some(permit) = self.permit.take() {
                let took = self.took(&permit);
                permit.record(&outcome(&verdict, took));
            }
            self.verdict = Some(verdict);
        } else if self.guard.last_content() == Some(now) {
            self.progress();
        }
    }

    /// There was content just now.
    fn progress(&mut self) {
        let delivered = self.guard.delivered_for();
        let Some(permit) = &self.permit else { return };
        permit.progress();
        let proof = permit.probe_proof();
        let is_proven = proof.is_some_and(|proof| delivered.is_some_and(|length| length >= proof));
        if let Some(permit) = self.permit.take_if(|_| is_proven) {
            let took = self.took(&permit);
            permit.record(&Outcome::success(took));
        }
    }

    /// How long the provider took to come through.
    fn took(&self, permit: &Permit<B>) -> Duration {
        let first = self.guard.first_token();
        first.unwrap_or_else(|| permit.elapsed())
    }

    fn judge(&self, ending: StreamEnding) -> Verdict {
        let transcript = self.guard.transcript();
        let answer = Answer {
            provider: &self.terms.provider,
            operation: Operation::Create,
            head: Some(Head::new(OK, &NO_HEADERS)),
            body: Body::Stream(&transcript),
            ending: ending.for_classifier(),
        };
        let classifier: &Classifier = self.terms.classifier;
        classifier.classify(&answer, wall())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The caller has left. A permit that is dropped is cancelled: so it is unless he has waited in vain for so long that
/// his leaving is the provider's failure.
impl<B: Borrow<fuseline_core::Breaker>> Drop for Watch<B> {
    fn drop(&mut self) {
        if self.permit.is_none() || std::thread::panicking() {
            return;
        }
        let now = self.now();
        self.guard.left(now);
        if self.guard.ending() == Some(StreamEnding::Unserved) {
            self.settle(now);
        }
    }
}

impl<B: Borrow<fuseline_core::Breaker>> fmt::Debug for Watch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("permit", &self.permit)
            .field("ending", &self.guard.ending())
            .finish_non_exhaustive()
    }
}
