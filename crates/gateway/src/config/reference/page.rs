//! The reference page: every key as a table, in Markdown.

use std::fmt::Write as _;

use clap::Args as _;

use super::{Row, grouped};
use crate::config::Overrides;
use crate::config::load::rows;
use crate::config::succession::LASTING;

const HEAD: &str = "\
# Configuration

<!-- Written by `fuseline config --reference`; a test compares the two. -->

One file in TOML, `fuseline.toml` in the working directory or the one that `--config` names. Later wins, key by key: built in <
file < environment < flags. `fuseline check` tells every mistake at once; `fuseline config --defaults` prints a file with every
default written out; `GET /config` on the admin listener shows what is in force, without secrets.

A secret is a text, `{ env = \"NAME\" }` or `{ file = \"path\" }`, relative to the configuration's folder. Durations are written
as `\"30s\"`, `\"2m\"` or `\"500ms\"`.

SIGHUP, `fuseline reload` and `POST /reload` read the file anew: as a whole, or not at all where it has a mistake. Calls in flight
end as they began, and breakers keep their states. These take effect with the next start:
";

/// The page.
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    let lasting = LASTING.map(|key| format!("`{key}`")).join(", ");
    // Writing into a text cannot fail.
    let _written = writeln!(page, "{lasting}.");
    overrides(&mut page);
    for (places, rows) in grouped(&rows()) {
        section(&mut page, &places, &rows);
    }
    page
}

/// What stands above the file.
fn overrides(page: &mut String) {
    page.push_str("\n## Environment and flags\n\n| flag | variable | meaning |\n|---|---|---|\n");
    let command = Overrides::augment_args(clap::Command::new(""));
    for argument in command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
    {
        let flag = argument.get_long().unwrap_or_default();
        let variable = argument.get_env().unwrap_or_default().to_string_lossy();
        let meaning = argument.get_help().map(ToString::to_string);
        let meaning = cell(&meaning.unwrap_or_default());
        let _written = writeln!(page, "| `--{flag}` | `{variable}` | {meaning} |");
    }
}

fn section(page: &mut String, places: &[&str], rows: &[&Row]) {
    let head = |place: &str| match place.strip_suffix("[]") {
        Some(list) => format!("`[[{}]]`", list.replace("[]", "")),
        None => format!("`[{}]`", place.replace("[]", "")),
    };
    let _written = match places {
        [""] => writeln!(page, "\n## At the top of the file\n"),
        [place] => writeln!(page, "\n## {}\n", head(place)),
        [place, others @ ..] => {
            let others: Vec<_> = others.iter().map(|place| head(place)).collect();
            let others = others.join(", ");
            writeln!(page, "\n## {}\n\nAlso in {others}.\n", head(place))
        }
        [] => Ok(()),
    };
    page.push_str("| key | what to write | default | meaning |\n|---|---|---|---|\n");
    for row in rows {
        let Row {
            key,
            form,
            default,
            doc,
            ..
        } = row;
        let default = default.as_ref().map(|default| format!("`{default}`"));
        let (form, default, doc) = (cell(form), default.unwrap_or_default(), cell(doc));
        let _written = writeln!(page, "| `{key}` | {form} | {default} | {doc} |");
    }
}

/// A text that ends no cell and begins no element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
