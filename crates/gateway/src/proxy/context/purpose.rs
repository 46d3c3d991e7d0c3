//! `Purpose`: what a call is made for, and whom its end is told to beside the log.

use fuseline_core::Kind;
use tokio::sync::oneshot;

/// Whom a call's end is told to, beside the log.
pub(super) enum Purpose {
    /// Nobody: a caller's own call.
    Call,
    /// It is no call, but a question about one that waits.
    Errand,
    /// Whoever sends calls that have waited.
    Delivery(oneshot::Sender<Delivered>),
}

/// How a call ended that was sent from the queue.
pub(crate) struct Delivered {
    /// What went wrong last; none is a success.
    pub(crate) kind: Option<Kind>,
    /// Requests that were sent to a target.
    pub(crate) attempts: u32,
}

impl Purpose {
    /// The call is over.
    pub(super) fn tell(&mut self, end: Delivered) {
        if let Self::Delivery(teller) = std::mem::replace(self, Self::Call) {
            // Nobody may be waiting for it any more.
            let _told = teller.send(end);
        }
    }
}
