//! `QueueState`: how the queue fares, on the metrics page.

use crate::family::Family;
use crate::names;

/// How the queue fares. What is counted is this process's; what waits is everybody's who shares the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct QueueState {
    /// Calls taken in.
    pub queued: u64,
    /// Calls that have got their answer.
    pub sent: u64,
    /// Calls that have failed too often.
    pub failed: u64,
    /// Calls that have waited for too long.
    pub expired: u64,
    /// Calls that found no room.
    pub refused: u64,
    /// Calls without an answer.
    pub waiting: u64,
    /// Bytes of requests and results.
    pub bytes: u64,
    /// Whether it cannot be read or written.
    pub is_failing: bool,
}

impl QueueState {
    pub(crate) fn families(&self) -> Vec<Family> {
        let counters = [
            (names::QUEUE_KEPT, self.queued),
            (names::QUEUE_SENT, self.sent),
            (names::QUEUE_FAILED, self.failed),
            (names::QUEUE_EXPIRED, self.expired),
            (names::QUEUE_REFUSED, self.refused),
        ];
        let gauges = [
            (names::QUEUE_WAITING, self.waiting),
            (names::QUEUE_BYTES, self.bytes),
            (names::QUEUE_FAILING, self.is_failing.into()),
        ];
        Family::numbers(counters, gauges)
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::Registry;

    use super::*;
    use crate::{Catalogue, Metrics};

    #[test]
    fn how_the_queue_fares_is_on_the_page_where_there_is_one() {
        let metrics = Metrics::new(&Registry::default(), Catalogue::default());
        let page = |queue| metrics.page(None, None, queue).unwrap();
        assert!(!page(None).contains("queue_"));
        let page = page(Some(QueueState {
            queued: 9,
            sent: 5,
            failed: 1,
            expired: 2,
            refused: 3,
            waiting: 4,
            bytes: 6,
            is_failing: true,
        }));
        for line in [
            "queue_queued_total 9",
            "queue_sent_total 5",
            "queue_failed_total 1",
            "queue_expired_total 2",
            "queue_refused_total 3",
            "queue_waiting 4",
            "queue_bytes 6",
            "queue_failing 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}
