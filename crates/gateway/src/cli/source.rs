//! The arguments by which a command finds its configuration.

use std::path::{Path, PathBuf};

use crate::config::{Overrides, Report, Sources};

/// The file that is used where none is named.
const USUAL_FILE: &str = "fuseline.toml";

#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// The configuration file [default: fuseline.toml, if there is one; else providers are passed through]
    #[arg(long, short, env = "FUSELINE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
}

impl Source {
    /// The file that is read, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        let usual = Path::new(USUAL_FILE);
        self.config
            .as_deref()
            .or_else(|| usual.exists().then_some(usual))
    }

    pub(super) fn load(&self) -> Report {
        let env = |name: &str| std::env::var(name).ok();
        Sources {
            file: self.file(),
            overrides: &self.overrides,
            env: &env,
        }
        .load()
    }
}
