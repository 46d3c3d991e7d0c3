//! Records and entries as rows.

use fuseline_core::{ScopeName, State};
use rusqlite::{Connection, Row, Transaction, params};

use crate::entry::Entry;
use crate::moment::Boot;
use crate::record::{End, Record};

/// Every record that can be read, by name.
pub(super) fn records(connection: &Connection) -> rusqlite::Result<Vec<Record>> {
    let mut statement = connection.prepare(
        "SELECT scope, provider, part, state, since_ms, end_ms, end_boot_ms, full_ms, taken_ms, boot_id, boot_ms, counts
         FROM breakers",
    )?;
    let rows = statement.query_map([], |row| {
        let record = record(row)?;
        if record.is_none() {
            let name: String = row.get(1)?;
            tracing::warn!(
                provider = name,
                "a kept state cannot be read, and is left out"
            );
        }
        Ok(record)
    })?;
    let mut records: Vec<Record> = rows
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    records.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(records)
}

/// None where a newer program has written what this one does not know.
fn record(row: &Row<'_>) -> rusqlite::Result<Option<Record>> {
    let (scope, provider, part): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let name = match scope.as_str() {
        "provider" => ScopeName::provider(&provider),
        "model" => ScopeName::model(&provider, &part),
        "key" => ScopeName::key(&provider, &part),
        _ => return Ok(None),
    };
    let state: String = row.get(3)?;
    let state = State::ALL.into_iter().find(|known| known.as_str() == state);
    let counts = serde_json::from_str(&row.get::<_, String>(11)?).ok();
    let (Some(state), Some(counts)) = (state, counts) else {
        return Ok(None);
    };
    let boot: Option<(String, i64)> = row.get::<_, Option<_>>(9)?.zip(row.get(10)?);
    let end_boot: Option<i64> = row.get(6)?;
    let end: Option<(i64, i64)> = row.get::<_, Option<_>>(5)?.zip(row.get(7)?);
    Ok(Some(Record {
        name,
        state,
        since_ms: unsigned(row.get(4)?),
        end: end.map(|(wall, full)| End {
            wall_ms: unsigned(wall),
            boot_ms: end_boot.map(unsigned),
            full_ms: unsigned(full),
        }),
        taken_ms: unsigned(row.get(8)?),
        boot: boot.map(|(id, ms)| Boot {
            id: id.into(),
            ms: unsigned(ms),
        }),
        counts,
    }))
}

pub(super) fn put_records(
    transaction: &Transaction<'_>,
    records: &[Record],
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare(
        "INSERT OR REPLACE INTO breakers (scope, provider, part, state, since_ms, end_ms, end_boot_ms, full_ms,
         taken_ms, boot_id, boot_ms, counts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for record in records {
        let (scope, provider, part) = key(&record.name);
        let (end, boot) = (record.end.as_ref(), record.boot.as_ref());
        let counts = serde_json::to_string(&record.counts)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        statement.execute(params![
            scope,
            provider,
            part,
            record.state.as_str(),
            signed(record.since_ms),
            end.map(|end| signed(end.wall_ms)),
            end.and_then(|end| end.boot_ms).map(signed),
            end.map(|end| signed(end.full_ms)),
            signed(record.taken_ms),
            boot.map(|boot| &*boot.id),
            boot.map(|boot| signed(boot.ms)),
            counts,
        ])?;
    }
    Ok(())
}

pub(super) fn forget(transaction: &Transaction<'_>, names: &[ScopeName]) -> rusqlite::Result<()> {
    let mut statement = transaction
        .prepare("DELETE FROM breakers WHERE scope = ?1 AND provider = ?2 AND part = ?3")?;
    for name in names {
        statement.execute(key(name))?;
    }
    Ok(())
}

/// Adds to the history, and lets its oldest entries go where there are more than `most`.
pub(super) fn put_entries(
    transaction: &Transaction<'_>,
    entries: &[Entry],
    most: u32,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare(
        r#"INSERT OR IGNORE INTO transitions (at_ms, breaker, scope, run, number, "from", "to", until_ms, cause, why)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"#,
    )?;
    for entry in entries {
        statement.execute(params![
            signed(entry.at_ms),
            entry.breaker,
            entry.scope,
            signed(entry.run),
            signed(entry.number),
            entry.from,
            entry.to,
            entry.until_ms.map(signed),
            entry.cause,
            entry.why,
        ])?;
    }
    transaction.execute(
        "DELETE FROM transitions WHERE id <= (SELECT max(id) FROM transitions) - ?1",
        [most],
    )?;
    Ok(())
}

/// The last entries, oldest first.
pub(super) fn entries(
    connection: &Connection,
    breaker: Option<&str>,
    most: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection.prepare(
        r#"SELECT at_ms, breaker, scope, run, number, "from", "to", until_ms, cause, why FROM transitions
         WHERE ?1 IS NULL OR breaker = ?1 ORDER BY id DESC LIMIT ?2"#,
    )?;
    let rows = statement.query_map(params![breaker, most], |row| {
        Ok(Entry {
            at_ms: unsigned(row.get(0)?),
            breaker: row.get(1)?,
            scope: row.get(2)?,
            run: unsigned(row.get(3)?),
            number: unsigned(row.get(4)?),
            from: row.get(5)?,
            to: row.get(6)?,
            until_ms: row.get::<_, Option<i64>>(7)?.map(unsigned),
            cause: row.get(8)?,
            why: row.get(9)?,
        })
    })?;
    let mut entries: Vec<Entry> = rows.collect::<Result<_, _>>()?;
    entries.reverse();
    Ok(entries)
}

fn key(name: &ScopeName) -> (&'static str, &str, &str) {
    let part = name.part().unwrap_or_default();
    (name.scope().as_str(), name.provider_name(), part)
}

/// SQLite knows signed numbers only. What is beyond them is farther away than matters.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
