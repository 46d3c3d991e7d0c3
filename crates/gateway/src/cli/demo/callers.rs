//! The demo's callers: each sends the same call twice, through the gateway and straight to a twin of the primary.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep, timeout};

/// Carries the number of a call, so that it is known again where it arrives.
pub(super) const CALL_HEADER: &str = "x-demo-call";
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often, and after which wait, a caller without Fuseline tries again: as the usual SDKs do unless told otherwise.
const SDK_RETRIES: u32 = 2;
const SDK_WAIT: Duration = Duration::from_millis(500);

/// A client, shared by all callers of one side.
pub(super) type Line = Client<HttpConnector, Full<Bytes>>;

/// A line without any open connection.
pub(super) fn line() -> Line {
    Client::builder(TokioExecutor::new()).build_http()
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) number: usize,
    pub(super) streamed: Streamed,
    pub(super) began: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streamed {
    No,
    Yes,
}

/// Who answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Primary,
    /// The spare, without the primary being asked.
    Spare,
    /// The spare, after the primary had failed.
    SpareAfterFailure,
    Nobody,
}

/// How a call went.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) number: usize,
    pub(super) began: Instant,
    pub(super) took: Duration,
    pub(super) answer: Answer,
}

impl Call {
    fn done(self, answer: Answer) -> Done {
        Done {
            number: self.number,
            began: self.began,
            took: self.began.elapsed(),
            answer,
        }
    }

    fn request(&self, url: &str) -> Result<Request<Full<Bytes>>, http::Error> {
        let body = serde_json::json!({
            "model": "demo",
            "stream": self.streamed == Streamed::Yes,
            "messages": [{"role": "user", "content": format!("Question {}", self.number)}],
        });
        Request::post(format!("{url}/v1/chat/completions"))
            .header(CONTENT_TYPE, "application/json")
            .header(CALL_HEADER, self.number)
            .body(Full::new(body.to_string().into()))
    }

    /// One attempt: the headers of a good and whole answer.
    async fn attempt(&self, line: &Line, url: &str) -> Option<HeaderMap> {
        let request = self.request(url).ok()?;
        let answer = async {
            let (head, body) = line.request(request).await.ok()?.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            let whole = match self.streamed {
                Streamed::Yes => body.ends_with(b"data: [DONE]\n\n"),
                Streamed::No => serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok(),
            };
            (head.status == StatusCode::OK && whole).then_some(head.headers)
        };
        timeout(PATIENCE, answer).await.ok().flatten()
    }
}

/// Makes a call through the gateway; it takes care of everything, so there is one attempt.
pub(super) async fn with_gateway(line: Line, url: String, call: Call) -> Done {
    let headers = call.attempt(&line, &url).await;
    let answer = headers.map_or(Answer::Nobody, |headers| {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let target = text("x-fuseline-target").unwrap_or_default();
        match text("x-fuseline-attempts") {
            _ if target.starts_with("primary/") => Answer::Primary,
            Some("1") => Answer::Spare,
            _ => Answer::SpareAfterFailure,
        }
    });
    call.done(answer)
}

/// Makes a call straight to the primary. `lag` (0 to 1) spreads the waits between its attempts.
pub(super) async fn without_gateway(line: Line, url: String, call: Call, lag: f64) -> Done {
    for retry in 0..=SDK_RETRIES {
        if call.attempt(&line, &url).await.is_some() {
            return call.done(Answer::Primary);
        }
        if retry < SDK_RETRIES {
            sleep(SDK_WAIT.mul_f64(f64::from(1 << retry) * (1.0 - lag / 4.0))).await;
        }
    }
    call.done(Answer::Nobody)
}
