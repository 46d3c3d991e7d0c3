//! The program: SIGHUP, `fuseline reload`, and what the log says of it.

use std::process::{Command, Output};

use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use crate::state::program::Serving;
use crate::support::{chat, get, openai, route, send, until};

async fn fuseline(serving: &Serving, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command
        .env_clear()
        .env("FUSELINE_ADMIN_LISTEN", serving.admin.to_string())
        .current_dir(std::env::temp_dir())
        .args(args);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_hang_up_and_a_command_reload_and_a_file_that_is_gone_is_refused() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "state = \"off\"\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    std::fs::write(&file, &text).unwrap();
    let serving = Serving::start(folder.path());
    let has = async |line: &str| {
        let page = send(serving.admin, get("/metrics")).await;
        String::from_utf8(page.body.to_vec())
            .unwrap()
            .contains(line)
    };
    assert!(has("config_last_reload_successful 1").await);

    std::fs::write(&file, format!("drain = \"1s\"\n{text}")).unwrap();
    serving.hang_up();
    until(async || has("config_reloads_total{outcome=\"applied\"} 1").await).await;
    std::fs::write(&file, format!("drian = \"1s\"\n{text}")).unwrap();
    serving.hang_up();
    until(async || has("config_reloads_total{outcome=\"refused\"} 1").await).await;
    assert!(has("config_last_reload_successful 0").await);
    assert_eq!(send(serving.addr, chat()).await.status, 200);

    let output = fuseline(&serving, &["reload"]).await;
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("fuseline.toml:1: drian: unknown key; did you mean \"drain\"?"),
        "{err}"
    );
    std::fs::remove_file(&file).unwrap();
    let output = fuseline(&serving, &["reload"]).await;
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("fuseline.toml: cannot be read"), "{err}");
    assert_eq!(send(serving.addr, chat()).await.status, 200);

    std::fs::write(
        &file,
        format!("max_breakers = 7\nmax_body = \"2MiB\"\n{text}"),
    )
    .unwrap();
    let output = fuseline(&serving, &["reload"]).await;
    assert_eq!(output.status.code(), Some(0));
    let out = String::from_utf8(output.stdout).unwrap();
    let note = "note: max_breakers: takes effect with the next start\n";
    assert_eq!(out, format!("{note}reloaded: drain, max_body\n"));
    let output = fuseline(&serving, &["reload", "--json"]).await;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["changed"], Value::Array(Vec::new()));
    assert!(has("config_last_reload_successful 1").await);

    let lines = serving.stop();
    let of = |message: &str| -> Vec<_> {
        let lines = lines.iter().filter(|line| line["message"] == message);
        lines.cloned().collect()
    };
    let applied = of("the configuration is reloaded");
    assert_eq!(
        (applied.len(), &applied[0]["keys"]),
        (3, &Value::from("drain"))
    );
    let refused = of("the configuration in force stays");
    assert_eq!(
        (refused.len(), &refused[0]["level"]),
        (3, &Value::from("ERROR"))
    );
    let error = refused[0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("fuseline.toml:1: drian: unknown key"),
        "{error}"
    );
}
