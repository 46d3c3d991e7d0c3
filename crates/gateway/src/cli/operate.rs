//! `fuseline force`, `release` and `reset`: the operator's hand on a running gateway's breakers.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::admin::{Listener, path_of, text};
use super::why;

/// Force a breaker open or closed, whatever its rules say
///
/// Open turns all calls away, closed lets all pass. A provider's or a model's breaker is made if there is none yet.
#[derive(Debug, clap::Args)]
pub(super) struct Force {
    /// Which of the two
    #[arg(value_enum)]
    to: To,
    /// The breaker, as `status` names it: a provider, provider/model, or provider#key
    name: String,
    /// For how long, such as 10m [default: until it is released]
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<String>,
    /// Why: shown by `why` as long as it holds, and logged
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    listener: Listener,
    /// Print the breaker as one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// What a breaker is forced to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    Open,
    Closed,
}

/// End a forced state in a fresh closed one, and a provider's wait
#[derive(Debug, clap::Args)]
pub(super) struct Release {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    listener: Listener,
    /// Print the answer as one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// Give a breaker a fresh start: closed, with nothing counted
#[derive(Debug, clap::Args)]
pub(super) struct Reset {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    listener: Listener,
    /// Print the answer as one line of JSON instead
    #[arg(long)]
    json: bool,
}

/// One breaker, or all.
#[derive(Debug, clap::Args)]
struct Which {
    /// The breaker, as `status` names it: a provider, provider/model, or provider#key
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

impl Which {
    /// The path of an action on them.
    fn path(&self, action: &str) -> String {
        match &self.name {
            Some(name) => path_of(name, action),
            None => action.to_owned(),
        }
    }
}

impl Force {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let to = match self.to {
            To::Open => "open",
            To::Closed => "closed",
        };
        let what = json!({ "to": to, "for": self.lasts, "note": self.note });
        let path = path_of(&self.name, "/force");
        command(self.listener, &path, &what, self.json)
    }
}

impl Release {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.which.path("/release");
        command(self.listener, &path, &json!({}), self.json)
    }
}

impl Reset {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.which.path("/reset");
        command(self.listener, &path, &json!({}), self.json)
    }
}

fn command(listener: Listener, path: &str, what: &Value, json: bool) -> anyhow::Result<ExitCode> {
    let answer = match listener.find()?.post(path, what) {
        Ok(answer) => answer,
        Err(error) => return super::unanswered(&error),
    };
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{answer}")?;
    } else if let Some(count) = answer.get("released") {
        writeln!(out, "{count} breakers are released")?;
    } else if let Some(count) = answer.get("reset") {
        writeln!(out, "{count} breakers are closed, with nothing counted")?;
    } else if text(&answer, "note").is_empty() && text(&answer, "state") == "closed" {
        writeln!(
            out,
            "{} is closed, with nothing counted",
            text(&answer, "name")
        )?;
    } else {
        why::explain(&mut out, &answer)?;
    }
    Ok(ExitCode::SUCCESS)
}
