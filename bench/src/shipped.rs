//! The program that is measured, as it is shipped.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// Where it is.
pub(crate) fn program() -> Result<PathBuf> {
    let program = std::env::var_os("FUSELINE_BIN");
    Ok(program
        .context("FUSELINE_BIN is not set; `bench/run` names the program by it")?
        .into())
}
