//! The way out: the caller's answer, with the headers that every answer carries.

use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::Protocol;
use http::Response;
use http::header::{AGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http_body_util::Either;
use serde_json::Value;

use super::cache::{Keeper, Kept};
use super::context::Context;
use super::course::{Ending, Repeating};
use super::exchange::{Answer, Flow};
use super::headers;
use super::passing::{Passing, Watch};
use super::queue::queued;
use super::refusal::Refusal;
use super::streaming::Streaming;
use super::whole::Whole;

/// What the gateway sends: bytes that it has, or an upstream's body as it comes, looked into or not. An answer is moved
/// several times before it is sent, so what is large stays where it is.
pub(crate) type Body = Either<Whole, Either<Box<Passing>, Box<Streaming>>>;

/// SDKs obey it before their own rules.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Makes the caller's answer of how his call ended.
/// A good answer is kept, where there is a keeper.
pub(crate) fn respond(
    ending: Ending,
    protocol: Protocol,
    mut context: Context,
    keeper: Option<Keeper>,
) -> Response<Body> {
    match ending {
        Ending::Opened(
            Answer {
                mut head,
                begun,
                rest,
                ..
            },
            attempt,
            patience,
        ) => {
            let keeper = keeper.map(|mut keeper| {
                keeper.begin(&head.headers);
                keeper
            });
            context.dress(&mut head.headers);
            context.answer(head.status);
            let body = match rest {
                Flow::Watched(stream) => {
                    let streaming = Streaming::new(stream, attempt, patience, context, keeper);
                    Either::Right(Box::new(streaming))
                }
                Flow::Unwatched(rest) => {
                    let watch = Watch {
                        attempt,
                        patience,
                        context,
                    };
                    Either::Left(Box::new(Passing::new(begun, rest, Some(watch))))
                }
            };
            Response::from_parts(head, Either::Right(body))
        }
        Ending::Answered(
            Answer {
                mut head,
                begun,
                rest,
                ..
            },
            repeating,
        ) => {
            if let (Some(keeper), None, true) = (keeper, &rest, context.is_success()) {
                keeper.keep_plain(&head.headers, &begun, context.now());
            }
            if repeating == Repeating::Useless {
                no_retry(&mut head.headers);
            }
            let body = match rest {
                Some(rest) => {
                    Either::Right(Either::Left(Box::new(Passing::new(begun, rest, None))))
                }
                None => whole(begun),
            };
            dressed(Response::from_parts(head, body), context)
        }
        Ending::Recalled(kept, age) => recalled(kept, age, context),
        Ending::Queued(receipt) => queued(&receipt, context),
        Ending::Refused(refusal) => refused(refusal, protocol, context),
    }
}

/// An answer of the past, as it came, and marked.
fn recalled(kept: Kept, age: Duration, mut context: Context) -> Response<Body> {
    let mut response = Response::new(whole(kept.body));
    *response.headers_mut() = kept.headers;
    response.headers_mut().insert(AGE, age.as_secs().into());
    headers::unbuffer_stream(response.headers_mut());
    context.recalled(age);
    dressed(response, context)
}

/// Makes an answer of ours to a call that was not served.
pub(crate) fn refused(
    refusal: Refusal,
    protocol: Protocol,
    mut context: Context,
) -> Response<Body> {
    context.refuses();
    if context.why().is_empty() {
        context.because(refusal.code());
    }
    dressed(refusal.into_response(protocol, context.story()), context)
}

/// Adds our headers to an answer that is at hand.
pub(crate) fn dressed(mut response: Response<Body>, mut context: Context) -> Response<Body> {
    context.dress(response.headers_mut());
    context.answer(response.status());
    response
}

/// Tells an SDK that repeating is of no use, whatever the upstream said of its own answer.
pub(super) fn no_retry(headers: &mut HeaderMap) {
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
}

/// A body that is at hand.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Either::Left(Whole::from(bytes.into()))
}

/// A plain answer.
pub(crate) fn json_answer(body: &Value) -> Response<Body> {
    let mut response = Response::new(whole(body.to_string()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
