//! What the documents show and name is real: README's snippets, its commands for the library, the tests that prove a claim.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect("it is there")
}

/// The fenced blocks of a document: what language, and what text.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let parts = document.split("\n```").skip(1).step_by(2);
    parts.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn every_snippet_of_the_readme_is_of_a_kind_that_is_run() {
    let readme = read("README.md");
    let mut kinds: Vec<_> = blocks(&readme).into_iter().map(|(kind, _)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // Rust by this package's doctest, text being pictures, all others by the SDK tests.
    assert_eq!(kinds, ["python", "rust", "sh", "text", "toml"]);
}

#[test]
fn the_front_page_of_the_crate_shows_what_the_readme_shows() {
    let readme = read("README.md");
    let source = read("crates/fuseline/src/lib.rs");
    let lines = source.lines().filter_map(|line| line.strip_prefix("//!"));
    let front_page: String = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n")
        .collect();
    let mut shown = blocks(&readme)
        .into_iter()
        .filter(|(kind, _)| *kind == "rust");
    let (_, snippet) = shown.next().expect("a snippet in Rust");
    assert!(front_page.contains(snippet), "{front_page}");
    assert!(snippet.lines().filter(|line| !line.is_empty()).count() <= 15);
}

#[test]
fn the_readmes_commands_for_the_library_name_what_exists() {
    let readme = read("README.md");
    let commands = blocks(&readme)
        .into_iter()
        .filter(|(kind, _)| *kind == "sh");
    let commands: Vec<_> = commands.flat_map(|(_, text)| text.lines()).collect();
    let said = |start| commands.iter().find_map(|line| line.strip_prefix(start));

    let added = said("cargo add ").expect("how the library is added");
    let manifest = read(&format!("crates/{added}/Cargo.toml"));
    assert!(manifest.contains(&format!("name = \"{added}\"")));
    let example = said("cargo run -p fuseline-examples --bin ").expect("how one is run");
    assert!(
        root()
            .join(format!("examples/src/bin/{example}.rs"))
            .is_file()
    );
}

#[test]
fn every_example_is_short_and_named_on_the_front_page() {
    let front_page = read("examples/src/lib.rs");
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("examples/src/bin")).expect("a folder") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a text");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(text.lines().count() < 80, "{name} is too long");
        assert!(front_page.contains(&format!("| `{name}` |")), "{name}");
        names.push(name);
    }
    assert_eq!(names.len(), 9, "{names:?}");
}

/// Of Rust, or of Python.
fn has_test(file: &str, name: &str) -> bool {
    ["fn", "def"]
        .iter()
        .any(|word| file.contains(&format!("{word} {name}(")))
}

#[test]
fn every_test_that_a_claim_names_exists() {
    let page = "docs/concepts/what-went-wrong-elsewhere.md";
    let text = read(page);
    let mut proofs = 0;
    for link in text.split("[`").skip(1) {
        let (name, rest) = link.split_once("`](").expect("a link");
        let (file, _) = rest.split_once(')').expect("a target");
        let file = file
            .strip_prefix("../../")
            .expect("a file of this repository");
        assert!(
            has_test(&read(file), name),
            "{page} names {name}, which is not in {file}"
        );
        proofs += 1;
    }
    assert!(proofs > 25, "{proofs}");
}
