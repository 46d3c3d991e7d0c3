//! One attempt on the wire: sent, waited for under its time limits, and what came back judged.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use fuseline_core::{Clock, Tick};
use fuseline_llm::{
    Attempt, Body, Classifier, Ending, Fault, Head, Operation, RequestFacts, Shape, Verdict,
};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use http::{Request, StatusCode, Version, response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use tokio::time::{Instant, timeout_at};

use super::client::{Pool, Proven, fault};
use super::headers;

/// A plain answer up to this size is read whole before it is passed on, so that one that is of no use can still fall
/// over.
const READ_WHOLE: usize = 8 << 20;
/// What is read of a failure before it is judged.
const READ_FAILURE: usize = 64 << 10;

/// An attempt with a clock: one that is dropped is cancelled as of that moment.
pub(crate) struct Driven {
    attempt: Attempt,
    clock: Clock,
}

impl Driven {
    pub(crate) fn new(attempt: Attempt, clock: Clock) -> Self {
        Self { attempt, clock }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    fn fault(&mut self, fault: Fault) -> Verdict {
        let now = self.now();
        self.failed(fault, now)
    }
}

impl Deref for Driven {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.attempt
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Attempt {
        &mut self.attempt
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.attempt.cancelled(now);
    }
}

/// What an attempt brought.
pub(crate) enum Came {
    /// An answer that is passed on as it comes; there is no verdict yet.
    Opened(Answer<Incoming>),
    /// An answer that is at hand, and the verdict on it.
    Answered(Answer<Option<Incoming>>, Verdict),
    /// No whole answer.
    Nothing(Verdict),
}

/// An upstream's answer: its head without the hop's headers, what was read of its body, and what was not.
pub(crate) struct Answer<R> {
    pub(crate) head: response::Parts,
    pub(crate) begun: Bytes,
    pub(crate) rest: R,
}

/// One request to be sent, and how its answer is read and judged.
pub(crate) struct Exchange<'x> {
    pub(crate) facts: &'x RequestFacts,
    pub(crate) classifier: &'x Classifier,
    /// Whose rules apply.
    pub(crate) rules: &'x str,
    /// For the head where the answer is passed on as it comes, for all of it otherwise.
    pub(crate) limit: Duration,
}

impl Exchange<'_> {
    /// Sends the request and waits for the answer.
    pub(crate) async fn run(
        &self,
        attempt: &mut Driven,
        pool: &Pool,
        request: Request<Full<Bytes>>,
    ) -> Came {
        let deadline = Instant::now() + self.limit;
        let response = match timeout_at(deadline, pool.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Came::Nothing(attempt.fault(fault(&error))),
            Err(_) => return Came::Nothing(attempt.fault(Fault::Deadline)),
        };
        Proven::note(&response);
        let now = attempt.now();
        attempt.head(response.status().as_u16(), now);
        let (head, body) = response.into_parts();
        let head = for_the_caller(head);
        if is_no_answer(head.status) {
            return Came::Nothing(self.judge(attempt, &head, Body::Unread));
        }
        let is_failure = !is_good(head.status);
        if !is_failure && self.passes_as_it_comes(&head) {
            return Came::Opened(Answer {
                head,
                begun: Bytes::new(),
                rest: body,
            });
        }
        let most = if is_failure { READ_FAILURE } else { READ_WHOLE };
        let mut read = BytesMut::new();
        let reading = timeout_at(deadline, read_up_to(most, attempt, body, &mut read)).await;
        let begun = read.freeze();
        match reading {
            Ok(Ok(None)) => {
                let verdict = self.judge(attempt, &head, body_of(&head.headers, &begun));
                let head = with_its_own_status(head, &verdict);
                let rest = None;
                Came::Answered(Answer { head, begun, rest }, verdict)
            }
            Ok(Ok(rest)) if is_failure => {
                let verdict = self.judge(attempt, &head, cut_body_of(&head.headers, &begun));
                Came::Answered(Answer { head, begun, rest }, verdict)
            }
            // Too long to be kept: the caller gets it as it comes, and its end gives the verdict.
            Ok(Ok(Some(rest))) => Came::Opened(Answer { head, begun, rest }),
            // A failure that breaks off has said by its status and its first words what it is.
            Ok(Err(_)) | Err(_) if is_failure => {
                Came::Nothing(self.judge(attempt, &head, cut_body_of(&head.headers, &begun)))
            }
            Ok(Err(_)) => Came::Nothing(attempt.fault(Fault::Reset)),
            Err(_) => Came::Nothing(attempt.fault(Fault::Deadline)),
        }
    }

    fn judge(&self, attempt: &mut Driven, head: &response::Parts, body: Body<'_>) -> Verdict {
        let answer = fuseline_llm::Answer {
            provider: self.rules,
            operation: self.facts.operation(),
            head: Some(Head::new(head.status.as_u16(), &head.headers)),
            body,
            ending: Ending::Complete,
        };
        let now = attempt.now();
        attempt.answered(self.classifier, &answer, wall(), now)
    }

    /// Streams, and what is not an answer of a model: files are not read into memory.
    fn passes_as_it_comes(&self, head: &response::Parts) -> bool {
        let kind = text_of(&head.headers, CONTENT_TYPE);
        let is_stream =
            self.facts.shape() == Shape::Stream || kind.starts_with("text/event-stream");
        is_stream || self.facts.operation() == Operation::Other
    }
}

/// The head as the caller may see it.
fn for_the_caller(mut head: response::Parts) -> response::Parts {
    head.version = Version::HTTP_11;
    let reason = head.extensions.remove::<ReasonPhrase>();
    head.extensions.clear();
    reason.map(|reason| head.extensions.insert(reason));
    headers::strip_answer(&mut head.headers);
    headers::unbuffer_stream(&mut head.headers);
    head
}

/// An error inside a success answer that names its status gets it: no SDK would see the error otherwise. The body stays
/// as it came.
fn with_its_own_status(mut head: response::Parts, verdict: &Verdict) -> response::Parts {
    let named = verdict.evidence.status().filter(|status| *status >= 400);
    if let (true, Some(Ok(status))) = (head.status.is_success(), named.map(StatusCode::from_u16)) {
        head.status = status;
        head.extensions.remove::<ReasonPhrase>();
    }
    head
}

/// Whether a caller gets such an answer whatever its body holds.
fn is_good(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::NOT_MODIFIED
}

/// Whether this is nothing that a caller may get: another address to call, which would take his key along, or another
/// protocol to speak.
fn is_no_answer(status: StatusCode) -> bool {
    status.is_informational() || is_redirect(status)
}

/// Whether a status points elsewhere.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    status.is_redirection() && status != StatusCode::NOT_MODIFIED
}

/// What a whole body tells. A coded one (gzip and its like) is not decoded: only its status and headers tell.
fn body_of<'b>(headers: &HeaderMap, body: &'b Bytes) -> Body<'b> {
    if is_coded(headers) && !body.is_empty() {
        Body::Unread
    } else {
        Body::Whole(body)
    }
}

/// What the beginning of a body tells.
fn cut_body_of<'b>(headers: &HeaderMap, body: &'b Bytes) -> Body<'b> {
    if is_coded(headers) {
        Body::Unread
    } else {
        Body::Cut(body)
    }
}

fn is_coded(headers: &HeaderMap) -> bool {
    let coding = text_of(headers, CONTENT_ENCODING).trim();
    headers.contains_key(CONTENT_ENCODING) && !coding.eq_ignore_ascii_case("identity")
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Reads a body to its end, or until more than `most` bytes are read: then the rest comes back.
async fn read_up_to(
    most: usize,
    attempt: &mut Driven,
    mut body: Incoming,
    read: &mut BytesMut,
) -> Result<Option<Incoming>, hyper::Error> {
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let now = attempt.now();
        attempt.body(data.len(), now);
        read.extend_from_slice(&data);
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
