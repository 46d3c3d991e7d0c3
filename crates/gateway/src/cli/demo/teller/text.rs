//! Events as lines of at most 80 columns.

use std::time::Duration;

use fuseline_core::{Cause, State};

use super::super::super::timed::clock;
use super::super::callers::Answer;
use super::super::event::{Cast, Change, Event, Failure, Side, Summary, Traffic};
use super::look::{Look, Tone};

/// Columns of calls.
const LANE: usize = 24;
/// Columns before what happened.
const MARGIN: &str = "             ";

pub(super) fn lines(look: Look, at: Duration, event: &Event) -> Vec<String> {
    let time = look.paint(Tone::Aside, &clock(at));
    match event {
        Event::Started(cast) => opening(look, cast),
        Event::Incident { text } => {
            let mark = look.pick("▼", "!");
            let text = look.paint(Tone::Title, text);
            vec![format!("  {time}  {mark} {text}")]
        }
        Event::Transition(change) => transition(look, &time, change),
        Event::GoodProbe { good, needed } => {
            let text = format!("probe {good} of {needed} was good");
            let sign = look.pick("◌", "*");
            vec![format!(
                "  {time}  {sign} {}",
                look.paint(Tone::Good, &text)
            )]
        }
        Event::Crowd {
            callers,
            to_primary,
        } => {
            let mark = look.pick("»", ">");
            let rest = callers - to_primary;
            let text = format!(
                "{callers} callers came at once: {to_primary} sent to the primary, {rest} to the spare"
            );
            vec![format!("  {time}  {mark} {text}")]
        }
        Event::Traffic(traffic) => vec![traffic_line(look, &time, traffic)],
        Event::Summary(summary) => closing(look, summary),
    }
}

fn opening(look: Look, cast: &Cast) -> Vec<String> {
    let Cast {
        gateway,
        primary,
        spare,
        ..
    } = cast;
    let [to, fork, corner] = match look {
        Look::Plain => ["-->", "-+->", " +->"],
        Look::Signs | Look::Colours => ["──▶", "─┬─▶", " └─▶"],
    };
    let gateway = gateway.to_string();
    vec![
        look.paint(
            Tone::Title,
            "fuseline demo: a provider breaks, and its callers do not notice",
        ),
        String::new(),
        format!("  callers {to} gateway {gateway} {fork} primary {primary}"),
        format!(
            "{} {corner} spare   {spare}",
            " ".repeat(22 + gateway.len())
        ),
        format!("  callers {to} twin of the primary, without Fuseline, with 2 retries as SDKs do"),
        String::new(),
        format!(
            "  The circuit opens at {} failures in a row, tries again after {}, then",
            cast.failures_to_open,
            seconds(cast.cooldown)
        ),
        format!(
            "  {} times as long after each failed probe, closes after {} good ones.",
            cast.backoff, cast.successes_to_close
        ),
        String::new(),
        legend(look),
        String::new(),
        look.paint(
            Tone::Title,
            &format!(
                "  mm:ss.t  {:<LANE$}  median    {:<LANE$}  median",
                "with Fuseline", "without"
            ),
        ),
    ]
}

fn legend(look: Look) -> String {
    let answers = [
        (look.answer(Answer::Primary), "primary"),
        (look.answer(Answer::Spare), "spare"),
        (
            look.answer(Answer::SpareAfterFailure),
            "spare after the primary failed",
        ),
        (look.answer(Answer::Nobody), "no answer"),
        (look.waiting(), "waiting"),
    ];
    let signs = answers.map(|((tone, sign), name)| format!("{} {name}", look.paint(tone, sign)));
    format!("  {}", signs.join("  "))
}

fn transition(look: Look, time: &str, change: &Change) -> Vec<String> {
    let (tone, sign, name) = match change.to {
        State::Closed => (Tone::Good, "●", "CLOSED"),
        State::Degraded => (Tone::Warning, "◐", "DEGRADED"),
        State::Open => (Tone::Bad, "○", "OPEN"),
        State::HalfOpen => (Tone::Warning, "◌", "HALF-OPEN"),
        State::ForcedOpen => (Tone::Bad, "○", "FORCED OPEN"),
        State::ForcedClosed => (Tone::Good, "●", "FORCED CLOSED"),
    };
    let sign = look.pick(sign, "*");
    let badge = look.paint(tone, &format!("{sign} {name}"));
    let mut lines = vec![format!("  {time}  {badge}: {}", reason(change))];
    lines.extend(
        details(look, change)
            .into_iter()
            .map(|text| format!("{MARGIN}{}", look.paint(Tone::Aside, &text))),
    );
    lines
}

/// Why the circuit is in its new state.
fn reason(change: &Change) -> String {
    let Change {
        observed,
        threshold,
        ..
    } = change;
    match (change.cause, change.to) {
        (Cause::Consecutive, _) => format!("{observed} failures in a row, limit {threshold}"),
        (Cause::Pressure, _) => match change.last_failures.last() {
            Some(last) => format!(
                "{:.0} % of the limit, last failure: {last}",
                observed * 100.0
            ),
            None => format!("{:.0} % of the limit", observed * 100.0),
        },
        (Cause::Cooldown, _) => "the cooldown is over, one call goes out as a probe".to_owned(),
        (Cause::Probe, State::Closed) => format!("{observed} of {threshold} probes were good"),
        (Cause::Probe, _) => match change.last_failures.last() {
            Some(last) => format!("the probe failed: {last}"),
            None => "the probe failed".to_owned(),
        },
        (cause, _) => cause.to_string(),
    }
}

fn details(look: Look, change: &Change) -> Vec<String> {
    let mut details = Vec::new();
    if change.to == State::HalfOpen {
        details.push(format!(
            "{} calls so far went to the spare without a try at the primary",
            change.saved
        ));
    }
    if change.cause == Cause::Consecutive {
        details.push(format!(
            "last failures: {}",
            grouped(look, &change.last_failures)
        ));
    }
    if let Some(open_for) = change.open_for {
        details.push(format!(
            "no call goes to the primary for {}",
            seconds(open_for)
        ));
    }
    if let (State::Closed, Some(incident)) = (change.to, change.incident) {
        details.push(format!("the incident lasted {}", seconds(incident)));
    }
    details
}

/// `server_error 503 ×4, overloaded 529`
fn grouped(look: Look, failures: &[Failure]) -> String {
    let times = look.pick("×", "x");
    let mut groups: Vec<(Failure, usize)> = Vec::new();
    for failure in failures {
        match groups.last_mut() {
            Some((last, count)) if last == failure => *count += 1,
            _ => groups.push((*failure, 1)),
        }
    }
    let texts = groups.iter().map(|(failure, count)| match count {
        1 => failure.to_string(),
        _ => format!("{failure} {times}{count}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn traffic_line(look: Look, time: &str, traffic: &Traffic) -> String {
    let Traffic { with, without } = traffic;
    format!(
        "  {time}  {}  {:>7}   {}  {:>7}",
        look.lane(with, LANE),
        wait(with.median),
        look.lane(without, LANE),
        wait(without.median),
    )
}

fn closing(look: Look, summary: &Summary) -> Vec<String> {
    let Summary { with, without, .. } = summary;
    let row =
        |name: &str, with: String, without: String| format!("  {name:<38}{with:>16}{without:>16}");
    let share = |side: &Side| {
        let percent = 100 * side.answered / side.calls.max(1);
        format!("{} ({percent} %)", side.answered)
    };
    let rule = look.pick("─", "-").repeat(70);
    let mut lines = vec![
        String::new(),
        look.paint(
            Tone::Title,
            &row("", "with Fuseline".to_owned(), "without".to_owned()),
        ),
        format!("  {}", look.paint(Tone::Aside, &rule)),
        row("calls", with.calls.to_string(), without.calls.to_string()),
        row("answered", share(with), share(without)),
        row(
            "during the outage, wait: median",
            wait(with.outage_median),
            wait(without.outage_median),
        ),
        row(
            "during the outage, wait: longest",
            wait(with.outage_slowest),
            wait(without.outage_slowest),
        ),
        format!("  {}", look.paint(Tone::Aside, &rule)),
        format!(
            "  The circuit opened {} times in an incident of {}.",
            summary.opened,
            seconds(summary.incident)
        ),
        format!("  {} calls were kept from the primary.", summary.saved),
        format!(
            "  {} probes found: {}.",
            summary.probes.len(),
            summary.probes.join(", ")
        ),
        String::new(),
    ];
    lines.extend(summary.checks.iter().map(|check| {
        let (tone, mark) = if check.holds {
            (Tone::Good, look.pick("✓", "ok"))
        } else {
            (Tone::Bad, look.pick("✗", "FAILED"))
        };
        let found = look.paint(Tone::Aside, &format!("({})", check.found));
        format!("  {} {} {found}", look.paint(tone, mark), check.name)
    }));
    lines
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// How long somebody waited; blank where nobody did.
fn wait(waited: Option<Duration>) -> String {
    match waited {
        None => String::new(),
        Some(waited) if waited >= Duration::from_secs(1) => seconds(waited),
        Some(waited) => format!("{} ms", waited.as_millis()),
    }
}
