//! The drill's callers, and what became of their calls.

use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::Protocol;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use tokio::time::{Instant, timeout};

/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// A client, shared by all callers.
pub(super) type Line = Client<HttpConnector, Full<Bytes>>;

/// A line without any open connection.
pub(super) fn line() -> Line {
    Client::builder(TokioExecutor::new()).build_http()
}

/// A call to be made.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) url: String,
    pub(super) model: String,
    pub(super) protocol: Protocol,
    pub(super) is_streamed: bool,
    /// Since the start of the drill.
    pub(super) at: Duration,
}

/// Who answered a call, or why nobody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The first target.
    First,
    /// Another one, or the cache.
    Fallback,
    /// Nobody: the answer was an error.
    Failed,
    /// A stream began and was not finished.
    Broken,
}

/// What became of a call.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Done {
    pub(super) at_ms: u64,
    pub(super) took_ms: u64,
    pub(super) streamed: bool,
    pub(super) outcome: Outcome,
    /// None where no answer came.
    pub(super) status: Option<u16>,
    /// Who answered last.
    pub(super) target: Option<String>,
    /// The gateway's own word for what happened.
    pub(super) why: Option<String>,
}

impl Call {
    /// Makes it.
    pub(super) async fn make(self, line: Line) -> Done {
        let began = Instant::now();
        let answer = timeout(PATIENCE, self.answer(&line)).await.ok().flatten();
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (status, headers, is_whole) = answer.unwrap_or_default();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let outcome = match (status == StatusCode::OK, is_whole) {
            (true, true) if text("x-fuseline-fallback") == Some("true") => Outcome::Fallback,
            (true, true) => Outcome::First,
            (true, false) if !headers.is_empty() => Outcome::Broken,
            _ => Outcome::Failed,
        };
        Done {
            at_ms: u64::try_from(self.at.as_millis()).unwrap_or(u64::MAX),
            took_ms,
            streamed: self.is_streamed,
            outcome,
            status: (!headers.is_empty()).then_some(status.as_u16()),
            target: text("x-fuseline-target").map(str::to_owned),
            why: text("x-fuseline-why").map(str::to_owned),
        }
    }

    async fn answer(&self, line: &Line) -> Option<(StatusCode, HeaderMap, bool)> {
        let request = self.request().ok()?;
        let (head, mut body) = line.request(request).await.ok()?.into_parts();
        let mut bytes = Vec::new();
        let mut is_cut = false;
        while let Some(frame) = body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => bytes.extend_from_slice(&data),
                Ok(Err(_)) => {}
                Err(_) => is_cut = true,
            }
        }
        Some((head.status, head.headers, !is_cut && self.is_whole(&bytes)))
    }

    fn is_whole(&self, body: &[u8]) -> bool {
        let end: &[u8] = match (self.is_streamed, self.protocol) {
            (false, _) => return serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok(),
            (true, Protocol::Anthropic) => b"message_stop",
            (true, _) => b"data: [DONE]",
        };
        let last = body.len().saturating_sub(200);
        let tail = body.get(last..).unwrap_or_default();
        tail.windows(end.len()).any(|part| part == end)
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, http::Error> {
        let path = match self.protocol {
            Protocol::Anthropic => "/v1/messages",
            _ => "/v1/chat/completions",
        };
        let body = serde_json::json!({
            "model": self.model,
            "max_tokens": 100,
            "stream": self.is_streamed,
            "messages": [{"role": "user", "content": format!("Call at {:?}", self.at)}],
        });
        Request::post(format!("{}{path}", self.url))
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, "Bearer no-key-needed")
            .header("x-api-key", "no-key-needed")
            .header("anthropic-version", "2023-06-01")
            .body(Full::new(body.to_string().into()))
    }
}
