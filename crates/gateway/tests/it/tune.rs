//! `fuseline tune`: recorded calls under other settings.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use crate::logs::{Lines, json_log};
use crate::support::{chat, gateway, openai, route, send, until};

fn tune(config: &str, log: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    if !config.is_empty() {
        std::fs::write(folder.path().join("fuseline.toml"), config).unwrap();
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_fuseline"))
        .current_dir(&folder)
        .env_clear()
        .args(["tune", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it has read everything.
    let _ = stdin.write_all(log.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Two minutes of a call a second; for half a minute each fails after two seconds.
fn outage() -> String {
    let mut log = String::from("time,outcome,duration,target\n");
    for second in 0..120 {
        let (outcome, duration) = if (30..60).contains(&second) {
            ("503", "2s")
        } else {
            ("ok", "900")
        };
        log.push_str(&format!(
            "{},{outcome},{duration},a/m\n",
            1_796_032_800 + second
        ));
    }
    log
}

fn settings(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
    all["settings"].as_array().unwrap().clone()
}

#[test]
fn settings_are_ranked_by_what_they_would_have_cost() {
    let config = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 20 }]\n";
    let output = tune(config, &outage(), &["--json"]);
    let settings = settings(&output);
    assert_eq!(output.status.code(), Some(0));
    let costs: Vec<_> = settings
        .iter()
        .map(|setting| setting["cost_ms"].as_u64().unwrap())
        .collect();
    assert!(costs.is_sorted() && costs.len() > 50, "{costs:?}");
    let named = |name: &str| {
        settings
            .iter()
            .find(|setting| setting["name"] == name)
            .unwrap()
    };
    // Twenty in a row, and the one that was under way by then.
    let yours = named("yours");
    assert_eq!(yours["failures_sent"], 21, "{yours}");
    assert_eq!(yours["lost_ms"], 42_000);
    let defaults = named("defaults");
    assert!(defaults["failures_sent"].as_u64() < Some(12), "{defaults}");
    assert!(defaults["rank"].as_u64() < yours["rank"].as_u64());
    let total = |setting: &Value| {
        setting["failures_sent"].as_u64().unwrap() + setting["failures_kept_back"].as_u64().unwrap()
    };
    assert!(settings.iter().all(|setting| total(setting) == 30));
}

#[test]
fn dear_refusals_favour_patience_and_the_text_shows_yours() {
    let output = tune("", &outage(), &["--top", "1", "--refusal-cost", "1h"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("120 calls to 1 target(s), 2026-11-30T10:00:00Z to"),
        "{text}"
    );
    assert!(text.contains("; 30 failed\n"), "{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with('>') && line.ends_with("yours")),
        "{text}"
    );
    let cheap = tune("", &outage(), &["--json", "--refusal-cost", "0s"]);
    let best = &settings(&cheap)[0];
    assert!(
        best["name"].as_str().unwrap().contains("3 in a row"),
        "{best}"
    );
    assert!(
        best["breaker"].as_str().unwrap().contains("failures = 3"),
        "{best}"
    );
}

#[test]
fn a_log_that_says_nothing_is_refused_with_its_line() {
    for (log, args, told) in [
        (
            "time,outcome,duration\nnever,ok,1\n",
            &[][..],
            "-: line 2: time is \"never\", must be RFC 3339",
        ),
        ("hello\n", &[], "-: the head has no column `time`"),
        ("{\"message\":\"serving\"}\n", &[], "no calls in it"),
        (
            "time,outcome,duration\n1,ok,1\n",
            &["--target", "x"],
            "--target x: no call went there; there are calls",
        ),
    ] {
        let output = tune("", log, args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(told), "{error}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[tokio::test]
async fn the_gateways_own_log_tells_of_every_target_that_a_call_met() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));
    // So that one call's failure is over before the next call begins, by a log whose times have a few milliseconds.
    let apart = Duration::from_millis(20);
    let (ill, well) = (
        Mock::start(Reply::status(500)).await.unwrap(),
        Mock::start(Reply::ok().delay(apart)).await.unwrap(),
    );
    let text = format!(
        "{}{}{}",
        openai("a", &ill.url()),
        openai("b", &well.url()),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    for _ in 0..7 {
        send(gateway.addr(), chat()).await;
    }
    until(async || lines.of("call").len() == 7).await;
    let log: String = lines.all().iter().map(|line| format!("{line}\n")).collect();
    let output = tune("", &log, &["--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["targets"], serde_json::json!(["a/m", "b/m"]));
    // Five failures, two refusals, seven answers.
    assert_eq!(
        (all["calls"].as_u64(), all["refused"].as_u64()),
        (Some(14), Some(2))
    );
    let yours = settings(&output)
        .into_iter()
        .find(|setting| setting["yours"] == true)
        .unwrap();
    assert_eq!(yours["failures_sent"], 5, "{yours}");
    assert_eq!(yours["failures_kept_back"], 2, "{yours}");
}
