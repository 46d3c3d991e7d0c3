//! How many events a second `fuseline replay` takes: the conformance vectors, over and over, from a file.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::shipped::program;

const VECTORS: &str = include_str!("../../conformance/vectors.jsonl");
const AT_LEAST: usize = 2_000_000;
const ROUNDS: usize = 5;

pub(crate) fn measure() -> Result<()> {
    let program = program()?;
    let file = std::env::temp_dir().join(format!("fuseline-replay-{}.jsonl", std::process::id()));
    let events = VECTORS
        .lines()
        .filter(|line| !line.starts_with("{\"case\""))
        .count();
    let times = AT_LEAST.div_ceil(events);
    let mut out = BufWriter::new(File::create(&file)?);
    for _ in 0..times {
        out.write_all(VECTORS.as_bytes())?;
    }
    out.into_inner()?.sync_all()?;
    let rounds = (0..ROUNDS)
        .map(|_| seconds(&program, &file))
        .collect::<Result<Vec<_>>>();
    fs::remove_file(&file)?;
    let mut rounds = rounds?;
    rounds.sort_by(f64::total_cmp);
    let median = rounds
        .get(ROUNDS / 2)
        .copied()
        .context("no round was run")?;
    let total = (events * times) as f64;
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "| events | median of {ROUNDS} | events/s |\n|---:|---:|---:|"
    )?;
    writeln!(
        stdout,
        "| {total} | {median:.2} s | {:.0} |",
        total / median
    )?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn seconds(program: &std::path::Path, file: &std::path::Path) -> Result<f64> {
    let start = Instant::now();
    let status = Command::new(program)
        .arg("replay")
        .arg(file)
        .stdout(Stdio::null())
        .status();
    let status = status.with_context(|| format!("{} does not start", program.display()))?;
    ensure!(status.success(), "fuseline replay ended with {status}");
    Ok(start.elapsed().as_secs_f64())
}
