//! `Refusal`: an answer of the gateway's own, in the shape that the caller's SDK expects of an error.

mod reasons;

use std::time::Duration;

use fuseline_llm::Protocol;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, Response, StatusCode};
use serde_json::{Value, json};

use super::respond::{Body, SHOULD_RETRY, no_retry, whole};
use super::story::Story;
pub(crate) use reasons::unreadable;

/// Up to this wait an SDK should try again by itself.
const PATIENCE: Duration = Duration::from_secs(8);
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// An answer of the gateway's own: why a call was not, or not any more, sent to anybody.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry: Retry,
    line: Line,
}

/// What becomes of the caller's connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Kept,
    /// What follows on it cannot be trusted to be a request.
    Closed,
}

/// Why no target takes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Every refusal is about a key.
    RateLimited,
    Open,
}

/// What an SDK is told about trying again.
#[derive(Clone, Copy, Debug)]
enum Retry {
    /// Nothing: its own rules do.
    Unsaid,
    /// Worth it after this long.
    After(Duration),
    /// It was all tried already.
    Never,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry: Retry::Unsaid,
            line: Line::Kept,
        }
    }

    /// What is wrong, in one word.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The answer, as SDKs of this dialect expect an error, with what became of the call.
    pub(crate) fn into_response(mut self, protocol: Protocol, story: &Story) -> Response<Body> {
        if story.is_outcome_unknown() {
            self.message += "; unknown outcome: the request may have been carried out";
        }
        let mut body = self.body(protocol);
        if !story.is_empty()
            && let Some(error) = body.get_mut("error").and_then(Value::as_object_mut)
            && let Ok(Value::Object(told)) = serde_json::to_value(story)
        {
            error.extend(told);
        }
        let mut response = Response::new(whole(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.line == Line::Closed {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        match self.retry {
            Retry::Unsaid => {}
            Retry::Never => no_retry(headers),
            Retry::After(wait) => {
                let millis = wait.as_millis().clamp(1, u128::from(u64::MAX));
                let seconds = u64::try_from(millis.div_ceil(1_000)).unwrap_or(u64::MAX);
                headers.insert(RETRY_AFTER, seconds.into());
                headers.insert(
                    RETRY_AFTER_MS,
                    u64::try_from(millis).unwrap_or(u64::MAX).into(),
                );
                let worth_it = if wait <= PATIENCE { "true" } else { "false" };
                headers.insert(SHOULD_RETRY, HeaderValue::from_static(worth_it));
            }
        }
        response
    }

    fn body(&self, protocol: Protocol) -> Value {
        let Self {
            status,
            code,
            message,
            ..
        } = self;
        // Two dialects have no field for our code; there the message begins with it.
        match protocol {
            Protocol::Anthropic => {
                let kind = match status.as_u16() {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    503 => "overloaded_error",
                    504 => "timeout_error",
                    _ => "api_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": format!("{code}: {message}")}})
            }
            Protocol::Gemini => {
                let name = match status.as_u16() {
                    400 | 413 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    501 => "UNIMPLEMENTED",
                    503 => "UNAVAILABLE",
                    504 => "DEADLINE_EXCEEDED",
                    _ => "INTERNAL",
                };
                json!({"error": {"code": status.as_u16(), "message": format!("{code}: {message}"), "status": name}})
            }
            _ => {
                let kind = match status.as_u16() {
                    429 => "rate_limit_error",
                    400..=499 => "invalid_request_error",
                    _ => "server_error",
                };
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "no target of model `m` takes calls now (a/m: circuit open); retry in 1 s";

    fn open(wait_ms: u64) -> Refusal {
        Refusal::circuit_open(
            Cause::Open,
            "model `m`",
            "a/m: circuit open",
            Duration::from_millis(wait_ms),
        )
    }

    #[test]
    fn each_dialect_gets_its_own_error_shape() {
        let told = format!("circuit_open: {OPEN}");
        for (protocol, expected) in [
            (
                Protocol::OpenAi,
                json!({"error": {"message": OPEN, "type": "server_error", "param": null, "code": "circuit_open"}}),
            ),
            (
                Protocol::Anthropic,
                json!({"type": "error", "error": {"type": "overloaded_error", "message": told}}),
            ),
            (
                Protocol::Gemini,
                json!({"error": {"code": 503, "message": told, "status": "UNAVAILABLE"}}),
            ),
        ] {
            assert_eq!(open(1).body(protocol), expected);
        }
    }

    #[test]
    fn waits_are_rounded_up_and_long_ones_are_not_worth_a_retry() {
        for (wait_ms, seconds, millis, should) in [
            (0, "1", "1", "true"),
            (1_001, "2", "1001", "true"),
            (8_000, "8", "8000", "true"),
            (8_001, "9", "8001", "false"),
        ] {
            let answer = open(wait_ms).into_response(Protocol::OpenAi, &Story::default());
            let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(answer.status(), 503);
            assert_eq!(
                [
                    header("retry-after"),
                    header("retry-after-ms"),
                    header("x-should-retry")
                ],
                [seconds, millis, should]
            );
        }
    }
}
