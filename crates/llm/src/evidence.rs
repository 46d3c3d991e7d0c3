//! What an attempt's ending was seen by: a status, a rule of the tables, or what happened on the wire.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fuseline_core::UnknownName;

use crate::stream::StreamEnding;

/// What happened on the wire, where no answer, or no whole one, came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The name of the host has no address.
    Dns,
    /// Nobody listens, or the host cannot be reached.
    Refused,
    /// The TLS handshake failed.
    Tls,
    /// No connection within the limit for connecting.
    ConnectTimeout,
    /// A connection from the pool was closed without one byte of an answer: the peer had given it up before.
    Stale,
    /// The peer said that it did not begin: GOAWAY before our stream, or a refused stream.
    NotProcessed,
    /// The connection broke after some of the request was sent.
    Reset,
    /// One of our limits passed: first byte, first token, the whole answer.
    Deadline,
    /// An answer that had begun fell silent for longer than the limit between bytes.
    Stall,
}

impl Fault {
    /// Every fault, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::Dns,
        Self::Refused,
        Self::Tls,
        Self::ConnectTimeout,
        Self::Stale,
        Self::NotProcessed,
        Self::Reset,
        Self::Deadline,
        Self::Stall,
    ];

    /// The name in logs, which also [`FromStr`] reads.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::Tls => "tls",
            Self::ConnectTimeout => "connect_timeout",
            Self::Stale => "stale_connection",
            Self::NotProcessed => "not_processed",
            Self::Reset => "reset",
            Self::Deadline => "deadline",
            Self::Stall => "stall",
        }
    }

    /// Whether the provider cannot have begun to work on the request.
    pub const fn nothing_sent(self) -> bool {
        matches!(
            self,
            Self::Dns | Self::Refused | Self::Tls | Self::ConnectTimeout
        )
    }

    /// Whether a connection was at fault rather than the provider: worth one more, which is no retry.
    pub const fn is_replaceable(self) -> bool {
        matches!(self, Self::Stale | Self::NotProcessed)
    }
}

impl FromStr for Fault {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|fault| fault.as_str() == name);
        found.ok_or_else(|| UnknownName::new("fault", name, Self::ALL.map(Self::as_str)))
    }
}

/// On what a verdict rests. Never holds text of an answer's body: what a rule found is told in the rule's own words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// The answer came to its end.
    Complete,
    /// The HTTP status.
    Status(u16),
    /// The status of a redirect, which is never followed.
    Redirect(u16),
    /// A success status over a body of no bytes.
    EmptyBody,
    /// A success status over a body in which there is nothing to use: blank, no answer, or an answer without content.
    NoContent,
    /// An error inside a success answer, which no rule knows better, with the status that it names.
    ErrorInAnswer(Option<u16>),
    /// A stream that ended without its end marker.
    NoEnd,
    /// The caller left.
    CallerLeft,
    /// A connection's end.
    Fault(Fault),
    /// No answer, or no whole one, within one of our limits.
    Late {
        /// The limit's name in configuration.
        limit: &'static str,
        /// What it was.
        after: Duration,
    },
    /// How a stream went on after its head.
    Stream(StreamEnding),
    /// A rule of the tables.
    Rule(Citation),
}

/// Which rule decided, and by what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Citation {
    pub(crate) rule: Arc<str>,
    pub(crate) saw: Arc<str>,
    pub(crate) status: Option<u16>,
}

impl Citation {
    /// The rule's full name: its table and its id, like `openai/spent-quota`.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What the rule found, in its own words: `code insufficient_quota`, `phrase "credit balance"`.
    pub fn saw(&self) -> &str {
        &self.saw
    }
}

impl Evidence {
    /// The HTTP status of the failure: the answer's, or the one that an error inside a success answer names.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::Redirect(status) => Some(*status),
            Self::Rule(citation) => citation.status,
            Self::ErrorInAnswer(status) => *status,
            _ => None,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Redirect(status) => write!(f, "redirect {status}"),
            Self::EmptyBody => f.write_str("empty body"),
            Self::NoContent => f.write_str("no usable content"),
            Self::ErrorInAnswer(None) => f.write_str("error in a success answer"),
            Self::ErrorInAnswer(Some(status)) => {
                write!(f, "error in a success answer, status {status}")
            }
            Self::NoEnd => f.write_str("no end marker"),
            Self::CallerLeft => f.write_str("the caller left"),
            Self::Fault(fault) => f.write_str(fault.as_str()),
            Self::Late { limit, after } => {
                let after = humantime::format_duration(*after);
                write!(f, "no answer within {after} (limit {limit})")
            }
            Self::Stream(ending) => ending.fmt(f),
            Self::Rule(citation) => citation.fmt(f),
        }
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.rule)?;
        let status = self.status.map(|status| format!("status {status}"));
        let saw = Some(&*self.saw).filter(|saw| !saw.is_empty());
        for (part, before) in saw.into_iter().chain(status.as_deref()).zip([": ", ", "]) {
            write!(f, "{before}{part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_faults_lead_back() {
        for fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
        let error = "eof".parse::<Fault>().unwrap_err().to_string();
        assert!(
            error.starts_with("`eof` is no fault; there are dns, refused, tls"),
            "{error}"
        );
    }
}
