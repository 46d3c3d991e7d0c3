//! What a status alone says, and what a fault does: two tables, the last resort after the rules.

use fuseline_core::{Kind, Scope};

use crate::evidence::{Evidence, Fault};
use crate::request::Shape;
use crate::verdict::Verdict;

/// The first row that holds the status decides; what is in no row (100 to 199, 600 and more) is no HTTP answer and
/// a server error.
#[rustfmt::skip]
const STATUSES: [(u16, u16, Kind); 15] = [
    (300, 399, Kind::ServerError),    // a redirect: never followed, so the target is set up wrongly
    (401, 401, Kind::Auth),
    (402, 402, Kind::QuotaExhausted),
    (403, 403, Kind::Permission),
    (404, 404, Kind::NotFound),
    (408, 408, Kind::Timeout),
    (425, 425, Kind::ServerError),    // the server did not want early data: nothing is wrong with the request
    (429, 429, Kind::RateLimit),
    (499, 499, Kind::Cancelled),      // a proxy on the way believes that we have left
    (400, 498, Kind::BadRequest),     // 400, 409, 413, 415, 422 and every other 4xx
    (504, 504, Kind::Timeout),
    (522, 522, Kind::Timeout),
    (524, 524, Kind::Timeout),
    (529, 529, Kind::Overloaded),
    (500, 599, Kind::ServerError),    // 500, 502, 503, 520 to 526 and every unknown 5xx
];

/// The kind that a status stands for where nothing else is known.
pub(super) fn kind_of(status: u16) -> Kind {
    STATUSES
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&status))
        .map_or(Kind::ServerError, |(_, _, kind)| *kind)
}

/// The verdict by a status alone.
pub(super) fn by_status(status: u16) -> Verdict {
    let kind = kind_of(status);
    if (300..400).contains(&status) {
        return Verdict {
            provider_fault: false,
            retryable: false,
            ..Verdict::failure(kind, Evidence::Redirect(status))
        };
    }
    Verdict::failure(kind, Evidence::Status(status))
}

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
