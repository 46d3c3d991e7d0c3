//! The table of what a failure leads to: the same target again, the next one, or the caller.

use fuseline_core::Kind;

use crate::evidence::Evidence;
use crate::target::Owner;

/// Whether the same target is worth another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// After the hint, or a growing delay.
    Backoff,
    /// Once, at once.
    AtOnce,
    Never,
}

/// Whether another target is worth an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Yes,
    /// At most once a call: the request may be running, and be paid for, where it was sent before.
    Once,
    /// The answer is the caller's, as it came.
    Never,
}

/// The table: what a failure of this kind leads to. `resend` is the operator's word that a request whose outcome is
/// unknown may be carried out twice.
pub(super) fn manners(
    kind: Kind,
    evidence: &Evidence,
    owner: Owner,
    resend: bool,
) -> (Again, Next) {
    match (kind, evidence) {
        _ if resend && is_outcome_unknown(kind, evidence) => (Again::Backoff, Next::Yes),
        (Kind::RateLimit | Kind::Overloaded | Kind::ServerError, _) => (Again::Backoff, Next::Yes),
        // 408, 504: somebody answered, so the end is known.
        (Kind::Timeout, _) if evidence.status().is_some() => (Again::Backoff, Next::Yes),
        (Kind::Timeout, Evidence::Fault(fault)) if fault.nothing_sent() => {
            (Again::Never, Next::Yes)
        }
        (Kind::Network, Evidence::Fault(fault))
            if fault.nothing_sent() || fault.is_replaceable() =>
        {
            (Again::AtOnce, Next::Yes)
        }
        (
            Kind::Network
            | Kind::Timeout
            | Kind::EmptyResponse
            | Kind::StreamStall
            | Kind::StreamTruncated,
            _,
        ) => (Again::Never, Next::Once),
        (Kind::QuotaExhausted | Kind::ContextLength, _) => (Again::Never, Next::Yes),
        (Kind::Auth | Kind::Permission, _) if owner == Owner::Gateway => (Again::Never, Next::Yes),
        _ => (Again::Never, Next::Never),
    }
}

/// Whether the request may have been carried out, and be paid for, without our seeing the end of it.
pub(crate) fn is_outcome_unknown(kind: Kind, evidence: &Evidence) -> bool {
    let broke_off = matches!(
        kind,
        Kind::Network | Kind::Timeout | Kind::StreamStall | Kind::StreamTruncated
    );
    let began = match evidence {
        Evidence::Fault(fault) => !fault.nothing_sent() && !fault.is_replaceable(),
        evidence => evidence.status().is_none(),
    };
    broke_off && began
}
