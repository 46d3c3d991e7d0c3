//! What `tune` tells: a ranked table, the same as JSON, a figure.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use fuseline_sim::chart::{Bar, Panel, svg};
use serde_json::{Value, json};

use super::Ranked;
use super::log::Log;

/// The table: the best, and the present settings wherever they stand.
pub(super) fn text(log: &Log, ranked: &[Ranked], top: usize) -> String {
    let mut out = head(log);
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "\n  RANK      COST  FAILURES SENT  KEPT BACK  GOOD ONES KEPT BACK  OPENED  SETTINGS"
    );
    for (place, ranked) in shown(ranked, top) {
        let judged = &ranked.judged;
        let _ = writeln!(
            out,
            "{} {place:>4}  {:>8}  {:>13}  {:>9}  {:>19}  {:>6}  {}",
            if ranked.setting.is_present { '>' } else { ' ' },
            time(ranked.cost),
            judged.sent_bad,
            judged.kept_bad,
            judged.kept_good,
            judged.opened,
            ranked.setting.name,
        );
    }
    let best = ranked.first();
    let _ = match best.and_then(|best| best.setting.toml.as_deref()) {
        None => writeln!(out, "\nNothing compared is better than your settings."),
        Some("") => writeln!(
            out,
            "\nThe best are the defaults: leave trip and cooldown out of [breaker]."
        ),
        Some(toml) => writeln!(
            out,
            "\nThe best, for fuseline.toml:\n\n[breaker]\n{}",
            toml.trim_end()
        ),
    };
    out
}

fn head(log: &Log) -> String {
    let (mut calls, mut failed, mut refused) = (0_u64, 0_u64, 0_u64);
    for call in log.calls() {
        calls += 1;
        failed += u64::from(call.result.is_err() && !call.is_refused);
        refused += u64::from(call.is_refused);
    }
    let last = log.calls().map(|call| call.at.as_millis()).max();
    let ended = log.began.saturating_add(last.unwrap_or(0));
    let (from, to) = (date(log.began), date(ended));
    let targets = log.targets.len();
    let mut out = format!("{calls} calls to {targets} target(s), {from} to {to}; {failed} failed");
    if refused > 0 {
        let _ = write!(
            out,
            "; {refused} were refused when recorded, and are taken to have gone as the one tried before them"
        );
    }
    out.push('\n');
    out
}

fn shown(ranked: &[Ranked], top: usize) -> impl Iterator<Item = (usize, &Ranked)> {
    let places = (1..).zip(ranked);
    places.filter(move |(place, ranked)| *place <= top || ranked.setting.is_present)
}

/// All settings, the best first. Times in milliseconds.
pub(super) fn json(log: &Log, ranked: &[Ranked]) -> Value {
    let settings = (1..).zip(ranked).map(|(rank, ranked): (usize, &Ranked)| {
        let judged = &ranked.judged;
        json!({
            "rank": rank,
            "name": ranked.setting.name,
            "yours": ranked.setting.is_present,
            "cost_ms": millis(ranked.cost),
            "lost_ms": millis(judged.lost),
            "failures_sent": judged.sent_bad,
            "failures_kept_back": judged.kept_bad,
            "good_kept_back": judged.kept_good,
            "opened": judged.opened,
            "breaker": ranked.setting.toml,
        })
    });
    let refused = log.calls().filter(|call| call.is_refused).count();
    json!({
        "calls": log.calls().count(),
        "refused": refused,
        "targets": log.targets.keys().collect::<Vec<_>>(),
        "began_ms": log.began,
        "lines_passed_over": log.passed_over,
        "settings": settings.collect::<Vec<_>>(),
    })
}

/// What the settings of the table cost, as bars.
pub(super) fn figure(ranked: &[Ranked], top: usize) -> String {
    let bar = |(_, ranked): (usize, &Ranked)| Bar {
        label: ranked.setting.name.clone(),
        value: ranked.cost.as_secs_f64(),
        text: time(ranked.cost),
        stands_out: ranked.setting.is_present,
    };
    let panel = Panel {
        title: "Cost by settings".to_owned(),
        bars: shown(ranked, top).map(bar).collect(),
    };
    svg("Cost of recorded calls by settings", &[panel])
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn time(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

fn date(ms: u64) -> String {
    const LAST: u64 = 253_402_300_799_999; // the year 9999
    let at = UNIX_EPOCH + Duration::from_millis(ms.min(LAST));
    humantime::format_rfc3339_seconds(at).to_string()
}
