//! Lines that say when something happened, counted from the start of the program.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

#[derive(Serialize)]
struct Timed<'a, E> {
    at_ms: u64,
    #[serde(flatten)]
    event: &'a E,
}

/// Writes an event as one line of JSON, its time first.
pub(super) fn write_json(
    out: &mut impl Write,
    at: Duration,
    event: &impl Serialize,
) -> io::Result<()> {
    let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    serde_json::to_writer(&mut *out, &Timed { at_ms, event })?;
    writeln!(out)
}

/// `mm:ss.t`
pub(super) fn clock(at: Duration) -> String {
    let tenths = at.as_millis() / 100;
    format!(
        "{:02}:{:02}.{}",
        tenths / 600,
        tenths / 10 % 60,
        tenths % 10
    )
}
