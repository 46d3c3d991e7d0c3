//! What an attempt's ending was seen by: a status, or what happened on the wire.

use std::fmt;

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
    /// The name in logs.
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

/// On what a verdict rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A connection's end.
    Fault(Fault),
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Redirect(status) => write!(f, "redirect {status}"),
            Self::EmptyBody => f.write_str("empty body"),
            Self::Fault(fault) => f.write_str(fault.as_str()),
        }
    }
}
