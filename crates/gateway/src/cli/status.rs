//! `fuseline status`: the breakers of a running gateway.

mod table;

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::admin::{Admin, Listener};

/// Moves the cursor home and clears what is below it.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Show the breakers of a running gateway
///
/// One line a breaker: its state and for how long, when calls pass again, failures against the nearest rule, the share of
/// failed attempts, calls turned away, and why. Exits with 0; with --fail-if-open with 1 if a breaker is open, half-open or
/// forced open; with 2 if the gateway cannot be asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    listener: Listener,
    /// Show it again and again, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// How often --watch asks, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    every: Duration,
    /// Print the list as one line of JSON instead
    #[arg(long)]
    json: bool,
    /// Exit with 1 if a breaker turns calls away
    #[arg(long, conflicts_with = "watch")]
    fail_if_open: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_millis(100) {
        return Err("is too short; write at least 100ms".to_owned());
    }
    Ok(interval)
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (watch, every, json, fail_if_open) =
            (self.watch, self.every, self.json, self.fail_if_open);
        let admin = self.listener.find()?;
        let mut out = io::stdout().lock();
        if watch {
            let clear = io::stdout().is_terminal() && !json;
            return self::watch(&admin, &mut out, every, json, clear);
        }
        let list = match admin.get("/breakers") {
            Ok(list) => list,
            Err(error) => return super::unanswered(&error),
        };
        show(&mut out, &list, json)?;
        let is_open = list.as_array().is_some_and(|list| list.iter().any(is_open));
        Ok(if fail_if_open && is_open {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Shows the list until the reader has enough, which a pipe tells by an error.
fn watch(
    admin: &Admin,
    out: &mut impl Write,
    every: Duration,
    json: bool,
    clear: bool,
) -> anyhow::Result<ExitCode> {
    loop {
        let list = admin.get("/breakers");
        if clear {
            out.write_all(CLEAR.as_bytes())?;
        }
        match list {
            Ok(list) => show(out, &list, json)?,
            // It may be starting anew.
            Err(error) => writeln!(io::stderr().lock(), "fuseline: {error:#}")?,
        }
        out.flush()?;
        admin.pause(every);
    }
}

fn show(out: &mut impl Write, list: &Value, json: bool) -> io::Result<()> {
    if json {
        return writeln!(out, "{list}");
    }
    match list.as_array().filter(|list| !list.is_empty()) {
        Some(list) => table::write(out, list),
        None => writeln!(out, "no breakers yet: they are made by the first calls"),
    }
}

/// Whether calls are turned away, whoever decided it. One that only watches turns nobody away.
fn is_open(breaker: &Value) -> bool {
    let is = |key, value: &str| breaker.get(key).and_then(Value::as_str) == Some(value);
    let is_shut = ["open", "half_open", "forced_open"]
        .into_iter()
        .any(|state| is("state", state));
    is_shut && is("mode", "enforce")
}
