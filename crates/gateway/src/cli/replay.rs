//! `fuseline replay`: recorded events through a breaker, in virtual time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use fuseline_core::replay::{Line, Replay};

use super::progress::Progress;

/// Longest line taken; a case with every key set has some 2 KiB.
const MAX_LINE: u64 = 1 << 20;
/// Bytes between two signs of progress.
const PROGRESS: u64 = 64 << 20;

/// Replay recorded events through a breaker in virtual time
///
/// Reads JSON lines: {"case": "...", "breaker": {...}} starts a fresh breaker with these settings; each event below it,
/// such as {"at_ms": 40, "do": "acquire", "as": "c1"}, is answered by one JSON line with decision, reason,
/// would_reject, retry_after_ms and state. Events: acquire, success, failure, cancel, progress, state, force.
///
/// A line that cannot be replayed, time that runs backwards, or a call that nobody made ends it: line number and reason
/// on standard error, exit status 2.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The recorded events; `-` is standard input
    file: PathBuf,
    /// Tell what ended the replay as JSON too; answers are JSON lines anyway
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let ended = if self.file == Path::new("-") {
            replay(&mut io::stdin().lock(), &mut out, None)
        } else {
            let file = File::open(&self.file)
                .with_context(|| format!("cannot open {}", self.file.display()))?;
            let size = file.metadata().map(|meta| meta.len()).ok();
            replay(&mut BufReader::with_capacity(1 << 16, file), &mut out, size)
        };
        let flushed = out.flush();
        match ended.and_then(|()| Ok(flushed?)) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            // Whoever reads the answers has seen enough.
            Err(Ended::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(ExitCode::SUCCESS)
            }
            Err(Ended::Output(error)) => Err(error).context("cannot write the answers"),
            Err(Ended::Line(number, why)) => {
                let file = self.file.display();
                if self.json {
                    let told = serde_json::json!({ "file": file.to_string(), "line": number, "error": why });
                    writeln!(io::stderr().lock(), "{told}")?;
                } else {
                    writeln!(io::stderr().lock(), "fuseline: {file}:{number}: {why}")?;
                }
                Ok(ExitCode::from(2))
            }
        }
    }
}

/// Why a replay ended early.
enum Ended {
    Line(u64, String),
    Output(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn replay(events: &mut impl BufRead, out: &mut impl Write, size: Option<u64>) -> Result<(), Ended> {
    let mut replay = Replay::new();
    let mut progress = Progress::beside_output("replayed", size, PROGRESS);
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        number += 1;
        let failed = |why: String| Ended::Line(number, why);
        let read = (&mut *events)
            .take(MAX_LINE)
            .read_until(b'\n', &mut text)
            .map_err(|error| failed(error.to_string()))?;
        if read == 0 {
            progress.finish();
            return Ok(());
        }
        if read as u64 == MAX_LINE {
            return Err(failed(format!("longer than {MAX_LINE} bytes")));
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line: Line<'_> = serde_json::from_slice(&text)
            .map_err(|error| failed(format!("not a replay line: {error}")))?;
        let answer = replay
            .line(&line)
            .map_err(|error| failed(error.to_string()))?;
        if let Some(answer) = answer {
            serde_json::to_writer(&mut *out, &answer).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        progress.add(read as u64);
    }
}
