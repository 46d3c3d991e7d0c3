//! An exchange with a provider, as a command line or a recorded line tells it.

use std::time::SystemTime;

use clap::ValueEnum;
use fuseline_llm::{
    Answer, Body, Classifier, Ending, Fault, Framing, Head, Operation, Transcript, Verdict,
};
use serde::Deserialize;

/// Everything that is known of it.
pub(super) struct Exchange {
    pub(super) provider: String,
    pub(super) operation: Operation,
    pub(super) status: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Received,
    pub(super) transport: Transport,
}

/// What came after the head.
pub(super) enum Received {
    Whole(Vec<u8>),
    Cut(Vec<u8>),
    Stream(Transcript),
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(super) enum Transport {
    /// By the end of the answer
    Eof,
    /// The connection broke within the answer
    Reset,
    /// The answer fell silent
    IdleTimeout,
    /// The caller left
    ClientAbort,
    /// The host's name has no address
    DnsFailure,
    /// Nobody listens
    ConnectRefused,
    /// No connection in time
    ConnectTimeout,
    /// The TLS handshake failed
    TlsHandshake,
    /// The connection broke before an answer came
    ResetBeforeHeaders,
    /// No answer in time
    ReadTimeoutBeforeHeaders,
    /// The peer did not begin with the request
    Http2Goaway,
}

/// How a stream is written down.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub(super) enum Format {
    /// Server-sent events
    Sse,
    /// One JSON text a line
    #[serde(rename = "ndjson")]
    #[value(name = "ndjson")]
    NdJson,
    /// One JSON array
    JsonArray,
    /// The binary frames of AWS
    AwsEventstream,
}

impl Exchange {
    /// Whether it says enough to be judged: without an answer, why there was none.
    pub(super) fn is_told(&self) -> bool {
        self.status.is_some() || self.transport != Transport::Eof
    }

    pub(super) fn judge(&self, classifier: &Classifier, now: SystemTime) -> Verdict {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let headers = headers.as_slice();
        let answer = Answer {
            provider: &self.provider,
            operation: self.operation,
            head: self.status.map(|status| Head::new(status, &headers)),
            body: match &self.body {
                Received::Whole(body) => Body::Whole(body),
                Received::Cut(body) => Body::Cut(body),
                Received::Stream(transcript) => Body::Stream(transcript),
            },
            ending: self.transport.ending(),
        };
        classifier.classify(&answer, now)
    }
}

impl Transport {
    const fn ending(self) -> Ending {
        let fault = match self {
            Self::Eof => return Ending::Complete,
            Self::ClientAbort => return Ending::Left,
            Self::Reset | Self::ResetBeforeHeaders => Fault::Reset,
            Self::IdleTimeout => Fault::Stall,
            Self::DnsFailure => Fault::Dns,
            Self::ConnectRefused => Fault::Refused,
            Self::ConnectTimeout => Fault::ConnectTimeout,
            Self::TlsHandshake => Fault::Tls,
            Self::ReadTimeoutBeforeHeaders => Fault::Deadline,
            Self::Http2Goaway => Fault::NotProcessed,
        };
        Ending::Broken(fault)
    }
}

impl Format {
    pub(super) const fn framing(self) -> Framing {
        match self {
            Self::Sse => Framing::Sse,
            Self::NdJson => Framing::NdJson,
            Self::JsonArray => Framing::JsonArray,
            Self::AwsEventstream => Framing::EventStream,
        }
    }
}

/// A time as RFC 3339 writes it, in UTC.
pub(super) fn time(text: &str) -> Result<SystemTime, &'static str> {
    humantime::parse_rfc3339(text).map_err(|_| "write a time such as 2026-11-30T12:00:00Z")
}
