//! `fuseline history`: what breakers did, from the file that keeps their state.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use fuseline_store::{Entry, Sqlite};

use super::source::ConfigFile;

/// Show what breakers did: every change of state that is kept, with its reasons
///
/// Reads the state file, also while a gateway writes it. The last 10,000 changes are kept. Times are UTC.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// The state file [default: what the configuration says, else fuseline.db]
    #[arg(long, env = "FUSELINE_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
    /// Only this breaker, such as openai, openai/gpt-5 or openai#0
    #[arg(long, value_name = "NAME")]
    breaker: Option<String>,
    /// How many changes, counted from the last
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    last: u32,
    /// Print a JSON list instead, times in milliseconds since 1970
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let path = match &self.state {
            Some(path) => path.clone(),
            None => {
                let report = self.file.load_without_secrets();
                let Some(config) = report.config else {
                    for finding in &report.findings {
                        writeln!(io::stderr().lock(), "{finding}")?;
                    }
                    return Ok(ExitCode::FAILURE);
                };
                config.state.unwrap_or_else(|| "off".into())
            }
        };
        if path.as_os_str() == "off" {
            anyhow::bail!(
                "state is \"off\", so that no history is kept; set it to a file, or name one with --state"
            );
        }
        let entries = Sqlite::history(&path, self.breaker.as_deref(), self.last)?;
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &entries)?;
            writeln!(out)?;
        } else if entries.is_empty() {
            writeln!(out, "no changes of state are kept")?;
        } else {
            write_table(&mut out, &entries)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(out: &mut impl Write, entries: &[Entry]) -> io::Result<()> {
    let head = ["TIME", "BREAKER", "FROM", "TO", "UNTIL", "WHY"].map(str::to_owned);
    let rows = entries.iter().map(row);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    for row in &rows {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(entry: &Entry) -> [String; 6] {
    [
        date(entry.at_ms),
        plain(&entry.breaker),
        plain(&entry.from),
        plain(&entry.to),
        entry.until_ms.map(date).unwrap_or_default(),
        plain(&entry.why),
    ]
}

/// Names come from callers: what a terminal would obey is shown as a question mark.
fn plain(text: &str) -> String {
    let shown = |sign: char| if sign.is_control() { '?' } else { sign };
    text.chars().map(shown).collect()
}

/// RFC 3339 in milliseconds; "never" where the calendar ends.
fn date(ms: u64) -> String {
    const LAST: u64 = 253_402_300_799_999; // the year 9999
    if ms > LAST {
        return "never".to_owned();
    }
    let at = UNIX_EPOCH + Duration::from_millis(ms);
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_utc_and_end_with_the_calendar() {
        assert_eq!(date(1_796_037_753_042), "2026-11-30T11:22:33.042Z");
        assert_eq!(date(u64::MAX), "never");
        assert_eq!(plain("m\u{1b}[2J\n"), "m?[2J?");
    }
}
