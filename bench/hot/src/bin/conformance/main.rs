//! What seven circuit breakers get right, as the table of `docs/concepts/beside-others.md`. Fails where Fuseline is wrong
//! somewhere, or the page says otherwise.

mod call;
mod cases;
mod subjects;

use std::process::ExitCode;
use std::thread;

use cases::{LONG, Verdict};

const PAGE: &str = include_str!("../../../../../docs/concepts/beside-others.md");

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {})); // some stories are of calls that panic
    let names = subjects::ALL.map(|make| make(LONG).name);
    let dashes = ":-:|".repeat(names.len());
    let mut table = format!("| | {} |\n|---|{dashes}\n", names.join(" | "));
    let mut ours_is_right = true;
    // All at once: they wait most of the time.
    let stories = cases::ALL.map(|(what, story)| {
        let verdicts = subjects::ALL.map(|make| thread::spawn(move || story(make)));
        (what, verdicts)
    });
    for (what, verdicts) in stories {
        let row = verdicts.map(|verdict| verdict.join().expect("a story does not panic"));
        ours_is_right &= row[0] == Some(true);
        table += &format!("| {what} | {} |\n", row.map(shown).join(" | "));
    }
    print!("{table}");
    let is_told = PAGE.contains(&table);
    if !is_told {
        eprintln!("docs/concepts/beside-others.md has another table");
    }
    if ours_is_right && is_told {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn shown(verdict: Verdict) -> &'static str {
    match verdict {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "n/a",
    }
}
