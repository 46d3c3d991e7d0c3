//! `[listener]`: what bounds the callers' side, and the certificate that it shows.

use std::time::Duration;

use super::identity::{self, Identity};
use super::reader::Section;
use super::value::Size;

/// Bounds of the traffic listener, and its certificate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listener {
    /// `max_connections`: callers' connections at once; whoever comes after that waits to be accepted.
    pub max_connections: usize,
    /// `max_calls`: calls at once; further ones are refused with 503.
    pub max_calls: usize,
    /// `body_memory`: bytes that the bodies of all requests may take together; what exceeds it is refused with 503.
    pub body_memory: u64,
    /// `head_timeout`: for TLS, for a request's head, and for a connection without a call.
    pub head_timeout: Duration,
    /// `upload_idle`: between the bytes of a request's body.
    pub upload_idle: Duration,
    /// `upload_timeout`: for all of a request's body.
    pub upload_timeout: Duration,
    /// `cert_file` and `key_file`: what the listener speaks TLS with; none = plain HTTP.
    pub identity: Option<Identity>,
}

impl Listener {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let connections = count(
            section,
            "max_connections",
            20_000,
            "callers' connections at once; whoever comes after that waits",
        );
        let calls = count(
            section,
            "max_calls",
            10_000,
            "calls at once; further ones are refused with 503",
        );
        let memory = section.get(
            "body_memory",
            Size::mib(1024),
            "bytes that the bodies of all requests may take together; beyond it 503",
        );
        section.ensure(
            memory.0 > 0,
            "body_memory",
            "leaves no room for a request",
            "write at least \"1B\"",
        );
        let mut limit = |key, seconds, doc| {
            let limit = section.get(key, Duration::from_secs(seconds), doc);
            section.ensure_positive(limit, key);
            limit
        };
        Self {
            max_connections: connections,
            max_calls: calls,
            body_memory: memory.0,
            head_timeout: limit(
                "head_timeout",
                30,
                "for TLS, for a request's head, and for a connection without a call",
            ),
            upload_idle: limit("upload_idle", 60, "between the bytes of a request's body"),
            upload_timeout: limit("upload_timeout", 600, "for all of a request's body"),
            identity: identity::read(section),
        }
    }
}

fn count(
    section: &mut Section<'_, '_>,
    key: &'static str,
    default: u32,
    doc: &'static str,
) -> usize {
    let count = section.get(key, default, doc);
    let allowed = (1..=1_000_000).contains(&count);
    section.ensure(allowed, key, "is out of range", "write 1 to 1000000");
    usize::try_from(count).unwrap_or(usize::MAX)
}
