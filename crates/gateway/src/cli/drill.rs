//! `fuseline drill`: an incident rehearsed against the user's own configuration, with scripted providers in the places of
//! the real ones.

mod callers;
mod incident;
mod page;
mod report;
mod stage;
mod text;
mod watch;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::source::ConfigFile;
use crate::config::Config;
use incident::{Incident, Part};
use report::Report;
use stage::Scene;

/// What a shell expects of a program that was interrupted.
const INTERRUPTED: u8 = 130;
/// Longest incident that is made up here; a script may last as long as it likes.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Rehearse an incident against your own configuration
///
/// Starts a gateway with your configuration on a free port of this machine, and a scripted provider in the place of each
/// real one: nothing leaves the machine, and no key is needed or read. Sends steady calls to a route, half of them streamed,
/// breaks a provider, mends it, waits until the circuits have closed, and reports: who answered, what callers waited, when
/// circuits opened and closed and why. All times are those of your configuration, so a drill takes as long as the real
/// thing would.
///
/// Exits with 0 if every call was answered and every circuit that opened closed again, with 1 if not.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// What the provider does in the incident
    #[arg(long, value_enum, default_value_t = Incident::Down, value_name = "WHAT")]
    incident: Incident,
    /// For how long
    #[arg(long = "for", value_name = "TIME", default_value = "20s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// The provider that it hits [default: the one of the route's first target]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// What a provider does instead, as a script for `fuseline mock`, its last phase the recovery; may be repeated
    #[arg(long, value_name = "PROVIDER=FILE", value_parser = Part::parse, conflicts_with_all = ["incident", "length"])]
    script: Vec<Part>,
    /// The model that callers ask for, which decides the route [default: the first route's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Calls in a second
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=200))]
    rate: u32,
    /// Write the report as a page, with a figure of every call
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let loaded = self.file.load_without_secrets();
        let Some(config) = loaded.config else {
            for finding in &loaded.findings {
                writeln!(io::stderr().lock(), "{finding}")?;
            }
            return Ok(ExitCode::FAILURE);
        };
        let scene = self.scene(config)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    Ok(ExitCode::from(INTERRUPTED))
                }
                report = stage::play(scene) => self.tell(&report?),
            }
        })
    }

    /// What is to be played.
    fn scene(&self, config: Config) -> anyhow::Result<Scene> {
        if config.pass_through || config.routes.is_empty() {
            bail!(
                "a drill needs a configuration with routes; name one with --config, or write fuseline.toml"
            );
        }
        if self.length.is_zero() || self.length > LONGEST {
            bail!("--for is {:?}, must be above 0 and at most 1h", self.length);
        }
        let parts = if self.script.is_empty() {
            let first = || config.routes.first()?.targets.first();
            let route = self.model.as_deref().map(|model| config.route(model));
            let target = route.map_or_else(first, |route| route?.targets.first());
            let provider = self
                .provider
                .clone()
                .or_else(|| Some(target?.provider.clone()));
            let provider = provider.context("the route has no target")?;
            vec![self.incident.part(provider, self.length)]
        } else {
            self.script.clone()
        };
        for part in &parts {
            if !config.providers.contains_key(&part.provider) {
                let known: Vec<_> = config.providers.keys().map(String::as_str).collect();
                bail!(
                    "there is no provider {:?}; there are {}",
                    part.provider,
                    known.join(", ")
                );
            }
        }
        Scene::new(config, self.model.as_deref(), parts, self.rate)
    }

    fn tell(&self, report: &Report) -> anyhow::Result<ExitCode> {
        if let Some(file) = &self.html {
            fs::write(file, page::html(report))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, report)?;
            writeln!(out)?;
        } else {
            out.write_all(text::of(report).as_bytes())?;
        }
        Ok(if report.ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
