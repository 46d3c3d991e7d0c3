//! A drill's report as a page of its own: the numbers, and a figure of every call. No script, nothing from outside.

use std::fmt::Write as _;

use fuseline_core::State;
use fuseline_sim::chart::escaped;

use super::callers::{Done, Outcome};
use super::report::{Circuit, Report};
use super::text;

const WIDTH: f64 = 900.0;
const TALL: f64 = 260.0;
const LANE: f64 = 26.0;

const STYLE: &str = "body{font:15px system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
    pre{overflow-x:auto;background:#f4f4f5;padding:1rem}svg{width:100%}text{font:12px system-ui,sans-serif;fill:currentColor}\
    .trouble{fill:#fecaca;opacity:.5}.first{fill:#15803d}.fallback{fill:#2563eb}.failed,.broken{fill:#b91c1c}\
    .open{fill:#b91c1c}.half_open{fill:#d97706}.closed{fill:#15803d}.degraded{fill:#a3a30f}.forced_open,.forced_closed{fill:#6b7280}\
    @media(prefers-color-scheme:dark){body{color:#e5e7eb;background:#111}pre{background:#222}.trouble{fill:#7f1d1d}}";

/// The page.
pub(super) fn html(report: &Report) -> String {
    let verdict = if report.ok { "passed" } else { "failed" };
    let title = format!(
        "Drill {verdict}: {} in trouble",
        report.providers.join(", ")
    );
    let title = escaped(&title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n<p>Each dot is a call: when it began, and how long it took. \
         Green: the first target answered; blue: another did; red: nobody did, or the stream broke off. \
         Below, each circuit: green closed, red open, amber half-open.</p>\n{}<pre>{}</pre>\n</html>\n",
        figure(report),
        escaped_lines(&text::of(report)),
    )
}

/// Lines stay lines.
fn escaped_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(escaped).collect();
    lines.join("\n")
}

fn figure(report: &Report) -> String {
    let last = |done: &Done| done.at_ms.saturating_add(done.took_ms);
    let end = report.calls.iter().map(last).max().unwrap_or(0).max(1);
    let longest = report
        .calls
        .iter()
        .map(|done| done.took_ms)
        .max()
        .unwrap_or(0);
    let x = |ms: u64| WIDTH * ms.min(end) as f64 / end as f64;
    let y = |ms: u64| {
        TALL - 20.0 - (TALL - 40.0) * (ms as f64).ln_1p() / (longest as f64).ln_1p().max(1.0)
    };
    let height = TALL + LANE * report.circuits.len() as f64;
    let trouble = report.trouble;
    let (begin, wide) = (x(trouble.begin_ms), x(trouble.end_ms) - x(trouble.begin_ms));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Every call of the drill\">\n\
         <rect class=\"trouble\" x=\"{begin:.1}\" y=\"0\" width=\"{wide:.1}\" height=\"{TALL}\"/>\n"
    );
    for done in &report.calls {
        let class = match done.outcome {
            Outcome::First => "first",
            Outcome::Fallback => "fallback",
            Outcome::Failed => "failed",
            Outcome::Broken => "broken",
        };
        let why = escaped(done.why.as_deref().unwrap_or("no answer"));
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}, took {}: {why}</title></circle>",
            x(done.at_ms),
            y(done.took_ms),
            text::seconds(done.at_ms),
            text::seconds(done.took_ms),
        );
    }
    for (ms, name) in [(100, "0.1s"), (1_000, "1s"), (10_000, "10s")] {
        if ms <= longest {
            let _ = writeln!(out, "<text x=\"2\" y=\"{:.1}\">{name}</text>", y(ms));
        }
    }
    for (place, circuit) in report.circuits.iter().enumerate() {
        lane(&mut out, circuit, TALL + LANE * place as f64, &x);
    }
    out.push_str("</svg>\n");
    out
}

/// One circuit's states over time.
fn lane(out: &mut String, circuit: &Circuit, top: f64, x: &impl Fn(u64) -> f64) {
    let mut from = (0, State::Closed);
    let last = (u64::MAX, State::Closed);
    let changes = circuit
        .changes
        .iter()
        .map(|change| (change.at_ms, change.to));
    for (at, to) in changes.chain([last]) {
        let (began, state) = from;
        let _ = writeln!(
            out,
            "<rect class=\"{state}\" x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"6\"/>",
            x(began),
            top + 16.0,
            x(at) - x(began),
        );
        from = (at, to);
    }
    let name = escaped(&circuit.breaker);
    let _ = writeln!(out, "<text x=\"2\" y=\"{}\">{name}</text>", top + 12.0);
}
