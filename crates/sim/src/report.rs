//! A study's tables in Markdown, and its figure.

use crate::chart::{Bar, Panel, svg};
use crate::{Cell, Outage, Scene};

/// A table for each scene: a row for each subject.
pub fn as_markdown(scenes: &[(Scene, Vec<Cell>)]) -> String {
    let mut out = String::new();
    for (scene, cells) in scenes {
        let is_health = scene.outage == Outage::Bumps;
        let columns: &[&str] = if is_health {
            &["callers' time lost", "refused, of 1,000"]
        } else {
            &[
                "attempts wasted",
                "callers' time lost",
                "answers broken off",
                "refused in vain",
                "refused in health, of 1,000",
                "detected after",
                "in runs",
                "recovered after",
            ]
        };
        out.push_str(&format!(
            "### {}\n\n| | {} |\n|---|{}\n",
            scene.name,
            columns.join(" | "),
            "---:|".repeat(columns.len())
        ));
        for cell in cells {
            let values = if is_health {
                vec![time(cell.lost), digits(cell.wrong)]
            } else {
                row(cell)
            };
            out.push_str(&format!("| {} | {} |\n", cell.subject, values.join(" | ")));
        }
        out.push('\n');
    }
    out
}

fn row(cell: &Cell) -> Vec<String> {
    let or_dash = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), time);
    vec![
        digits(cell.wasted),
        time(cell.lost),
        digits(cell.broken),
        format!("{} %", digits(cell.missed)),
        digits(cell.wrong),
        or_dash(cell.detected),
        format!("{:.0} %", 100.0 * cell.noticed),
        or_dash(cell.recovered),
    ]
}

/// One row a subject: what callers lost over all runs as a multiple of the first subject's, by scene.
pub fn as_ratios(scenes: &[(Scene, Vec<Cell>)]) -> String {
    compared(scenes, |cell, first| {
        format!("{:.2}", cell.lost_in_all / first.lost_in_all)
    })
}

/// One row a subject: after how long each outage was detected in the median run, or else in which share of runs; behind
/// the comma what callers lost, as in [`as_ratios`].
pub fn as_detection(scenes: &[(Scene, Vec<Cell>)]) -> String {
    compared(scenes, |cell, first| {
        let detected = match (cell.detected, cell.noticed) {
            (Some(after), _) => time(after),
            (None, 0.0) => "-".to_owned(),
            (None, share) => format!("({:.0} %)", 100.0 * share),
        };
        format!("{detected}, {:.2}", cell.lost_in_all / first.lost_in_all)
    })
}

/// A row a subject and a column an incident; then what each has to be weighed against.
fn compared(scenes: &[(Scene, Vec<Cell>)], of: impl Fn(&Cell, &Cell) -> String) -> String {
    let (health, incidents): (Vec<_>, Vec<_>) = scenes
        .iter()
        .partition(|(scene, _)| scene.outage == Outage::Bumps);
    let errors = incidents
        .iter()
        .find(|(scene, _)| scene.outage == Outage::MostErrors);
    let (Some((_, well)), Some((_, hard)), Some((_, errors))) =
        (health.first(), incidents.first(), errors)
    else {
        return String::new();
    };
    let names: Vec<_> = incidents
        .iter()
        .map(|(scene, _)| scene.name.as_str())
        .collect();
    let weighed =
        "refused in health, of 1,000 | refused in vain, 60 % errors | recovered after, hard down";
    let mut out = format!("| | {} | {weighed} |\n|---|", names.join(" | "));
    out.push_str(&"---:|".repeat(names.len() + 3));
    out.push('\n');
    for (place, ((well, hard), errors)) in well.iter().zip(hard).zip(errors).enumerate() {
        out.push_str(&format!("| {} |", well.subject));
        for (_, cells) in &incidents {
            if let Some((cell, first)) = cells.get(place).zip(cells.first()) {
                out.push_str(&format!(" {} |", of(cell, first)));
            }
        }
        let recovered = hard.recovered.map_or_else(|| "-".to_owned(), time);
        out.push_str(&format!(
            " {} | {} % | {recovered} |\n",
            digits(well.wrong),
            digits(errors.missed)
        ));
    }
    out
}

/// What callers lost, a panel a scene.
pub fn as_svg(title: &str, scenes: &[(Scene, Vec<Cell>)], stands_out: &str) -> String {
    let bar = |cell: &Cell| Bar {
        label: cell.subject.clone(),
        value: cell.lost,
        text: time(cell.lost),
        stands_out: cell.subject == stands_out,
    };
    let panel = |(scene, cells): &(Scene, Vec<Cell>)| Panel {
        title: scene.name.clone(),
        bars: cells.iter().map(bar).collect(),
    };
    svg(title, &scenes.iter().map(panel).collect::<Vec<_>>())
}

/// Seconds as a reader would say them.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        10.0..600.0 => format!("{seconds:.0} s"),
        600.0..36_000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}

/// At most two digits behind the point, and none where there are hundreds.
fn digits(value: f64) -> String {
    match value {
        ..10.0 => {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_short() {
        let told = [0.25, 9.96, 75.4, 3_600.0, 90_000.0].map(time);
        assert_eq!(told, ["0.2 s", "10.0 s", "75 s", "60 min", "25 h"]);
        assert_eq!(
            [0.0, 0.123, 2.5, 99.6].map(digits),
            ["0", "0.12", "2.5", "100"]
        );
    }
}
