//! State over restarts: what a gateway keeps, what the next one restores, and what `fuseline history` shows of it.

mod crashes;
mod files;
pub(crate) mod program;

use std::path::Path;
use std::process::{Command, Output};

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use crate::support::{
    Answer, breaker, chat, config, get, openai, provider, route, send, until, within,
};

/// A gateway that keeps its state in this file; listeners and the rest as everywhere.
async fn keeping(state: &Path, text: &str) -> Gateway {
    let mut config = config(text);
    config.state = Some(state.to_owned());
    Gateway::start(config).await.unwrap()
}

const TOUCHY: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 2 }]\ncooldown = \"60s\"\njitter = 0.0\n";

/// One provider, one route.
fn one(mock: &Mock) -> String {
    format!("{}{}{TOUCHY}", openai("a", &mock.url()), route(&["a"]))
}

async fn call(gateway: &Gateway) -> Answer {
    send(gateway.addr(), chat()).await
}

/// Runs `fuseline` in this folder.
fn fuseline(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command.current_dir(folder).env_clear().args(args);
    command.output().unwrap()
}

fn history(state: &Path) -> Vec<Value> {
    let path = state.to_str().unwrap();
    let args = ["history", "--state", path, "--json", "--last", "100000"];
    let output = fuseline(Path::new("."), &args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn an_open_breaker_is_open_after_a_restart_and_its_provider_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    for _ in 0..2 {
        assert_eq!(call(&gateway).await.status, 500);
    }
    let before = breaker(&gateway, "a/m").await;
    assert_eq!((&before["state"], mock.hits()), (&"open".into(), 2));
    within(gateway.shutdown()).await;

    mock.set(Reply::ok()).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    let after = breaker(&gateway, "a/m").await;
    assert_eq!(after["state"], "open");
    let left = |view: &Value| view["retry_after_ms"].as_u64().unwrap();
    assert!(
        left(&after) <= left(&before) && left(&after) > 50_000,
        "{after}"
    );
    assert_eq!(after["why"]["cause"], "restored");
    assert_eq!(after["why"]["kind"], "server_error");
    let refused = call(&gateway).await;
    assert_eq!((refused.status.as_u16(), mock.hits()), (503, 2));
    assert_eq!(after["opened"], 0, "it opened in the process before");
}

#[tokio::test]
async fn a_run_of_failures_goes_on_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    call(&gateway).await;
    within(gateway.shutdown()).await;
    let gateway = keeping(&state, &one(&mock)).await;
    let restored = breaker(&gateway, "a/m").await;
    assert_eq!(
        (&restored["run"], &restored["state"]),
        (&1.into(), &"closed".into())
    );
    call(&gateway).await;
    assert_eq!(breaker(&gateway, "a/m").await["state"], "open");
}

#[tokio::test]
async fn what_the_configuration_no_longer_has_and_callers_keys_are_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    let mock = Mock::start(Reply::status(429)).await.unwrap();
    let callers = openai("a", &mock.url()).replace("api_key = \"key-of-a\"", "auth = \"caller\"");
    let text = format!("{callers}{}{TOUCHY}", route(&["a"]));
    let gateway = keeping(&state, &text).await;
    for _ in 0..2 {
        call(&gateway).await;
    }
    let opened = async |gateway: &Gateway| {
        let list = send(gateway.admin_addr(), get("/breakers")).await.json();
        let all = list.as_array().unwrap().clone();
        all.into_iter()
            .filter(|breaker| breaker["state"] == "open")
            .map(|breaker| breaker["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(opened(&gateway).await[0].starts_with("a#"));
    within(gateway.shutdown()).await;
    let gateway = keeping(&state, &text).await;
    assert_eq!(opened(&gateway).await, [""; 0]);
    within(gateway.shutdown()).await;

    mock.set(Reply::status(500)).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    for _ in 0..2 {
        call(&gateway).await;
    }
    assert_eq!(opened(&gateway).await, ["a/m"]);
    within(gateway.shutdown()).await;
    let other = provider("b", "openai", &mock.url());
    let gateway = keeping(&state, &format!("{other}{}", route(&["b"]))).await;
    assert_eq!(opened(&gateway).await, [""; 0]);
}

#[tokio::test]
async fn restored_breakers_leave_room_for_each_providers_own() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    for model in ["x", "y", "z"] {
        for _ in 0..2 {
            let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
            send(
                gateway.addr(),
                crate::support::post(crate::support::CHAT, body),
            )
            .await;
        }
    }
    within(gateway.shutdown()).await;
    mock.set(Reply::ok()).await.unwrap();
    let gateway = keeping(&state, &format!("max_breakers = 3\n{}", one(&mock))).await;
    assert_eq!(gateway.registry().len(), 2);
    let operator = gateway.registry().breakers();
    for breaker in operator {
        breaker.reset(gateway.registry().now());
    }
    assert_eq!(call(&gateway).await.status, 200);
}

#[tokio::test]
async fn history_tells_what_happened_while_the_gateway_runs_and_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let gateway = keeping(&state, &one(&mock)).await;
    for _ in 0..2 {
        call(&gateway).await;
    }
    until(async || history(&state).len() == 1).await;
    let last = history(&state).pop().unwrap();
    assert_eq!(
        (&last["breaker"], &last["from"], &last["to"], &last["cause"]),
        (
            &"a/m".into(),
            &"closed".into(),
            &"open".into(),
            &"consecutive".into()
        )
    );
    assert_eq!(
        last["until_ms"].as_u64().unwrap() - last["at_ms"].as_u64().unwrap(),
        60_000
    );
    within(gateway.shutdown()).await;
    let gateway = keeping(&state, &one(&mock)).await;
    within(gateway.shutdown()).await;

    let output = fuseline(
        folder.path(),
        &["history", "--breaker", "a/m", "--last", "2"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("TIME") && lines[0].ends_with("WHY"),
        "{text}"
    );
    assert!(lines[1].contains("Z  a/m      closed  open  20"), "{text}");
    assert!(
        lines[2].contains("restored 2/2, server_error; last failures: server_error 500"),
        "{text}"
    );
}

#[test]
fn history_says_what_it_cannot_read_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let told = |args: &[&str]| {
        let output = fuseline(folder.path(), args);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        told(&["history"]),
        "fuseline: fuseline.db does not exist; a gateway with this `state` makes it\n"
    );
    std::fs::write(folder.path().join("fuseline.toml"), "state = \"off\"\n").unwrap();
    assert!(told(&["history"]).starts_with("fuseline: state is \"off\""));
    assert_eq!(
        told(&["history", "--state", "fuseline.toml"]),
        "fuseline: fuseline.toml is no state of Fuseline; set `state` to another file, or move this one away\n"
    );
    std::fs::write(folder.path().join("fuseline.toml"), "stat = 1\n").unwrap();
    assert!(told(&["history"]).starts_with("fuseline.toml:1: stat: unknown key"));
}
