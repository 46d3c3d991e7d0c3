//! `fuseline tune`: what the present and other settings would have done on recorded calls.

mod alternatives;
mod log;
mod table;
mod told;

use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use fuseline_sim::Judged;

use super::progress::Progress;
use super::source::ConfigFile;
use alternatives::Setting;
use log::Log;

/// Show what other breaker settings would have done on a log of calls
///
/// Reads the gateway's own log (JSON lines; others in it are passed over), or CSV whose head names `time`, `outcome`
/// and `duration`, perhaps `target`. Lets the calls pass a breaker for each target under the settings of your
/// configuration, the defaults, each preset, and variations of yours, in virtual time, and ranks them by cost: what callers
/// waited for failures that were let through, and a price for each good call kept back.
///
/// In CSV `time` is RFC 3339 or a number of seconds or milliseconds since 1970, when the call began; `outcome` is `ok`, an
/// HTTP status, or a kind such as server_error; `duration` is like 1.5s, or a number of milliseconds. Calls that were
/// refused when they were recorded are taken to have gone as the last one tried before them: a log of `mode = "shadow"`
/// needs no such guess.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The log; `-` is standard input
    log: PathBuf,
    #[command(flatten)]
    file: ConfigFile,
    /// Only calls to this target, such as openai/gpt-5
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// What a good call kept back costs: how much later it is answered by somebody else
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    refusal_cost: Duration,
    /// How many of the settings are shown, counted from the best; yours are shown in any case
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    /// Write a figure of them, as SVG
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Print one JSON object, with all settings
    #[arg(long)]
    json: bool,
}

/// Settings, and what they would have done.
struct Ranked {
    setting: Setting,
    judged: Judged,
    cost: Duration,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.file.load_without_secrets();
        let Some(config) = report.config else {
            for finding in &report.findings {
                writeln!(io::stderr().lock(), "{finding}")?;
            }
            return Ok(ExitCode::FAILURE);
        };
        let mut log = match self.read() {
            Ok(log) => log,
            Err(error) => return super::unanswered(&error),
        };
        if let Some(target) = &self.target
            && let Err(error) = log.keep_only(target)
        {
            return super::unanswered(&error);
        }
        let settings = alternatives::of(&config, &log);
        let mut progress = Progress::new("judged", Some(settings.len() as u64), 1);
        let ranked = settings.into_iter().map(|setting| {
            let judged = setting.judge(&log);
            progress.add(1);
            let cost = judged.cost(self.refusal_cost);
            Ranked {
                setting,
                judged,
                cost,
            }
        });
        let mut ranked: Vec<Ranked> = ranked.collect();
        progress.finish();
        // Of equals the present settings come first: a change wants a reason.
        ranked.sort_by_key(|ranked| (ranked.cost, !ranked.setting.is_present));
        if let Some(figure) = &self.figure {
            fs::write(figure, told::figure(&ranked, self.top))
                .with_context(|| format!("cannot write {}", figure.display()))?;
        }
        let text = if self.json {
            told::json(&log, &ranked).to_string() + "\n"
        } else {
            told::text(&log, &ranked, self.top)
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> anyhow::Result<Log> {
        let name = self.log.display();
        let log = if self.log == Path::new("-") {
            Log::read(&mut io::stdin().lock(), None)
        } else {
            let file = File::open(&self.log).with_context(|| format!("cannot open {name}"))?;
            let size = file.metadata().map(|meta| meta.len()).ok();
            Log::read(&mut BufReader::with_capacity(1 << 16, file), size)
        };
        log.with_context(|| name.to_string())
    }
}
