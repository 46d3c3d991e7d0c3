//! Checks of the repository that no other tool makes: `cargo xtask check-layers` and `cargo xtask check-docs`.

mod docs;
mod layers;
mod proofs;
mod workspace;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::bail;
use workspace::Workspace;

const USAGE: &str = "usage: cargo xtask check-layers | check-docs";

fn main() -> anyhow::Result<ExitCode> {
    let task = env::args().nth(1).unwrap_or_default();
    let workspace = Workspace::read()?;
    let violations = match task.as_str() {
        "check-layers" => layers::violations(&workspace.crates),
        "check-docs" => docs::violations(&workspace.root)?,
        _ => bail!("{USAGE}"),
    };
    let mut out = io::stdout().lock();
    for violation in &violations {
        writeln!(out, "{violation}")?;
    }
    Ok(if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
