//! `fuseline reload`: a running gateway reads its configuration anew.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::admin::{Listener, plain};

/// Let a running gateway read its configuration anew
///
/// Calls in flight go on as they began, breakers keep their states. A file with mistakes changes nothing: what is wrong is
/// told, and the exit status is 2. SIGHUP does the same, and tells it in the log.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    listener: Listener,
    /// Print the answer as one line of JSON instead
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let answer = match self.listener.find()?.post("/reload", &json!({})) {
            Ok(answer) => answer,
            Err(error) => return super::unanswered(&error),
        };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{answer}")?;
            return Ok(ExitCode::SUCCESS);
        }
        let list = |key| answer.get(key).and_then(Value::as_array);
        for finding in list("findings").into_iter().flatten() {
            let part = |key| plain(finding.get(key).and_then(Value::as_str).unwrap_or_default());
            writeln!(out, "note: {}: {}", part("key"), part("problem"))?;
        }
        let changed = list("changed").into_iter().flatten();
        let changed: Vec<_> = changed.filter_map(Value::as_str).map(plain).collect();
        if changed.is_empty() {
            writeln!(out, "reloaded; no key has changed")?;
        } else {
            writeln!(out, "reloaded: {}", changed.join(", "))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
