//! `fuseline check`: every mistake in a configuration at once, without starting anything.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;

use super::source::Source;
use crate::config::{Finding, Severity};

/// Check a configuration: every mistake at once, with line, key and remedy
///
/// Exits with 0 if `serve` would start with it, with 1 if there are mistakes. Secrets are looked up as `serve` would
/// and never shown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Json<'a> {
    ok: bool,
    findings: &'a [Finding],
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.source.load();
        let ok = report.config.is_some();
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(
                &mut out,
                &Json {
                    ok,
                    findings: &report.findings,
                },
            )?;
            writeln!(out)?;
        } else {
            for finding in &report.findings {
                writeln!(out, "{finding}")?;
            }
            let name = self
                .source
                .file()
                .map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
            writeln!(out, "{name}: {}", summary(&report.findings))?;
        }
        Ok(if ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn summary(findings: &[Finding]) -> String {
    let mistakes = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Mistake)
        .count();
    match mistakes {
        0 => "no mistakes".to_owned(),
        1 => "1 mistake".to_owned(),
        many => format!("{many} mistakes"),
    }
}
