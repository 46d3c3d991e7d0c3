//! The operator's commands, against a running gateway: what they print, and their exit codes.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use crate::support::{breaker, chat, gateway, openai, route, send};

/// Exit status, standard output, standard error.
type Ran = (Option<i32>, String, String);

fn command(admin: SocketAddr, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command
        .env_clear()
        .env("FUSELINE_ADMIN_LISTEN", admin.to_string())
        .current_dir(std::env::temp_dir())
        .args(args);
    command
}

/// Runs `fuseline` while the gateway goes on.
async fn fuseline(gateway: &Gateway, args: &[&str]) -> Ran {
    let mut command = command(gateway.admin_addr(), args);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A gateway whose model `m` at `a` has failed so often.
async fn failing(times: u32) -> (Gateway, Mock) {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let route = route(&["a"]).replace('*', "m");
    let gateway = gateway(&format!("{}{route}", openai("a", &mock.url()))).await;
    for _ in 0..times {
        send(gateway.addr(), chat()).await;
    }
    (gateway, mock)
}

#[tokio::test]
async fn status_shows_each_breaker_and_fails_if_one_is_open_only_when_asked_to() {
    let (gateway, _mock) = failing(0).await;
    let (code, out, _) = fuseline(&gateway, &["status", "--fail-if-open"]).await;
    assert_eq!(
        (code, out.as_str()),
        (
            Some(0),
            "no breakers yet: they are made by the first calls\n"
        )
    );
    for _ in 0..7 {
        send(gateway.addr(), chat()).await;
    }
    let (code, out, err) = fuseline(&gateway, &["status"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let mut lines = out.lines();
    let head: Vec<_> = lines.next().unwrap().split("  ").collect();
    assert_eq!(head[0], "BREAKER");
    let line = lines.find(|line| line.starts_with("a/m ")).unwrap();
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells[1], "open", "{line}");
    assert!(line.contains(" 100 % "), "{line}");
    assert!(
        line.contains(" 2         consecutive 5/5, overloaded"),
        "{line}"
    );
    let (code, ..) = fuseline(&gateway, &["status", "--fail-if-open"]).await;
    assert_eq!(code, Some(1));
    let (code, out, _) = fuseline(&gateway, &["status", "--json", "--fail-if-open"]).await;
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, out.lines().count()), (Some(1), 1));
    let open = list
        .as_array()
        .unwrap()
        .iter()
        .find(|breaker| breaker["name"] == "a/m");
    assert_eq!(open.unwrap()["state"], "open");
}

#[tokio::test]
async fn status_watches_until_it_is_stopped() {
    let (gateway, _mock) = failing(1).await;
    let args = ["status", "--watch", "--every", "100ms", "--json"];
    let mut command = command(gateway.admin_addr(), &args);
    let lists = tokio::task::spawn_blocking(move || {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lists: Vec<_> = lines.take(3).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        lists
    });
    for list in lists.await.unwrap() {
        let list: Value = serde_json::from_str(&list).unwrap();
        assert!(list.as_array().is_some_and(|list| !list.is_empty()));
    }
}

#[tokio::test]
async fn why_names_rule_failures_and_the_way_here() {
    let (gateway, _mock) = failing(5).await;
    let (code, out, _) = fuseline(&gateway, &["why", "a/m"]).await;
    assert_eq!(code, Some(0));
    for part in [
        "a/m is open for ",
        "calls are turned away (open), next one in 1",
        "failure: overloaded 503, ",
        "ago: closed -> degraded: pressure",
        "ago: degraded -> open: consecutive 5/5, overloaded; last failures: overloaded 503",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let (code, out, _) = fuseline(&gateway, &["why", "a/m", "--json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, told["history"].as_array().map(Vec::len)),
        (Some(0), Some(2))
    );
    let (code, out, err) = fuseline(&gateway, &["why", "b"]).await;
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no breaker is called \"b\""), "{err}");
}

#[tokio::test]
async fn an_operator_forces_releases_and_resets() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let force = [
        "force",
        "open",
        "a/m",
        "--for",
        "10m",
        "--note",
        "they said so",
    ];
    let (code, out, err) = fuseline(&gateway, &force).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(
        out.contains("a/m is forced_open") && out.contains("note: they said so"),
        "{out}"
    );
    let refused = send(gateway.addr(), chat()).await;
    assert_eq!((refused.status.as_u16(), mock.hits()), (503, 0));
    let wait: u32 = refused.header("retry-after").parse().unwrap();
    assert!((590..=600).contains(&wait), "{wait}");
    let (_, out, _) = fuseline(&gateway, &["why", "a/m"]).await;
    assert!(out.contains("note: they said so"), "{out}");

    let (code, out, _) = fuseline(&gateway, &["release", "a/m"]).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "a/m is closed, with nothing counted\n")
    );
    let (_, out, _) = fuseline(&gateway, &["why", "a/m"]).await;
    assert!(!out.contains("they said so"), "{out}");
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);

    fuseline(&gateway, &["force", "closed", "a"]).await;
    let (code, out, _) = fuseline(&gateway, &["release", "--all"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "1 breakers are released\n"));
    fuseline(&gateway, &["force", "closed", "a"]).await;
    assert_eq!(breaker(&gateway, "a").await["state"], "forced_closed");
    let (code, out, _) = fuseline(&gateway, &["reset", "--all"]).await;
    assert_eq!(code, Some(0));
    assert!(
        out.ends_with(" breakers are closed, with nothing counted\n"),
        "{out}"
    );
    assert_eq!(breaker(&gateway, "a").await["state"], "closed");

    for (args, why) in [
        (
            &["force", "open", "a", "--for", "soon"][..],
            "is no duration",
        ),
        (&["force", "open", "a", "--for", "0s"], "is no duration"),
        (&["force", "open", "nobody"], "no breaker is called"),
        (&["release", "a/"], "no breaker is called"),
    ] {
        let (code, out, err) = fuseline(&gateway, args).await;
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}");
        assert!(err.contains(why), "{err}");
    }
    for args in [
        &["force", "ajar", "a"][..],
        &["reset"],
        &["release"],
        &["reset", "a", "--all"],
    ] {
        assert_eq!(fuseline(&gateway, args).await.0, Some(2));
    }
}

#[tokio::test]
async fn whoever_cannot_be_asked_is_named_with_a_remedy() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let output = command(nobody, &["status"]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err.contains(&format!("no gateway can be reached at {nobody}"))
            && err.contains("--admin-listen"),
        "{err}"
    );
}

#[tokio::test]
async fn the_listener_and_its_token_are_found_in_the_file() {
    let text = "admin_token = \"sesame\"\n[providers.a]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\n\
                api_key = \"k\"\n[[routes]]\nmodel = \"*\"\ntargets = [{ provider = \"a\" }]\n";
    let gateway = gateway(text).await;
    let admin = gateway.admin_addr();
    let folder = tempfile::tempdir().unwrap();
    // The providers' secrets are of no interest here.
    let file = format!("admin_listen = \"{admin}\"\n{text}").replace("\"k\"", "{ env = \"GONE\" }");
    std::fs::write(folder.path().join("fuseline.toml"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    command.env_clear().current_dir(folder.path()).arg("status");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (code, _, err) = fuseline(&gateway, &["status"]).await;
    assert_eq!(code, Some(2));
    assert!(
        err.contains("admin_token") && !err.contains("sesame"),
        "{err}"
    );
}
