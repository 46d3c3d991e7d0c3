//! `fuseline replay`: the shared vectors by the command, and what ends a replay.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors.jsonl")
}

fn replay(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command
        .arg("replay")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

const CASE: &str =
    r#"{"case": "c", "breaker": {"trip": [{"rule": "consecutive", "failures": 1}], "jitter": 0}}"#;

#[test]
fn every_vector_is_answered_as_expected() {
    let path = vectors();
    let output = replay(&[path.to_str().unwrap()], "");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answers = String::from_utf8(output.stdout).unwrap();
    let vectors = std::fs::read_to_string(path).unwrap();
    let expected = vectors
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let expected: Vec<_> = expected.filter(|line| line.get("case").is_none()).collect();
    assert_eq!(answers.lines().count(), expected.len());
    for (answer, event) in answers.lines().zip(expected) {
        let mut answer: Value = serde_json::from_str(answer).unwrap();
        for key in ["at_ms", "do", "as", "of"] {
            let echoed = answer.as_object_mut().unwrap().remove(key);
            assert_eq!(echoed.as_ref(), event.get(key), "{event}");
        }
        assert_eq!(answer, event["expect"], "{event}");
    }
}

#[test]
fn what_cannot_be_replayed_ends_it_with_line_number_and_status_2() {
    let cases = [
        (
            format!(
                "{CASE}\n{}\n{}\n",
                r#"{"at_ms": 50, "do": "state"}"#, r#"{"at_ms": 10, "do": "state"}"#
            ),
            "fuseline: -:3: at_ms is 10, must be 50 or later: time runs backwards\n",
        ),
        (
            format!(
                "{CASE}\n\n{}\n",
                r#"{"at_ms": 1, "do": "success", "of": "x"}"#
            ),
            "fuseline: -:3: of is `x`: no call of this name was acquired and is unsettled\n",
        ),
        (
            r#"{"at_ms": 1, "do": "state"}"#.to_owned(),
            "fuseline: -:1: an event before any case; begin with {\"case\": \"...\", \"breaker\": {...}}\n",
        ),
        (
            format!("{CASE}\n{}", r#"{"do": "state"}"#),
            "fuseline: -:2: the key `at_ms` is missing\n",
        ),
        (
            format!("{CASE}\n{}", r#"{"at_ms": 1}"#),
            "fuseline: -:2: the key `do` is missing\n",
        ),
        (
            format!("{CASE}\n{}", r#"{"at_ms": 1, "do": "acquire"}"#),
            "fuseline: -:2: the key `as` is missing\n",
        ),
        (
            r#"{"case": "c", "breaker": {"probes": 0}}"#.to_owned(),
            "fuseline: -:1: breaker: probes is 0, must be 1 to 64\n",
        ),
    ];
    for (input, told) in cases {
        let output = replay(&["-"], &input);
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8(output.stderr).unwrap().as_str()
            ),
            (Some(2), told)
        );
    }
    let output = replay(&["-"], "{\"case\": ");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.starts_with("fuseline: -:1: not a replay line: EOF"),
        "{told}"
    );
}

#[test]
fn answers_before_the_bad_line_are_printed_and_the_end_can_be_told_as_json() {
    let input = format!(
        "{CASE}\n{}\n{}",
        r#"{"at_ms": 5, "do": "state"}"#, r#"{"at_ms": 9, "do": "cancel", "of": "y"}"#
    );
    let output = replay(&["--json", "-"], &input);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "{\"at_ms\":5,\"do\":\"state\",\"state\":\"closed\"}\n"
    );
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&told["line"], &told["file"]),
        (&Value::from(3), &Value::from("-"))
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = replay(&["no/such/file.jsonl"], "");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("fuseline: cannot open no/such/file.jsonl: "),
        "{told}"
    );
}
