//! `Request` and `Watch`: what a request asks for, and the streamed answer to it under its permit.

use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use fuseline::classify::{
    Framing, Operation, Protocol, RequestFacts, Shape, StreamEnding, StreamTimers,
    reasoning_first_token,
};
use fuseline::{StreamError, StreamTerms};
use http::Method;
use napi::Env;
use napi::bindgen_prelude::BufferSlice;
use napi_derive::napi;

use crate::calls;
use crate::policy::{in_ms, invalid, ms};
use crate::verdict::fault_of;

/// What a request says about itself.
#[napi]
#[derive(Debug)]
pub struct Request(RequestFacts);

#[napi]
impl Request {
    /// Reads its path and body.
    #[napi(constructor)]
    pub fn new(method: String, path: String, body: &[u8]) -> Self {
        let method = method.parse().unwrap_or(Method::GET);
        let protocol = Protocol::of_path(&path);
        Self(RequestFacts::read(protocol, &method, &path, body))
    }

    /// Whether it asks a model for an answer.
    #[napi(getter)]
    pub fn asks(&self) -> bool {
        self.0.operation() == Operation::Create
    }

    /// Whether it asks for a stream.
    #[napi(getter)]
    pub fn streams(&self) -> bool {
        self.0.shape() == Shape::Stream
    }

    /// Whose dialect it is in.
    #[napi(getter)]
    pub fn provider(&self) -> &'static str {
        self.0.protocol().as_str()
    }

    /// Whether a streamed answer of this content type can be read.
    #[napi]
    pub fn is_readable(&self, content_type: String) -> bool {
        self.0.dialect().is_some() && framing(&content_type).is_some()
    }

    /// For how long nothing may be said: the usual limit, or longer for a model that is known to think.
    #[napi]
    pub fn first_token(&self) -> f64 {
        let thinks = self.0.model().and_then(reasoning_first_token);
        let usual = StreamTimers::default().first_token;
        in_ms(usual.max(thinks.unwrap_or_default()))
    }
}

/// The framing of a stream; an array of JSON may as well be a plain answer.
fn framing(content_type: &str) -> Option<Framing> {
    Framing::of_content_type(content_type).filter(|framing| *framing != Framing::JsonArray)
}

/// The limits of a stream; those left out are the usual ones.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct Limits {
    /// Until the first content event.
    pub first_token: Option<f64>,
    /// Between content events.
    pub stall: Option<f64>,
    /// Between bytes.
    pub idle: Option<f64>,
    /// In all.
    pub total: Option<f64>,
    /// Slower is too slow.
    pub min_tokens_per_second: Option<f64>,
    /// Who leaves after so long without content has waited in vain.
    pub cancel_counts_after: Option<f64>,
}

impl Limits {
    fn timers(&self, request: &Request) -> napi::Result<StreamTimers> {
        let usual = StreamTimers::default();
        let first_token = ms("firstToken", request.first_token())?;
        Ok(StreamTimers {
            first_token: limit("firstToken", self.first_token, first_token)?,
            stall: limit("stall", self.stall, usual.stall)?,
            idle: limit("idle", self.idle, usual.idle)?,
            total: self.total.map(|total| ms("total", total)).transpose()?,
            min_tokens_per_second: self.min_tokens_per_second.unwrap_or_default(),
            cancel_counts_after: limit(
                "cancelCountsAfter",
                self.cancel_counts_after,
                usual.cancel_counts_after,
            )?,
        })
    }
}

fn limit(key: &str, given: Option<f64>, usual: Duration) -> napi::Result<Duration> {
    given.map_or(Ok(usual), |given| ms(key, given))
}

/// What is wrong with a stream that is over.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct StreamFailure {
    /// The sentence.
    pub message: String,
    /// How it ended.
    pub ending: &'static str,
    /// What that is for the breaker.
    pub kind: &'static str,
}

/// A streamed answer under its permit.
#[napi]
#[derive(Debug)]
pub struct Watch(RefCell<Option<fuseline::Watch>>);

#[napi]
impl Watch {
    /// Takes over the permit at this place.
    #[napi(constructor)]
    pub fn new(
        place: u32,
        request: &Request,
        content_type: String,
        limits: Limits,
    ) -> napi::Result<Self> {
        let timers = limits.timers(request)?;
        let (Some(dialect), Some(framing)) = (request.0.dialect(), framing(&content_type)) else {
            return Err(invalid(format!(
                "a stream of {content_type} cannot be read here"
            )));
        };
        let Some(permit) = calls::take(place) else {
            return Err(invalid("the permit is settled already"));
        };
        let terms = StreamTerms::new(dialect).framing(framing).timers(timers);
        let terms = terms.provider(request.provider());
        let watch = fuseline::Watch::new(permit, terms);
        Ok(Self(RefCell::new(Some(watch))))
    }

    /// Bytes are asked for. Whether the stream is over.
    #[napi]
    pub fn asked(&self) -> bool {
        let mut watch = self.0.borrow_mut();
        let Some(watch) = watch.as_mut() else {
            return true;
        };
        watch.asked();
        watch.is_over()
    }

    /// A chunk has come; what goes on of it, and of those before it.
    #[napi]
    pub fn chunk<'env>(&self, env: &'env Env, chunk: &[u8]) -> napi::Result<BufferSlice<'env>> {
        self.tell(env, |watch| watch.bytes(Bytes::copy_from_slice(chunk)))
    }

    /// The body has come to its end; the last bytes that go on.
    #[napi]
    pub fn end<'env>(&self, env: &'env Env) -> napi::Result<BufferSlice<'env>> {
        self.tell(env, fuseline::Watch::end)
    }

    /// The connection has broken; the last bytes that go on.
    #[napi]
    pub fn broke<'env>(&self, env: &'env Env, fault: String) -> napi::Result<BufferSlice<'env>> {
        let fault = fault_of(&fault)?;
        self.tell(env, |watch| watch.broke(fault))
    }

    /// Nobody reads on: unless it is settled, the caller has left.
    #[napi]
    pub fn close(&self) {
        let watch = self.0.borrow_mut().take();
        drop(watch);
    }

    /// How long until a limit passes; none once the stream is over.
    #[napi]
    pub fn time_left(&self) -> Option<f64> {
        self.0.borrow().as_ref()?.time_left().map(in_ms)
    }

    /// What is wrong with a stream that is over; none with a complete one.
    #[napi]
    pub fn failure(&self) -> Option<StreamFailure> {
        let watch = self.0.borrow();
        let watch = watch.as_ref().filter(|watch| watch.is_over())?;
        let ending = watch.ending()?;
        if ending == StreamEnding::Complete {
            return None;
        }
        let kind = watch.kind();
        let told: StreamError<Infallible> = StreamError::Incomplete { ending, kind };
        Some(StreamFailure {
            message: told.to_string(),
            ending: ending.as_str(),
            kind: kind.as_str(),
        })
    }
}

impl Watch {
    /// Tells something, and gives what goes on thereupon. The bytes are JavaScript's own copy.
    fn tell<'env>(
        &self,
        env: &'env Env,
        what: impl FnOnce(&mut fuseline::Watch),
    ) -> napi::Result<BufferSlice<'env>> {
        let mut watch = self.0.borrow_mut();
        let Some(watch) = watch.as_mut() else {
            return BufferSlice::copy_from(env, []);
        };
        what(watch);
        BufferSlice::copy_from(env, watch.forward_all())
    }
}
