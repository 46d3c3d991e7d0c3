//! How files must look: a Rust source file opens with a line saying what it is and stays short, and a link in the
//! documentation leads somewhere, one by a test's name to that test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::proofs;

const MOST_LINES: usize = 600;
const MOST_LINES_OF_A_FRONT_PAGE: usize = 150;

/// Every file that breaks a rule, as a sentence each.
pub(crate) fn violations(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let mut violations = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let shown = file
            .strip_prefix(root)
            .unwrap_or(file)
            .display()
            .to_string();
        if file.extension() == Some(OsStr::new("rs")) {
            violations.extend(of_source(&shown, &text));
        } else {
            let folder = file.parent().unwrap_or(root);
            violations.extend(of_document(&shown, &text, |link| {
                folder.join(link).exists()
            }));
        }
    }
    files.retain(|file| file.extension() == Some(OsStr::new("rs")));
    violations.extend(proofs::violations(root, &files)?);
    Ok(violations)
}

/// The Rust and Markdown files below, but for hidden folders, what cargo builds and what npm installs.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            let name = name.to_string_lossy();
            if !name.starts_with("target") && !name.starts_with('.') && name != "node_modules" {
                collect(&path, files)?;
            }
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "md")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn of_source(file: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    if !text.starts_with("//! ") {
        violations.push(format!(
            "{file} does not open with a `//!` line saying what it is"
        ));
    }
    let is_front_page = file.ends_with("src/lib.rs");
    let most = if is_front_page {
        MOST_LINES_OF_A_FRONT_PAGE
    } else {
        MOST_LINES
    };
    let lines = text.lines().count();
    if lines > most {
        violations.push(format!(
            "{file} has {lines} lines, must be at most {most}: split it by idea"
        ));
    }
    violations
}

fn of_document(file: &str, text: &str, leads_somewhere: impl Fn(&str) -> bool) -> Vec<String> {
    links(text)
        .filter(|link| !leads_somewhere(link))
        .map(|link| format!("{file} links to {link}, which does not exist"))
        .collect()
}

/// The targets of `[text](target)` that name a file, without their `#part`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        let (path, _) = target.split_once('#').unwrap_or((target, ""));
        (!path.is_empty() && !path.contains([':', ' '])).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::{of_document, of_source};

    #[test]
    fn a_good_source_file_passes() {
        assert_eq!(
            of_source("crates/x/src/lib.rs", "//! A front page.\n"),
            [""; 0]
        );
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_told() {
        for text in ["", "use std::io;\n", "//!\n", "\n//! Late.\n"] {
            assert_eq!(
                of_source("a.rs", text),
                ["a.rs does not open with a `//!` line saying what it is"]
            );
        }
    }

    #[test]
    fn long_files_are_told() {
        let lines = |count: usize| format!("//! A file.\n{}", "\n".repeat(count - 1));
        assert_eq!(of_source("a.rs", &lines(600)), [""; 0]);
        assert_eq!(
            of_source("a.rs", &lines(601)),
            ["a.rs has 601 lines, must be at most 600: split it by idea"]
        );
        assert_eq!(
            of_source("crates/x/src/lib.rs", &lines(151)),
            ["crates/x/src/lib.rs has 151 lines, must be at most 150: split it by idea"]
        );
    }

    #[test]
    fn links_to_files_must_lead_somewhere() {
        let text =
            "[a](here.md) [b](gone.md#part) [c](#part) [d](https://example.com/x) `x[0](y z)`";
        assert_eq!(
            of_document("README.md", text, |link| link == "here.md"),
            ["README.md links to gone.md, which does not exist"]
        );
    }
}
