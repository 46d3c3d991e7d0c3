//! The table of breakers.

use std::io::{self, Write};

use serde_json::Value;

use super::super::admin::{text, time};

const HEAD: [&str; 8] = [
    "BREAKER", "STATE", "FOR", "RETRY IN", "FAILURES", "FAILED", "REJECTED", "WHY",
];
/// Longest name shown, in characters.
const MAX_NAME: usize = 48;

/// Writes one line a breaker, in columns.
pub(super) fn write(out: &mut impl Write, breakers: &[Value]) -> io::Result<()> {
    let head = HEAD.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head)
        .chain(breakers.iter().map(row))
        .collect();
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in rows {
        let cells = row.iter().zip(widths);
        let line: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

fn row(breaker: &Value) -> [String; HEAD.len()] {
    let dash = || "-".to_owned();
    let shadow = match text(breaker, "mode").as_str() {
        "enforce" => String::new(),
        mode => format!(" ({mode})"),
    };
    let rejected = breaker.get("rejected").and_then(Value::as_object);
    let rejected: u64 = rejected
        .into_iter()
        .flat_map(|reasons| reasons.values())
        .filter_map(Value::as_u64)
        .sum();
    let why = breaker.get("why").filter(|why| !why.is_null());
    let is_calm = text(breaker, "state") == "closed";
    [
        shortened(&text(breaker, "name")),
        text(breaker, "state") + &shadow,
        time(breaker, "since_ms_ago").unwrap_or_else(dash),
        time(breaker, "retry_after_ms").unwrap_or_else(dash),
        nearest(breaker).unwrap_or_else(dash),
        failed(breaker).unwrap_or_else(dash),
        rejected.to_string(),
        why.filter(|_| !is_calm)
            .map(|why| text(why, "text"))
            .unwrap_or_default(),
    ]
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    let front: String = name.chars().take(MAX_NAME - 1).collect();
    front + "…"
}

/// What the armed rule observes that is nearest to its threshold.
fn nearest(breaker: &Value) -> Option<String> {
    let share = |rule: &&Value| number(rule, "observed") / number(rule, "threshold");
    let rules = breaker.get("rules")?.as_array()?;
    let nearest = rules
        .iter()
        .filter(|rule| rule.get("armed") == Some(&Value::Bool(true)))
        .max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(match nearest.get("calls").and_then(Value::as_u64) {
        Some(calls) => format!("{}/{calls} calls", number(nearest, "hits")),
        None => format!(
            "{}/{}",
            number(nearest, "hits"),
            number(nearest, "threshold")
        ),
    })
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or_default()
}

/// The share of failed ones among all attempts so far.
fn failed(breaker: &Value) -> Option<String> {
    let (attempts, failures) = (number(breaker, "attempts"), number(breaker, "failures"));
    (attempts > 0.0).then(|| format!("{:.0} %", 100.0 * failures / attempts))
}
