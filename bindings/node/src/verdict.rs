//! `Verdict` and `classify`: what an answer means, by the same rules as everywhere.

use std::fmt;
use std::time::SystemTime;

use fuseline::classify::{
    Answer, Body, Classifier, Ending, Event, Fault, Head, Operation, Transcript,
};
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
    let headers: Vec<_> = exchange
        .headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let headers = headers.as_slice();
    let transcript = exchange.events.map(|events| {
        let mut transcript = Transcript::default();
        for (name, data) in &events {
            transcript.note(&Event { name, data });
        }
        transcript
    });
    let answer = Answer {
        provider: &exchange.provider,
        operation: if exchange.asks {
            Operation::Create
        } else {
            Operation::Other
        },
        head: exchange.status.map(|status| Head::new(status, &headers)),
        body: match (&transcript, &exchange.body) {
            (Some(transcript), _) => Body::Stream(transcript),
            (None, Some(body)) => Body::Whole(body),
            (None, None) => Body::Unread,
        },
        ending: match &exchange.fault {
            _ if exchange.has_left => Ending::Left,
            Some(fault) => Ending::Broken(fault_of(fault)?),
            None => Ending::Complete,
        },
    };
    let wall = match exchange.at_ms {
        Some(at) => SystemTime::UNIX_EPOCH + ms("atMs", at)?,
        None => wall(),
    };
    Ok(Verdict(Classifier::builtin().classify(&answer, wall)))
}

/// What time it is, for hints that are dates.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
fn wall() -> SystemTime {
    SystemTime::now()
}

/// Every fault, by the name that it has in logs.
const FAULTS: [Fault; 9] = [
    Fault::Dns,
    Fault::Refused,
    Fault::Tls,
    Fault::ConnectTimeout,
    Fault::Stale,
    Fault::NotProcessed,
    Fault::Reset,
    Fault::Deadline,
    Fault::Stall,
];

pub(crate) fn fault_of(name: &str) -> napi::Result<Fault> {
    let fault = FAULTS.into_iter().find(|fault| fault.as_str() == name);
    fault.ok_or_else(|| {
        let names = FAULTS.map(Fault::as_str).join(", ");
        invalid(format!("fault is `{name}`, must be one of {names}"))
    })
}
