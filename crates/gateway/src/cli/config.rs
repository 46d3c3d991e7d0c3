//! `fuseline config`: what a configuration file may hold.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::config;

/// Show every key of the configuration file with its default and meaning
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print a file with every default written out
    #[arg(long, required_unless_present = "reference")]
    defaults: bool,
    /// Print the reference page, in Markdown
    #[arg(long, conflicts_with_all = ["defaults", "json"])]
    reference: bool,
    /// Print the keys as a JSON list instead
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut out = io::stdout().lock();
        if self.reference {
            out.write_all(config::reference_page().as_bytes())?;
        } else if self.json {
            serde_json::to_writer(&mut out, &config::keys())?;
            writeln!(out)?;
        } else {
            out.write_all(config::template().as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
