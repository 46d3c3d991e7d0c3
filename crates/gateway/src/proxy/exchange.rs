//! One attempt on the wire: sent, waited for under its time limits, and what came back judged.

use std::pin::{Pin, pin};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fuseline_llm::{
    Body, Dialect, Ending, Fault, Framing, Head, Operation, RequestFacts, StreamEnding,
    StreamGuard, Usage, Verdict,
};
use http::header::CONTENT_TYPE;
use http::{Request, response};
use http_body_util::{BodyExt as _, Full};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::client::{Pool, Received};
use super::coding::{Readable, is_coded};
use super::driven::Driven;
use super::gathered::Gathered;
use super::head::{for_the_caller, framing, is_good, is_no_answer, text_of};
use super::headers;
use super::heartbeat::Heartbeat;
use super::in_band::{told_as_answer, with_its_own_status};
use super::limits::{Limit, Limits};
use super::watched::{Judge, Watched};

/// A plain answer up to this size is read whole before it is passed on, so that one that is of no use can still fall
/// over.
const READ_WHOLE: usize = 8 << 20;
/// What is read of a failure before it is judged.
const READ_FAILURE: usize = 64 << 10;

/// What an attempt brought.
pub(crate) enum Came {
    /// An answer that is passed on as it comes; there is no verdict yet.
    Opened(Answer<Flow>),
    /// An answer that is at hand, and the verdict on it.
    Answered(Answer<Option<Received>>, Verdict),
    /// No whole answer.
    Nothing(Verdict),
}

/// An upstream's answer: its head without the hop's headers, what was read of its body, and what was not.
pub(crate) struct Answer<R> {
    pub(crate) head: response::Parts,
    pub(crate) begun: Bytes,
    pub(crate) rest: R,
    /// What it says that it used; a stream says so later.
    pub(crate) usage: Usage,
}

/// A body on its way.
pub(crate) enum Flow {
    /// A committed stream.
    Watched(Box<Watched>),
    /// Bytes that are not looked into.
    Unwatched(Received),
}

/// One request to be sent, and how its answer is read and judged.
pub(crate) struct Exchange<'x> {
    pub(crate) facts: &'x RequestFacts,
    pub(crate) judge: Judge,
    /// How long a committed stream may be silent before the caller gets a sign of life.
    pub(crate) heartbeat: Option<Duration>,
}

impl Exchange<'_> {
    /// Sends the request and waits for the answer.
    pub(crate) async fn run(
        &self,
        attempt: &mut Driven,
        pool: &Pool,
        request: Request<Full<Bytes>>,
    ) -> Came {
        let (sent, since) = (attempt.now(), Instant::now());
        let limit = self.judge.limits.until_read(self.facts.shape());
        let mut timer = pin!(sleep_until(since + limit.after));
        let asked = {
            let asking = pin!(pool.request(request));
            before(&mut timer, asking).await
        };
        let response = match asked {
            Some(Ok(response)) => response,
            Some(Err(failure)) => {
                attempt.reuse = failure.reuse_after();
                return Came::Nothing(attempt.fault(failure.fault()));
            }
            None => return self.late(attempt, limit),
        };
        let now = attempt.now();
        attempt.head(response.status().as_u16(), now);
        let (head, body) = response.into_parts();
        let head = for_the_caller(head);
        if is_no_answer(head.status) {
            return Came::Nothing(self.judge(attempt, &head, Body::Unread));
        }
        if !is_good(head.status) {
            return self.failure(attempt, head, body, &mut timer).await;
        }
        if let Some((dialect, framing)) = self.language(&head) {
            let Limits {
                stream, hold_back, ..
            } = self.judge.limits.clone();
            let guard = StreamGuard::new(dialect, framing, stream, hold_back, sent);
            let every = self.heartbeat;
            let heartbeat = every.and_then(|every| Heartbeat::new(dialect, framing, every));
            let clock = attempt.clock.clone();
            let stream = Watched::new(guard, heartbeat, body, clock, self.judge.clone());
            return self.stream(attempt, head, Box::new(stream), since).await;
        }
        if self.passes_unwatched(&head) {
            return Came::Opened(Answer {
                head,
                begun: Bytes::new(),
                rest: Flow::Unwatched(body),
                usage: Usage::default(),
            });
        }
        self.plain(attempt, head, body, &mut timer, limit).await
    }

    /// Reads a stream until it is committed, or has ended without that.
    async fn stream(
        &self,
        attempt: &mut Driven,
        mut head: response::Parts,
        mut stream: Box<Watched>,
        since: Instant,
    ) -> Came {
        let limit = self.judge.limits.until_committed();
        let in_time = timeout_at(since + limit.after, stream.commit(attempt)).await;
        if in_time.is_err() {
            if stream.guard.first_token().is_none() {
                return self.late(attempt, limit);
            }
            // What is held back is better than nothing.
            stream.guard.commit();
        }
        if stream.guard.is_committed() {
            headers::of_a_stream(&mut head.headers);
            return Came::Opened(Answer {
                head,
                begun: Bytes::new(),
                rest: Flow::Watched(stream),
                usage: Usage::default(),
            });
        }
        let verdict = stream.verdict(attempt);
        match stream.guard.error() {
            Some(error) if stream.guard.ending() == Some(StreamEnding::Error) => {
                let begun = Bytes::copy_from_slice(error.data);
                told_as_answer(&mut head, &verdict, self.facts.protocol());
                let answer = Answer {
                    head,
                    begun,
                    rest: None,
                    usage: stream.guard.usage(),
                };
                Came::Answered(answer, verdict)
            }
            _ => Came::Nothing(verdict),
        }
    }

    /// A limit has passed. The caller's own says nothing of the provider.
    fn late(&self, attempt: &mut Driven, limit: Limit) -> Came {
        let verdict = attempt.passed(limit);
        if self.judge.limits.is_callers(limit.after) {
            attempt.acquit();
        }
        Came::Nothing(verdict)
    }

    /// Reads what a failure says of itself.
    async fn failure(
        &self,
        attempt: &mut Driven,
        head: response::Parts,
        body: Received,
        timer: &mut Pin<&mut Sleep>,
    ) -> Came {
        let mut read = Gathered::default();
        let reading = {
            let reading = pin!(read_up_to(READ_FAILURE, attempt, body, &mut read));
            before(timer, reading).await
        };
        let begun = read.whole();
        let is_whole = matches!(reading, Some(Ok(None)));
        let readable = Readable::new(&head.headers, &begun, is_whole).await;
        let verdict = self.judge(attempt, &head, readable.as_body());
        match reading {
            Some(Ok(rest)) => {
                let usage = Usage::default();
                let answer = Answer {
                    head,
                    begun,
                    rest,
                    usage,
                };
                Came::Answered(answer, verdict)
            }
            // One that breaks off has said by its status and its first words what it is.
            Some(Err(_)) | None => Came::Nothing(verdict),
        }
    }

    /// Reads a plain answer.
    async fn plain(
        &self,
        attempt: &mut Driven,
        head: response::Parts,
        body: Received,
        timer: &mut Pin<&mut Sleep>,
        limit: Limit,
    ) -> Came {
        let mut read = Gathered::default();
        let reading = {
            let reading = pin!(read_up_to(READ_WHOLE, attempt, body, &mut read));
            before(timer, reading).await
        };
        let begun = read.whole();
        match reading {
            Some(Ok(None)) => {
                let readable = Readable::new(&head.headers, &begun, true).await;
                let verdict = self.judge(attempt, &head, readable.as_body());
                let usage = attempt.usage();
                let head = with_its_own_status(head, &verdict);
                let answer = Answer {
                    head,
                    begun,
                    rest: None,
                    usage,
                };
                Came::Answered(answer, verdict)
            }
            // Too long to be kept: the caller gets it as it comes, and its end gives the verdict.
            Some(Ok(Some(rest))) => {
                let rest = Flow::Unwatched(rest);
                let usage = Usage::default();
                Came::Opened(Answer {
                    head,
                    begun,
                    rest,
                    usage,
                })
            }
            Some(Err(_)) => Came::Nothing(attempt.fault(Fault::Reset)),
            None => self.late(attempt, limit),
        }
    }

    fn judge(&self, attempt: &mut Driven, head: &response::Parts, body: Body<'_>) -> Verdict {
        let answer = fuseline_llm::Answer {
            provider: &self.judge.rules,
            operation: self.facts.operation(),
            head: Some(Head::new(head.status.as_u16(), &head.headers)),
            body,
            ending: Ending::Complete,
        };
        let now = attempt.now();
        attempt.answered(&self.judge.classifier, &answer, wall(), now)
    }

    /// The language of an answer that is a stream which can be watched.
    fn language(&self, head: &response::Parts) -> Option<(Dialect, Framing)> {
        let dialect = self.facts.dialect().filter(|_| !is_coded(&head.headers))?;
        let content_type = text_of(&head.headers, CONTENT_TYPE);
        let framing = framing(content_type, dialect, self.facts.shape())?;
        Some((dialect, framing))
    }

    /// What is not an answer of a model, files for example, and streams that cannot be watched.
    fn passes_unwatched(&self, head: &response::Parts) -> bool {
        let kind = text_of(&head.headers, CONTENT_TYPE);
        let is_stream =
            Framing::of_content_type(kind).is_some_and(|framing| framing != Framing::JsonArray);
        is_stream || self.facts.operation() == Operation::Other
    }
}

/// What comes of a future before the timer goes off; none where it did not come in time.
async fn before<T>(
    timer: &mut Pin<&mut Sleep>,
    future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = timer.as_mut() => None,
    }
}

/// Reads a body to its end, or until more than `most` bytes are read: then the rest comes back.
async fn read_up_to(
    most: usize,
    attempt: &mut Driven,
    mut body: Received,
    read: &mut Gathered,
) -> Result<Option<Received>, hyper::Error> {
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let now = attempt.now();
        attempt.body(data.len(), now);
        read.push(data);
        if read.len() > most {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// What time it is for the world, since providers name dates.
#[expect(
    clippy::disallowed_methods,
    reason = "wait hints may be dates, and are compared with today's"
)]
fn wall() -> SystemTime {
    SystemTime::now()
}
