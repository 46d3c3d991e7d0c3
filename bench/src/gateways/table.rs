//! The tables, and what follows from them for the program.

use std::fmt::Write as _;

use super::peers::Peer;
use super::{Row, Taken};
use crate::proxy::median;

/// What is compared: its name, the number, and what it should be against nginx's.
type Part = (&'static str, fn(&Taken) -> f64, &'static str);

const PARTS: [Part; 4] = [
    ("requests/s", per_second, "at least 0.95"),
    ("CPU", cpu, "at most 1.15"),
    ("added p50", added_p50, "at most 1.15"),
    ("added p99", added_p99, "at most 1.5"),
];

#[expect(clippy::print_stdout, reason = "the tables are the output")]
pub(super) fn print(rows: &[Row]) {
    let mut text = String::new();
    for (name, part) in SHAPES {
        table(&mut text, name, rows, part);
    }
    ratios(&mut text, rows);
    for row in rows {
        if let Some(why) = &row.out {
            let _infallible = writeln!(text, "\n{}: not measured: {why}", row.name);
        }
    }
    println!("{text}");
}

type OfShape = fn(&Row) -> &Taken;

const SHAPES: [(&str, OfShape); 2] = [("plain", |row| &row.plain), ("streams", |row| &row.stream)];

fn table(text: &mut String, name: &str, rows: &[Row], part: OfShape) {
    let _infallible = writeln!(
        text,
        "| {name} | requests/s | CPU ms per 1,000 | of its core | at calls/s | added p50 ms | added p99 ms | MiB | MiB, idle |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for row in rows {
        let taken = part(row);
        let rate = taken.rate.map_or_else(String::new, |rate| rate.to_string());
        let idle = row.idle_bytes.map(|bytes| bytes as f64);
        let _infallible = writeln!(
            text,
            "| {} | {} | {} | {} | {rate} | {} | {} | {} | {} |",
            row.name,
            shown(per_second(taken), 0),
            shown(cpu(taken), 1),
            shown(of(&taken.busy), 2),
            shown(added_p50(taken) / 1e3, 3),
            shown(added_p99(taken) / 1e3, 3),
            shown(of(&taken.resident) / MIB, 1),
            shown(idle.unwrap_or(f64::NAN) / MIB, 1),
        );
    }
    text.push('\n');
}

fn ratios(text: &mut String, rows: &[Row]) {
    let find = |peer| rows.iter().find(|row| row.peer == Some(peer));
    let Some(own) = find(Peer::Fuseline) else {
        return;
    };
    text.push_str("| fuseline against | plain | streams | aim |\n|---|---:|---:|---|\n");
    let throughput = |aim| ("requests/s", per_second as fn(&Taken) -> f64, aim);
    let others = [
        (Peer::Portkey, throughput("at least 50")),
        (Peer::LiteLlm, throughput("at least 300")),
    ];
    let of_nginx = PARTS.map(|part| (Peer::Nginx, part));
    for (peer, (name, part, aim)) in of_nginx.into_iter().chain(others) {
        let Some(other) = find(peer) else { continue };
        let ratio = |shape: OfShape| shown(part(shape(own)) / part(shape(other)), 2);
        let [plain, stream] = SHAPES.map(|(_, shape)| ratio(shape));
        let _infallible = writeln!(
            text,
            "| {}, {name} | {plain} | {stream} | {aim} |",
            other.name
        );
    }
}

const MIB: f64 = 1024.0 * 1024.0;

fn per_second(taken: &Taken) -> f64 {
    let values: Vec<f64> = taken.loads.iter().map(|load| load.per_second).collect();
    of(&values)
}

fn cpu(taken: &Taken) -> f64 {
    of(&taken.cpu_ms_per_1000)
}

fn added_p50(taken: &Taken) -> f64 {
    of(&taken.added_p50_us)
}

fn added_p99(taken: &Taken) -> f64 {
    of(&taken.added_p99_us)
}

fn of(values: &[f64]) -> f64 {
    median(&mut values.to_vec())
}

/// What there is none of is empty.
fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return String::new();
    }
    format!("{value:.digits$}")
}
