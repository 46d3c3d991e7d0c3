//! `fuseline why`: why one breaker is as it is.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value;

use super::admin::{Listener, path_of, plain, text, time};

/// Explain why a breaker is in its state
///
/// Names the rule that decided and what it observed, the latest failures, and the way here. Exits with 2 if the gateway
/// cannot be asked or knows no such breaker.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The breaker, as `status` names it: a provider, provider/model, or provider#key
    name: String,
    #[command(flatten)]
    listener: Listener,
    /// Print what the gateway says as one line of JSON instead
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let admin = self.listener.find()?;
        let breaker = match admin.get(&path_of(&self.name, "")) {
            Ok(breaker) => breaker,
            Err(error) => return super::unanswered(&error),
        };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{breaker}")?;
        } else {
            explain(&mut out, &breaker)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says it in a few lines, what matters most first.
pub(super) fn explain(out: &mut impl Write, breaker: &Value) -> io::Result<()> {
    let since = time(breaker, "since_ms_ago").unwrap_or_default();
    write!(
        out,
        "{} is {} for {since}",
        text(breaker, "name"),
        text(breaker, "state")
    )?;
    if let (reason, Some(wait)) = (text(breaker, "reason"), time(breaker, "retry_after_ms")) {
        write!(
            out,
            "; calls are turned away ({reason}), next one in {wait}"
        )?;
    }
    writeln!(out)?;
    if let Some(note) = breaker.get("note").and_then(Value::as_str) {
        writeln!(out, "note: {}", plain(note))?;
    }
    if let Some(incident) = time(breaker, "incident_ms") {
        writeln!(
            out,
            "incident: {incident} so far, {} failed probe episodes",
            count(breaker, "episodes")
        )?;
    }
    if let Some(held) = time(breaker, "hold_ms") {
        writeln!(out, "the provider asked this key to wait {held} more")?;
    }
    for rule in list(breaker, "rules") {
        let armed = if rule.get("armed") == Some(&Value::Bool(true)) {
            ""
        } else {
            " (too few calls yet)"
        };
        writeln!(
            out,
            "rule {}: {:.3} of {}{armed}",
            text(rule, "rule"),
            rule.get("observed")
                .and_then(Value::as_f64)
                .unwrap_or_default(),
            rule.get("threshold").unwrap_or(&Value::Null),
        )?;
    }
    for failure in list(breaker, "last_failures") {
        let code = failure.get("code").and_then(Value::as_u64);
        let code = code.map(|code| format!(" {code}")).unwrap_or_default();
        let ago = time(failure, "ms_ago").unwrap_or_default();
        writeln!(out, "failure: {}{code}, {ago} ago", text(failure, "kind"))?;
    }
    for change in list(breaker, "history") {
        let ago = time(change, "ms_ago").unwrap_or_default();
        let (from, to, why) = (
            text(change, "from"),
            text(change, "to"),
            text(change, "text"),
        );
        writeln!(out, "{ago} ago: {from} -> {to}: {why}")?;
    }
    Ok(())
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
