//! What `cargo metadata` says of the workspace, cut down to what the checks ask.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// The workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "packages")]
    pub(crate) crates: Vec<Crate>,
}

/// One member.
#[derive(Debug, Deserialize)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One direct dependency of a member, as its manifest has it.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal one, else `"dev"` or `"build"`.
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
    /// The `cfg(...)` it stands under.
    pub(crate) target: Option<String>,
}

impl Workspace {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .output()
            .context("cargo metadata did not start")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("cargo metadata printed something unknown")
    }
}
