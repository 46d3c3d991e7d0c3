//! `fuseline demo`: the outage, and what must hold in it.

use std::process::{Command, Output};

use serde_json::Value;

fn demo(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command.env_clear().arg("demo").arg("--fast").args(args);
    command.output().unwrap()
}

fn events(output: &Output) -> Vec<Value> {
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

#[test]
fn the_circuit_opens_probes_and_closes_while_every_call_is_answered() {
    let output = demo(&["--json", "--seed", "7"]);
    let events = events(&output);
    let of_kind = |kind| events.iter().filter(move |event| event["event"] == kind);
    let states: Vec<_> = of_kind("transition")
        .map(|event| event["to"].as_str().unwrap())
        .collect();
    let place = |state| states.iter().position(|entered| *entered == state).unwrap();
    assert!(place("open") < place("half_open") && place("half_open") < place("closed"));
    assert_eq!(states.last(), Some(&"closed"), "{states:?}");
    let opened = of_kind("transition")
        .find(|event| event["to"] == "open")
        .unwrap();
    assert_eq!(opened["cause"], "consecutive");
    assert_eq!(opened["observed"], 5.0);
    assert!(of_kind("crowd").next().is_some());

    let summary = of_kind("summary").next().unwrap();
    assert_eq!(summary["ok"], true, "{summary}");
    assert!(
        summary["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["holds"] == true)
    );
    assert_eq!(summary["with"]["answered"], summary["with"]["calls"]);
    assert!(summary["without"]["answered"].as_u64() < summary["without"]["calls"].as_u64());
    assert!(summary["saved"].as_u64() > Some(20), "{summary}");
    let told: u64 = of_kind("traffic")
        .map(|event| &event["with"])
        .flat_map(|lane| {
            ["primary", "spare", "spare_after_failure"].map(|by| lane[by].as_u64().unwrap())
        })
        .sum();
    assert_eq!(Some(told), summary["with"]["calls"].as_u64());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn in_a_pipe_it_is_plain_text_of_80_columns() {
    let output = demo(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.is_ascii() && !text.contains('\x1b'), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let places = [
        "DEGRADED",
        "OPEN",
        "HALF-OPEN",
        "CLOSED",
        "ok every call was answered",
    ]
    .map(|word| text.find(word).unwrap());
    assert!(places.is_sorted(), "{text}");
}
