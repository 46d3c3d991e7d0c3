//! A drill's report for a terminal.

use std::fmt::Write as _;

use super::report::{Circuit, Report, Waits};

/// The report as text.
pub(super) fn of(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    let (providers, trouble) = (report.providers.join(", "), report.trouble);
    writeln!(
        out,
        "{providers} in trouble from {} to {}; callers asked for {}\n",
        seconds(trouble.begin_ms),
        seconds(trouble.end_ms),
        report.model
    )?;
    let totals = report.totals;
    writeln!(out, "calls         {}", totals.calls)?;
    writeln!(
        out,
        "  first       {:>5}  answered by the first target",
        totals.first
    )?;
    writeln!(
        out,
        "  fallback    {:>5}  answered by another",
        totals.fallback
    )?;
    writeln!(out, "  failed      {:>5}  got an error", totals.failed)?;
    writeln!(
        out,
        "  broken      {:>5}  saw a stream break off\n",
        totals.broken
    )?;
    for (name, waits) in [
        ("before", report.before),
        ("during", report.during),
        ("after", report.after),
    ] {
        writeln!(out, "{name:<7} {}", waited(waits))?;
    }
    for (name, reached) in &report.reached {
        writeln!(out, "{reached} requests reached {name} in that time")?;
    }
    if !report.is_noticed() {
        writeln!(out, "\nNo circuit opened.")?;
    }
    for circuit in &report.circuits {
        write_circuit(out, circuit)?;
    }
    writeln!(out)?;
    for check in &report.checks {
        let mark = if check.holds { "ok  " } else { "FAIL" };
        writeln!(out, "{mark} {} ({})", check.name, check.found)?;
    }
    Ok(())
}

fn write_circuit(out: &mut String, circuit: &Circuit) -> std::fmt::Result {
    writeln!(out, "\ncircuit {}", circuit.breaker)?;
    for change in &circuit.changes {
        // The rule; the failures that it saw are in the JSON.
        let why = change.why.split(';').next().unwrap_or_default();
        writeln!(
            out,
            "  {:>7}  {} -> {}  {}",
            seconds(change.at_ms),
            change.from,
            change.to,
            why
        )?;
    }
    if let Some(after) = circuit.detected_ms {
        writeln!(out, "  opened {} after the trouble began", seconds(after))?;
    }
    if let Some(after) = circuit.recovered_ms {
        writeln!(out, "  closed {} after it ended", seconds(after))?;
    }
    Ok(())
}

fn waited(waits: Waits) -> String {
    format!(
        "{:>5} calls, median {}, slowest {}",
        waits.calls,
        seconds(waits.median_ms),
        seconds(waits.slowest_ms)
    )
}

/// Milliseconds as seconds.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1_000, ms % 1_000 / 100)
}
