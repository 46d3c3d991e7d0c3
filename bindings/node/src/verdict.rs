//! `Verdict` and `classify`: what an answer means, by the same rules as everywhere.

use std::fmt;
use std::time::SystemTime;

use fuseline::UnknownName;
use fuseline::classify::Fault;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::policy::{in_ms, invalid, ms};

/// How an attempt went.
#[napi]
#[derive(Debug)]
pub struct Verdict(pub(crate) fuseline::classify::Verdict);

#[napi]
impl Verdict {
    /// What went wrong; none is a success.
    #[napi(getter)]
    pub fn kind(&self) -> Option<&'static str> {
        self.0.kind.map(|kind| kind.as_str())
    }

    /// Whether nothing did.
    #[napi(getter)]
    pub fn is_success(&self) -> bool {
        self.0.is_success()
    }

    /// What the evidence names.
    #[napi(getter)]
    pub fn scope(&self) -> &'static str {
        self.0.scope.as_str()
    }

    /// Whether it speaks against the provider.
    #[napi(getter)]
    pub fn provider_fault(&self) -> bool {
        self.0.provider_fault
    }

    /// Whether the same request may do better.
    #[napi(getter)]
    pub fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// The provider's wait hint.
    #[napi(getter)]
    pub fn retry_after_ms(&self) -> Option<f64> {
        self.0.retry_after.map(in_ms)
    }

    /// On what it rests.
    #[napi(getter)]
    pub fn evidence(&self) -> String {
        self.0.evidence.to_string()
    }
}

/// An exchange as far as it came.
#[napi(object, object_to_js = false)]
pub struct Exchange {
    /// Whose rules beside the common ones.
    pub provider: String,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, where it was read.
    pub body: Option<Uint8Array>,
    /// A stream's events: names and data.
    pub events: Option<Vec<(String, String)>>,
    /// What happened on the wire.
    pub fault: Option<String>,
    /// The caller left.
    pub has_left: bool,
    /// A model was asked for an answer.
    pub asks: bool,
    /// What time it is, since 1970; now unless given.
    pub at_ms: Option<f64>,
}

// Headers and bodies may hold secrets, so only the status is shown.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("provider", &self.provider)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The verdict on an exchange.
#[napi]
pub fn classify(exchange: Exchange) -> napi::Result<Verdict> {
    let headers = texts(&exchange.headers);
    let events = exchange.events.as_deref().map(texts);
    let fault = exchange.fault.as_deref().map(fault_of).transpose()?;
    let at = exchange.at_ms.map(|at| ms("atMs", at)).transpose()?;
    let exchange = fuseline::Exchange {
        provider: &exchange.provider,
        asks: exchange.asks,
        status: exchange.status,
        headers: &headers,
        body: exchange.body.as_deref(),
        events: events.as_deref(),
        fault,
        has_left: exchange.has_left,
    };
    let verdict = exchange.verdict(at.map(|at| SystemTime::UNIX_EPOCH + at));
    Ok(Verdict(verdict))
}

fn texts(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect()
}

pub(crate) fn fault_of(name: &str) -> napi::Result<Fault> {
    name.parse().map_err(|error: UnknownName| invalid(error))
}
