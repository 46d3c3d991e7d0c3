//! `SqliteQueue`: calls that wait, in a SQLite file of their own.
//!
//! The file is apart from that of breaker states: it is synced at every commit, it may be read by its owner alone, it is
//! overwritten where something was deleted, and damage to one of the two costs nothing of the other.

mod rows;

use std::ffi::OsString;
use std::path::Path;

#[cfg(test)]
use rusqlite::Connection;
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::database::Database;
use super::rows::signed;
use super::schema;
use crate::error::StoreError;
use crate::queue::{
    Digest, Found, Lease, NewCall, Outlook, PATIENCE, Queue, QueueConfig, QueueError, Sent,
    Submitted, Taken, millis, size,
};

/// Calls in a file.
///
/// ```no_run
/// use std::path::Path;
/// use std::time::Duration;
///
/// use fuseline_store::{NewCall, Queue as _, QueueConfig, SqliteQueue, Submitted};
///
/// let config = QueueConfig {
///     max_calls: 1_000,
///     max_bytes: 64 << 20,
///     expires: Duration::from_secs(24 * 3_600),
///     ttl: Duration::from_secs(24 * 3_600),
///     lease: Duration::from_secs(60),
///     lane_places: 1,
/// };
/// let mut queue = SqliteQueue::beside(Path::new("fuseline.db"), config)?;
/// let call = NewCall {
///     id: "q-5eed".to_owned(), // by chance, in earnest
///     lane: "gpt-5".to_owned(),
///     tenant: [7; 32],
///     name: None,
///     request: b"...".to_vec(),
/// };
/// let now = 1_800_000_000_000;
/// assert_eq!(queue.submit(&call, now)?, Submitted::Kept);
/// # Ok::<(), fuseline_store::QueueError>(())
/// ```
#[derive(Debug)]
pub struct SqliteQueue {
    database: Database,
    config: QueueConfig,
    /// Calls that have expired since the last look.
    expired: u64,
}

impl SqliteQueue {
    /// Opens the queue that lies beside this state file, under its name with `.queue`, or makes it. Whoever sent calls
    /// from it before is gone, so that their leases are over. A damaged file is moved aside and reported in the log.
    ///
    /// # Errors
    /// It belongs to something else, to a newer version or to another process, or the system refuses.
    pub fn beside(state: &Path, config: QueueConfig) -> Result<Self, StoreError> {
        let mut path: OsString = state.into();
        path.push(".queue");
        let mut database = Database::open(Path::new(&path), &schema::QUEUE)?;
        database.run(|connection| {
            connection.execute("UPDATE calls SET leased_ms = 0 WHERE leased_ms > 0", [])
        })?;
        Ok(Self {
            database,
            config,
            expired: 0,
        })
    }

    /// The same without a sync at every commit, which would be most of the time of a test.
    #[cfg(test)]
    pub(crate) fn unsynced(mut self) -> Self {
        let off =
            |connection: &mut Connection| connection.execute_batch("PRAGMA synchronous = OFF");
        self.database.run(off).unwrap();
        self
    }

    /// Lets calls expire that have waited for too long, and forgets what was kept for long enough.
    fn sweep(&mut self, now: u64) -> Result<(), QueueError> {
        self.expired += self.change(|transaction, config| rows::sweep(transaction, config, now))?;
        Ok(())
    }

    /// Does something in one transaction.
    fn change<T>(
        &mut self,
        act: impl FnOnce(&Transaction<'_>, &QueueConfig) -> rusqlite::Result<T>,
    ) -> Result<T, QueueError> {
        self.database.must_be_there()?;
        let config = &self.config;
        let done = self.database.run(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&transaction, config)?;
            transaction.commit()?;
            Ok(done)
        });
        Ok(done?)
    }
}

impl Queue for SqliteQueue {
    fn submit(&mut self, call: &NewCall, now: u64) -> Result<Submitted, QueueError> {
        self.sweep(now)?;
        self.change(|transaction, config| {
            if let Some(name) = &call.name
                && let Some(id) = rows::known(transaction, name)?
            {
                return Ok(Submitted::Known(id));
            }
            let (waiting, bytes) = rows::sums(transaction)?;
            if waiting >= config.max_calls || bytes.saturating_add(call.size()) > config.max_bytes {
                return Ok(Submitted::Full);
            }
            transaction.execute(
                "INSERT INTO calls (id, lane, tenant, name, state, size, ends_ms, request, result)
                 VALUES (?1, ?2, ?3, ?4, 'waiting', ?5, ?6, ?7, x'')",
                params![
                    call.id,
                    call.lane,
                    call.tenant,
                    call.name,
                    signed(call.size()),
                    signed(now.saturating_add(millis(config.expires))),
                    call.request,
                ],
            )?;
            Ok(Submitted::Kept)
        })
    }

    fn look(&mut self, now: u64) -> Result<Outlook, QueueError> {
        self.sweep(now)?;
        let expired = std::mem::take(&mut self.expired);
        self.change(|transaction, config| {
            let (waiting, bytes) = rows::sums(transaction)?;
            let mut statement = transaction.prepare(
                "SELECT lane FROM calls WHERE state = 'waiting' GROUP BY lane
                 HAVING sum(leased_ms > ?1) < min(?2, count(*)) ORDER BY min(seq)",
            )?;
            let lanes =
                statement.query_map(params![signed(now), config.lane_places], |row| row.get(0))?;
            Ok(Outlook {
                waiting,
                bytes,
                expired,
                lanes: lanes.collect::<Result<_, _>>()?,
            })
        })
    }

    fn take(&mut self, lane: &str, now: u64) -> Result<Option<Taken>, QueueError> {
        self.change(|transaction, config| {
            let under_way: u32 = transaction.query_row(
                "SELECT count(*) FROM calls WHERE state = 'waiting' AND lane = ?1 AND leased_ms > ?2",
                params![lane, signed(now)],
                |row| row.get(0),
            )?;
            if under_way >= config.lane_places {
                return Ok(None);
            }
            let mut statement = transaction.prepare(
                "UPDATE calls SET sends = sends + 1, token = token + 1, leased_ms = ?3 WHERE seq =
                    (SELECT seq FROM calls WHERE state = 'waiting' AND lane = ?1 AND leased_ms <= ?2 AND ends_ms > ?2
                     ORDER BY sends / ?4, seq LIMIT 1)
                 RETURNING id, token, request, sends, strikes",
            )?;
            let leased = signed(now.saturating_add(millis(config.lease)));
            let values = params![lane, signed(now), leased, PATIENCE];
            let taken = statement.query_row(values, rows::taken);
            taken.optional()
        })
    }

    fn keep(&mut self, lease: &Lease, now: u64) -> Result<bool, QueueError> {
        self.change(|transaction, config| {
            let leased = signed(now.saturating_add(millis(config.lease)));
            let kept = transaction.execute(
                "UPDATE calls SET leased_ms = ?3 WHERE id = ?1 AND token = ?2 AND state = 'waiting' AND leased_ms > 0",
                params![lease.id, signed(lease.token), leased],
            )?;
            Ok(kept > 0)
        })
    }

    fn give_back(&mut self, lease: &Lease, how: Sent, _now: u64) -> Result<bool, QueueError> {
        self.change(|transaction, _| {
            let given = transaction.execute(
                "UPDATE calls SET leased_ms = 0, sends = sends - ?3, strikes = strikes + ?4
                 WHERE id = ?1 AND token = ?2 AND state = 'waiting' AND leased_ms > 0",
                params![
                    lease.id,
                    signed(lease.token),
                    how == Sent::NotAtAll,
                    how == Sent::InVain,
                ],
            )?;
            Ok(given > 0)
        })
    }

    fn finish(&mut self, id: &str, result: &[u8], now: u64) -> Result<bool, QueueError> {
        self.change(|transaction, config| {
            let done = transaction.execute(
                "UPDATE calls SET state = 'done', request = x'', result = ?2, size = ?3, ends_ms = ?4, leased_ms = 0
                 WHERE id = ?1 AND state = 'waiting'",
                params![
                    id,
                    result,
                    signed(size(result)),
                    signed(now.saturating_add(millis(config.ttl))),
                ],
            )?;
            Ok(done > 0)
        })
    }

    fn find(&mut self, id: &str, tenant: &Digest, now: u64) -> Result<Option<Found>, QueueError> {
        self.sweep(now)?;
        self.change(|transaction, _| {
            let mut statement = transaction.prepare(
                "SELECT state, sends, ends_ms, leased_ms > ?3, result,
                    (SELECT count(*) FROM calls AS other WHERE other.state = 'waiting' AND other.lane = calls.lane
                     AND other.seq < calls.seq)
                 FROM calls WHERE id = ?1 AND tenant = ?2",
            )?;
            let found = statement.query_row(params![id, tenant, signed(now)], rows::found);
            found.optional()
        })
    }

    fn remove(&mut self, id: &str, tenant: &Digest, _now: u64) -> Result<bool, QueueError> {
        self.change(|transaction, _| {
            let removed = transaction.execute(
                "DELETE FROM calls WHERE id = ?1 AND tenant = ?2",
                params![id, tenant],
            )?;
            Ok(removed > 0)
        })
    }

    fn is_durable(&mut self) -> Result<bool, QueueError> {
        Ok(true)
    }
}
