//! From what came back to a verdict, by the HTTP status and by how connections end.
//!
//! The rules are data: one table of statuses, one of faults. Bodies are not read.

use std::time::SystemTime;

use fuseline_core::{Kind, Scope};

use crate::evidence::{Evidence, Fault};
use crate::head::Head;
use crate::hints::{HintInput, wait_hint};
use crate::request::{Operation, Shape};
use crate::verdict::Verdict;

/// The first row that holds the status decides; what is in no row (100 to 199, 600 and more) is no HTTP answer and
/// a server error.
#[rustfmt::skip]
const STATUSES: [(u16, u16, Kind); 12] = [
    (300, 399, Kind::ServerError),    // a redirect: never followed, so the target is set up wrongly
    (401, 401, Kind::Auth),
    (402, 402, Kind::QuotaExhausted),
    (403, 403, Kind::Permission),
    (404, 404, Kind::NotFound),
    (408, 408, Kind::Timeout),
    (425, 425, Kind::Timeout),
    (429, 429, Kind::RateLimit),
    (499, 499, Kind::Cancelled),      // a proxy on the way believes that we have left
    (400, 498, Kind::BadRequest),     // 400, 409, 413, 415, 422 and every other 4xx
    (529, 529, Kind::Overloaded),
    (500, 599, Kind::ServerError),    // 500, 502, 503, 504, 520 to 526 and every unknown 5xx
];

const NOT_MODIFIED: u16 = 304;

/// What a fault means, and what it means once a stream has begun.
#[rustfmt::skip]
const FAULTS: [(Fault, Kind, Kind); 9] = [
    (Fault::Dns,            Kind::Network, Kind::Network),
    (Fault::Refused,        Kind::Network, Kind::Network),
    (Fault::Tls,            Kind::Network, Kind::Network),
    (Fault::ConnectTimeout, Kind::Timeout, Kind::Timeout),
    (Fault::Stale,          Kind::Network, Kind::Network),
    (Fault::NotProcessed,   Kind::Network, Kind::Network),
    (Fault::Reset,          Kind::Network, Kind::StreamTruncated),
    (Fault::Deadline,       Kind::Timeout, Kind::Timeout),
    (Fault::Stall,          Kind::Timeout, Kind::StreamStall),
];

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    BeforeHead,
    Body(Shape),
}

/// The verdict on a head that is no success, with its wait hint; none for 2xx, whose body decides, and for 304, which
/// answers what the caller asked. `wall` is what time it is, for hints that are dates.
pub fn classify_head(head: &Head<'_>, wall: SystemTime) -> Option<Verdict> {
    let status = head.status();
    if head.is_success() || status == NOT_MODIFIED {
        return None;
    }
    let kind = STATUSES
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&status))
        .map_or(Kind::ServerError, |(_, _, kind)| *kind);
    if (300..400).contains(&status) {
        return Some(Verdict {
            retryable: false,
            ..Verdict::failure(kind, Evidence::Redirect(status))
        });
    }
    let mut verdict = Verdict::failure(kind, Evidence::Status(status));
    if verdict.retryable || kind == Kind::QuotaExhausted {
        let seen = HintInput {
            provider: "",
            headers: head.headers(),
            body: None,
            sentence: None,
        };
        verdict.retry_after = wait_hint(&seen, wall).map(|hint| hint.wait);
    }
    Some(verdict)
}

/// The verdict on a body that came to its end under a success status.
pub(crate) fn classify_end(operation: Operation, body_bytes: u64) -> Verdict {
    match (operation, body_bytes) {
        (Operation::Create, 0) => Verdict::failure(Kind::EmptyResponse, Evidence::EmptyBody),
        _ => Verdict::success(),
    }
}

/// The verdict on an exchange that ended by a fault.
pub(crate) fn classify_fault(fault: Fault, phase: Phase) -> Verdict {
    // Whoever has answered had begun.
    let fault = if phase != Phase::BeforeHead && fault.is_replaceable() {
        Fault::Reset
    } else {
        fault
    };
    let row = FAULTS.iter().find(|(name, ..)| *name == fault);
    let kind = row.map_or(Kind::Network, |(_, usually, in_stream)| match phase {
        Phase::Body(Shape::Stream) => *in_stream,
        Phase::BeforeHead | Phase::Body(Shape::Plain) => *usually,
    });
    let verdict = Verdict::failure(kind, Evidence::Fault(fault));
    if fault == Fault::ConnectTimeout {
        Verdict {
            scope: Scope::Provider,
            ..verdict
        }
    } else {
        verdict
    }
}

#[cfg(test)]
mod tests;
