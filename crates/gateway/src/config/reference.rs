//! Every key with its type, default and meaning, as the functions that read the sections tell them.

mod page;

use std::fmt::Write as _;

use serde::Serialize;

use super::document::join;
use super::load::rows;
pub use page::reference_page;

/// One key, as a section lists it when asked to.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) section: String,
    pub(super) key: String,
    pub(super) form: String,
    pub(super) default: Option<String>,
    pub(super) doc: &'static str,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Key {
    /// Where it may stand, such as `routes[].budget` or `providers.<name>.base_url`.
    pub key: String,
    /// What may be written.
    pub form: String,
    /// What holds where it is not written; none if it must be written, or if nothing holds.
    pub default: Option<String>,
    /// What it is for.
    pub doc: &'static str,
}

/// Every key that a file may hold.
pub fn keys() -> Vec<Key> {
    let key = |row: Row| Key {
        key: join(&row.section, &row.key),
        form: row.form,
        default: row.default,
        doc: row.doc,
    };
    rows().into_iter().map(key).collect()
}

/// A file that writes every default out, and shows every other key as a comment. Sections that may stand in several
/// places are shown once, where they hold for all.
pub fn template() -> String {
    let mut text = String::new();
    for (places, rows) in grouped(&rows()) {
        write_section(
            &mut text,
            places.first().copied().unwrap_or_default(),
            &rows,
        );
    }
    text
}

/// The sections in their order, those that have the same keys together.
fn grouped(rows: &[Row]) -> Vec<(Vec<&str>, Vec<&Row>)> {
    let mut sections: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match sections
            .iter_mut()
            .find(|(section, _)| *section == row.section)
        {
            Some((_, rows)) => rows.push(row),
            None => sections.push((&row.section, vec![row])),
        }
    }
    let mut groups: Vec<(Vec<&str>, Vec<&Row>)> = Vec::new();
    for (section, rows) in sections {
        let keys = |rows: &[&Row]| rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
        match groups
            .iter_mut()
            .find(|(_, others)| keys(others) == keys(&rows))
        {
            Some((places, _)) => places.push(section),
            None => groups.push((vec![section], rows)),
        }
    }
    groups
}

fn write_section(text: &mut String, section: &str, rows: &[&Row]) {
    let off = if section.contains(['[', '<', '.']) {
        "# "
    } else {
        ""
    };
    let head = section.replace("<name>", "name");
    let head = match head.strip_suffix("[]") {
        _ if section.is_empty() => String::new(),
        Some(list) => format!("\n{off}[[{}]]\n", list.replace("[]", "")),
        None => format!("\n{off}[{}]\n", head.replace("[]", "")),
    };
    text.push_str(&head);
    for Row {
        key,
        form,
        default,
        doc,
        ..
    } in rows
    {
        // Writing into a text cannot fail.
        let _written = match default {
            Some(default) => writeln!(text, "# {doc}: {form}\n{off}{key} = {default}"),
            None => writeln!(text, "# {doc}\n# {key} = {form}"),
        };
    }
}
