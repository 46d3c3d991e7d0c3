//! Recorded calls as CSV: a head that names the columns, then a call a row.

use std::io::BufRead;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use csv::{ReaderBuilder, StringRecord, Trim};
use fuseline_core::Kind;

use super::super::progress::Progress;
use super::log::Log;

/// The target of calls in a table that names none.
const ONLY: &str = "calls";
/// Seconds since 1970 up to here, milliseconds beyond: the year 5138, or a day in 1973.
const SECONDS_UP_TO: f64 = 1e11;

/// Where the columns are.
struct Columns {
    time: usize,
    outcome: usize,
    duration: usize,
    target: Option<usize>,
}

impl Columns {
    fn of(head: &StringRecord) -> anyhow::Result<Self> {
        let place = |names: &[&str]| {
            let is_it = |cell: &str| names.iter().any(|name| cell.eq_ignore_ascii_case(name));
            head.iter().position(is_it)
        };
        let need = |names: &[&str]| {
            let name = names.first().unwrap_or(&"");
            place(names).with_context(|| {
                let head: Vec<_> = head.iter().take(20).collect();
                format!(
                    "the head has no column `{name}`; it has {}",
                    head.join(", ")
                )
            })
        };
        Ok(Self {
            time: need(&["time", "timestamp"])?,
            outcome: need(&["outcome", "status", "kind"])?,
            duration: need(&["duration", "duration_ms", "took_ms"])?,
            target: place(&["target", "model", "provider"]),
        })
    }
}

/// Adds every row of a table.
pub(super) fn read(
    log: &mut Log,
    from: impl BufRead,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut rows = ReaderBuilder::new().trim(Trim::All).from_reader(from);
    let columns = Columns::of(rows.headers()?)?;
    let mut row = StringRecord::new();
    let mut read = 0;
    while rows.read_record(&mut row)? {
        add(log, &columns, &row).with_context(|| {
            let line = row.position().map_or(0, csv::Position::line);
            format!("line {line}")
        })?;
        let now = rows.position().byte();
        progress.add(now - read);
        read = now;
    }
    Ok(())
}

fn add(log: &mut Log, columns: &Columns, row: &StringRecord) -> anyhow::Result<()> {
    let cell = |place: usize| row.get(place).unwrap_or_default();
    let time = cell(columns.time);
    let at = date(time).with_context(|| {
        format!("time is {time:?}, must be RFC 3339, or seconds or milliseconds since 1970")
    })?;
    let text = cell(columns.duration);
    let took = duration(text)
        .with_context(|| format!("duration is {text:?}, must be like 1.5s, or milliseconds"))?;
    let result = outcome(cell(columns.outcome))?;
    let target = columns.target.map_or(ONLY, cell);
    log.add(target, at, took, None, result)
}

/// Milliseconds since 1970.
pub(super) fn date(text: &str) -> Option<u64> {
    let Ok(number) = text.parse::<f64>() else {
        let at = humantime::parse_rfc3339_weak(text).ok()?;
        let since = at.duration_since(UNIX_EPOCH).ok()?;
        return u64::try_from(since.as_millis()).ok();
    };
    let ms = if number < SECONDS_UP_TO {
        number * 1_000.0
    } else {
        number
    };
    whole(ms)
}

fn duration(text: &str) -> Option<u64> {
    if let Ok(ms) = text.parse::<f64>() {
        return whole(ms);
    }
    // humantime knows no fractions.
    let split = text.find(|sign: char| sign.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(split)?;
    let unit = humantime::parse_duration(&format!("1{unit}")).ok()?;
    whole(number.trim().parse::<f64>().ok()? * unit.as_secs_f64() * 1_000.0)
}

/// A number of milliseconds as there can be.
fn whole(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..1e15).contains(&ms)).then_some(ms as u64)
}

fn outcome(text: &str) -> anyhow::Result<Result<(), Kind>> {
    if ["ok", "success", "true"]
        .iter()
        .any(|ok| text.eq_ignore_ascii_case(ok))
        || text.is_empty()
    {
        return Ok(Ok(()));
    }
    if let Ok(status) = text.parse::<u16>() {
        return Ok(of_status(status));
    }
    match text.to_ascii_lowercase().as_str() {
        "error" | "failure" | "failed" | "false" => Ok(Err(Kind::ServerError)),
        name => match name.parse() {
            Ok(kind) => Ok(Err(kind)),
            Err(_) => bail!(
                "outcome is {text:?}, must be ok, error, an HTTP status, or a kind such as server_error"
            ),
        },
    }
}

/// What a bare status says; the classifier knows more where it sees the answer.
fn of_status(status: u16) -> Result<(), Kind> {
    match status {
        100..400 => Ok(()),
        401 => Err(Kind::Auth),
        403 => Err(Kind::Permission),
        404 => Err(Kind::NotFound),
        408 | 425 => Err(Kind::Timeout),
        429 => Err(Kind::RateLimit),
        499 => Err(Kind::Cancelled),
        400..500 => Err(Kind::BadRequest),
        503 | 529 => Err(Kind::Overloaded),
        500.. => Err(Kind::ServerError),
        // Nobody answered.
        _ => Err(Kind::Network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_in_every_form() {
        let at = Some(1_796_037_753_500);
        for text in ["2026-11-30T11:22:33.5Z", "1796037753.5", "1796037753500"] {
            assert_eq!(date(text), at, "{text}");
        }
        for text in ["", "yesterday", "-1", "NaN", "1e99"] {
            assert_eq!(date(text), None, "{text}");
        }
        let told = ["1500", "1.5s", "1500ms", "1.5 s", "0.025m"].map(duration);
        assert_eq!(told, [Some(1_500); 5]);
        for text in ["", "s", "soon", "-3", "1.5parsecs"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn outcomes_are_words_statuses_or_kinds() {
        for text in ["ok", "200", "Success", ""] {
            assert_eq!(outcome(text).unwrap(), Ok(()), "{text}");
        }
        for (text, kind) in [
            ("error", Kind::ServerError),
            ("500", Kind::ServerError),
            ("503", Kind::Overloaded),
            ("429", Kind::RateLimit),
            ("422", Kind::BadRequest),
            ("0", Kind::Network),
            ("stream_stall", Kind::StreamStall),
        ] {
            assert_eq!(outcome(text).unwrap(), Err(kind), "{text}");
        }
        let told = outcome("meh").unwrap_err().to_string();
        assert!(told.starts_with("outcome is \"meh\", must be ok"), "{told}");
    }
}
