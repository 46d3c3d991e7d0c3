//! What is asked of all calls at once, and calls as rows.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::super::rows::{signed, unsigned};
use crate::queue::{Digest, Found, Lease, QueueConfig, ROW, Stage, Taken, millis};

/// How many calls have expired.
pub(super) fn sweep(
    transaction: &Transaction<'_>,
    config: &QueueConfig,
    now: u64,
) -> rusqlite::Result<u64> {
    let is_due = "SELECT EXISTS (SELECT 1 FROM calls WHERE state = 'waiting' AND ends_ms <= ?1)
        OR EXISTS (SELECT 1 FROM calls WHERE state IN ('done', 'expired') AND ends_ms <= ?1)";
    if !transaction.query_row(is_due, [signed(now)], |row| row.get::<_, bool>(0))? {
        return Ok(0);
    }
    transaction.execute(
        "DELETE FROM calls WHERE state IN ('done', 'expired') AND ends_ms <= ?1",
        [signed(now)],
    )?;
    let expired = transaction.execute(
        "UPDATE calls SET state = 'expired', name = NULL, request = x'', size = ?2, ends_ms = ?3, leased_ms = 0
         WHERE state = 'waiting' AND ends_ms <= ?1 AND leased_ms <= ?1",
        params![
            signed(now),
            signed(ROW),
            signed(now.saturating_add(millis(config.ttl)))
        ],
    )?;
    Ok(expired as u64)
}

/// Calls that wait, and the bytes of all.
pub(super) fn sums(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    connection.query_row(
        "SELECT (SELECT count(*) FROM calls WHERE state = 'waiting'), (SELECT coalesce(sum(size), 0) FROM calls)",
        [],
        |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))),
    )
}

pub(super) fn known(connection: &Connection, name: &Digest) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare("SELECT id FROM calls WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn taken(row: &Row<'_>) -> rusqlite::Result<Taken> {
    let lease = Lease {
        id: row.get(0)?,
        token: unsigned(row.get(1)?),
    };
    Ok(Taken {
        lease,
        request: row.get(2)?,
        sends: row.get(3)?,
        strikes: row.get(4)?,
    })
}

pub(super) fn found(row: &Row<'_>) -> rusqlite::Result<Found> {
    let state: String = row.get(0)?;
    let stage = match state.as_str() {
        "done" => Stage::Done {
            result: row.get(4)?,
        },
        "expired" => Stage::Expired,
        _ if row.get(3)? => Stage::Sending,
        _ => Stage::Waiting {
            ahead: unsigned(row.get(5)?),
        },
    };
    Ok(Found {
        stage,
        sends: row.get(1)?,
        ends_ms: unsigned(row.get(2)?),
    })
}
