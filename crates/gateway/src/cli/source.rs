//! The arguments by which a command finds its configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::config::{Config, Overrides, Report, Sources};

/// The file that is used where none is named.
const USUAL_FILE: &str = "fuseline.toml";

#[derive(Debug, clap::Args)]
pub(super) struct Source {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Debug, clap::Args)]
pub(super) struct ConfigFile {
    /// The configuration file [default: fuseline.toml, if there is one; else providers are passed through]
    #[arg(long, short, env = "FUSELINE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// The file that is read, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        let usual = Path::new(USUAL_FILE);
        self.config
            .as_deref()
            .or_else(|| usual.exists().then_some(usual))
    }

    /// Where the file's admin listener is and what it asks for, if there is a sound file. Who reads it may lack the
    /// providers' secrets.
    pub(super) fn admin(&self) -> Option<(SocketAddr, Option<SecretString>)> {
        let env = |name: &str| {
            std::env::var(name)
                .ok()
                .or_else(|| Some("stand-in".to_owned()))
        };
        let sources = Sources {
            file: Some(self.file()?),
            overrides: &Overrides::default(),
            env: &env,
        };
        let config = sources.load().config?;
        Some((config.admin_listen, config.admin_token))
    }

    /// What the file says, with a stand-in for each secret of the environment: for commands that call nobody.
    pub(super) fn load_without_secrets(&self) -> Report {
        Sources {
            file: self.file(),
            overrides: &Overrides::default(),
            env: &|_| Some("stand-in".to_owned()),
        }
        .load()
    }
}

impl Source {
    /// The file that is read, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.file()
    }

    /// The same with the file that is read now: a gateway that runs by one does not run without it later.
    pub(super) fn pinned(mut self) -> Self {
        self.file.config = self.file().map(Path::to_owned);
        self
    }

    pub(super) fn load(&self) -> Report {
        self.sources().load()
    }

    /// For a gateway that runs under another configuration already.
    pub(super) fn load_after(&self, in_force: &Config) -> Report {
        self.sources().load_after(in_force)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            file: self.file(),
            overrides: &self.overrides,
            env: &|name| std::env::var(name).ok(),
        }
    }
}
