//! What the page of others' faults promises: each test that it names exists where it says, and each report that a test is named
//! after has its row.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

const PAGE: &str = "docs/concepts/what-went-wrong-elsewhere.md";

/// Every promise that is not kept, as a sentence each. `sources` are the project's Rust files.
pub(crate) fn violations(root: &Path, sources: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let read = |file: &Path| {
        fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
    };
    let page = root.join(PAGE);
    let text = read(&page)?;
    let folder = page.parent().unwrap_or(root);
    let mut violations = Vec::new();
    for (test, file) in named_tests(&text) {
        // That a link leads somewhere is another check.
        let is_there = read(&folder.join(file)).map_or(true, |source| defines(&source, test));
        if !is_there {
            violations.push(format!("{PAGE} names {test}, which is not in {file}"));
        }
    }
    let told = rows(&text);
    let mut reports = BTreeSet::new();
    for source in sources {
        reports.extend(reports_of(&read(source)?));
    }
    let untold = reports.difference(&told);
    violations.extend(untold.map(|number| {
        format!("report {number} has a test, and no row in {PAGE}: add one that links to it")
    }));
    Ok(violations)
}

/// The links whose text is the name of a test: that name, and the file.
fn named_tests(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        let (file, _) = rest.split_once(')')?;
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        (name.contains('_') && name.bytes().all(is_name)).then_some((name, file))
    })
}

fn defines(source: &str, test: &str) -> bool {
    [format!("fn {test}("), format!("def {test}(")]
        .iter()
        .any(|definition| source.contains(definition))
}

/// The numbers that open the rows of its tables.
fn rows(page: &str) -> BTreeSet<u32> {
    let opening = |line: &str| line.strip_prefix("| ")?.split(' ').next()?.parse().ok();
    page.lines().filter_map(opening).collect()
}

/// The reports that the tests of this source are named after: 7 and 9 of `report_7_and_9_what_is_seen`.
fn reports_of(source: &str) -> BTreeSet<u32> {
    let names = source.split("fn report_").skip(1);
    names
        .flat_map(|name| {
            let parts = name.split('_').take_while(|part| {
                *part == "and" || part.bytes().all(|byte| byte.is_ascii_digit())
            });
            parts.filter_map(|part| part.parse().ok())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{defines, named_tests, reports_of, rows};

    #[test]
    fn tests_are_known_by_their_links() {
        let page =
            "[`it_is_so`](../a.rs) · [`Clock::manual`](b.rs) and [`word`](c.rs), [d](e_f.rs)";
        assert_eq!(
            named_tests(page).collect::<Vec<_>>(),
            [("it_is_so", "../a.rs")]
        );
    }

    #[test]
    fn a_test_is_defined_by_its_whole_name() {
        assert!(defines("async fn it_is_so() {", "it_is_so"));
        assert!(defines("def it_is_so(gateway):", "it_is_so"));
        assert!(!defines("fn it_is_so_too() {}", "it_is_so"));
    }

    #[test]
    fn numbers_come_from_rows_and_from_names() {
        assert_eq!(rows("| 7 | so |\n|---|\n| a | 8 |\n12 |\n").len(), 1);
        let source = "fn report_7_and_9_what_3_see() {}\nasync fn report_11_x() {}";
        assert_eq!(
            reports_of(source).into_iter().collect::<Vec<_>>(),
            [7, 9, 11]
        );
    }
}
