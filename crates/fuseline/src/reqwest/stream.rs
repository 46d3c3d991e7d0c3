//! Streamed answers of models: which they are, and their bodies as guarded streams.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fuseline_core::Kind;
use fuseline_llm::{
    Dialect, Fault, Framing, Protocol, RequestFacts, Shape, StreamTimers, reasoning_first_token,
};
use futures_core::Stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use http_body::{Body as _, Frame};
use reqwest::{Body, Request};

use super::fault;
use crate::bytes::{GuardedBytes, StreamError, StreamTerms};
use crate::permit::Permit;

/// What a stream will be in that answers this request; none where it asks no model, or nobody knows.
pub(super) fn terms(request: &Request, timers: Option<&StreamTimers>) -> Option<StreamTerms> {
    let path = request.url().path();
    let is_post = request.method() == Method::POST;
    let dialect = Dialect::of_path(path).filter(|_| is_post)?;
    let timers = timers
        .cloned()
        .unwrap_or_else(|| usual_timers(request, path));
    Some(StreamTerms::new(dialect).timers(timers))
}

/// The default limits, with time to think for a model that needs it.
fn usual_timers(request: &Request, path: &str) -> StreamTimers {
    let usual = StreamTimers::default();
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let facts = RequestFacts::read(Protocol::of_path(path), &Method::POST, path, body);
    let thinks = facts.model().and_then(reasoning_first_token);
    StreamTimers {
        first_token: usual.first_token.max(thinks.unwrap_or_default()),
        ..usual
    }
}

/// The terms of an answer that these headers announce; none where it is no stream.
pub(super) fn announced(terms: StreamTerms, headers: &HeaderMap) -> Option<StreamTerms> {
    let media = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    match Framing::of_content_type(media)? {
        // One that nobody streams as well.
        Framing::JsonArray => None,
        framing => Some(terms.framing(framing)),
    }
}

/// The same body, watched.
pub(super) fn guarded(permit: Permit, body: Body, terms: StreamTerms) -> Body {
    let stream = permit.guard_bytes(Data(body), terms, tokio::time::sleep);
    Body::wrap(Guarded(stream.fault(|item| match item {
        Err(error) if fault(error, Shape::Stream) == Kind::StreamStall => Fault::Stall,
        _ => Fault::Reset,
    })))
}

/// What a body says, without trailers.
struct Data(Body);

impl Stream for Data {
    type Item = reqwest::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                Some(Ok(Err(_trailers))) => {}
            }
        }
    }
}

struct Guarded(GuardedBytes<Data>);

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = StreamError<reqwest::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let item = ready!(Pin::new(&mut self.0).poll_next(cx));
        Poll::Ready(item.map(|bytes| bytes.map(Frame::data)))
    }
}
