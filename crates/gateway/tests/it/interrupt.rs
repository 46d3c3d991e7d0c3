//! Ctrl-C: whatever a command waits for, it ends at once.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::logs::{Lines, json_log};
use crate::support::{
    Program, SOON, breaker, chat, gateway, open, openai, route, send, signal, spawn, until, within,
};

/// What is at once, on a machine that does other things as well.
const AT_ONCE: Duration = Duration::from_secs(1);
/// What a shell shows of a command that an interrupt has ended.
const INTERRUPTED: i32 = 130;
/// Longer than any test waits, and less than a call may.
const WAIT: &str = "25";

/// A command in a folder with this file, its input and output held open.
fn begin(args: &[&str], admin: &str, file: &str) -> (Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fuseline.toml"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
    let child = command
        .env_clear()
        .env("FUSELINE_ADMIN_LISTEN", admin)
        .current_dir(&folder)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child, folder)
}

/// Interrupts it; gives what a shell would show of how it ended.
async fn interrupt(mut child: Child) -> i32 {
    let began = Instant::now();
    signal(child.id(), "INT");
    let mut ended = None;
    until(|| {
        ended = child.try_wait().unwrap();
        std::future::ready(ended.is_some())
    })
    .await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let ended = ended.unwrap();
    let by_signal = || 128 + ended.signal().unwrap();
    ended.code().unwrap_or_else(by_signal)
}

/// Waits until it has said something.
async fn heard(mut child: Child) -> Child {
    let out = child.stdout.take().unwrap();
    let line = tokio::task::spawn_blocking(move || {
        let mut out = BufReader::new(out);
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        (line, out)
    });
    let (line, out) = within(line).await.unwrap();
    assert!(!line.is_empty());
    child.stdout = Some(out.into_inner());
    child
}

#[tokio::test]
async fn report_157_commands_that_wait_for_a_gateway_end_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let admin = silent.local_addr().unwrap().to_string();
    for args in [
        &["status"][..],
        &["status", "--watch"],
        &["why", "a"],
        &["force", "open", "a"],
        &["release", "--all"],
        &["reset", "--all"],
        &["reload"],
    ] {
        let (child, _folder) = begin(args, &admin, "");
        let (asked, _) = within(silent.accept()).await.unwrap();
        assert_eq!(interrupt(child).await, INTERRUPTED, "{args:?}");
        drop(asked);
    }
}

#[tokio::test]
async fn report_157_a_status_that_is_watched_ends_between_two_looks() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let args = ["status", "--watch", "--every", "1h"];
    let (child, _folder) = begin(&args, &gateway.admin_addr().to_string(), "");
    assert_eq!(interrupt(heard(child).await).await, INTERRUPTED);
}

#[tokio::test]
async fn report_157_commands_that_wait_for_input_or_play_a_scene_end_at_once() {
    let file = openai("a", "http://127.0.0.1:9") + &route(&["a"]);
    for args in [&["tune", "-"][..], &["replay", "-"]] {
        let (child, _folder) = begin(args, "127.0.0.1:9", &file);
        assert_eq!(interrupt(child).await, INTERRUPTED, "{args:?}");
    }
    let (child, _folder) = begin(&["demo", "--json"], "127.0.0.1:9", "");
    assert_eq!(interrupt(heard(child).await).await, INTERRUPTED);
    let (child, _folder) = begin(&["drill", "--for", "1h"], "127.0.0.1:9", &file);
    // It says nothing before its end: it is under way once it looks after the signal itself.
    let status = format!("/proc/{}/status", child.id());
    until(async || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & (1 << (2 - 1)) != 0
    })
    .await;
    assert_eq!(interrupt(child).await, INTERRUPTED);
}

/// A provider that asks for a wait which a call has the time for.
async fn asking_for_patience() -> Mock {
    let reply = Reply::status(429).header("retry-after", WAIT);
    Mock::start(reply.body("slow down")).await.unwrap()
}

fn in_front_of(mock: &Mock) -> String {
    let route = route(&["a"]).replace("retries = 0", "retries = 3");
    openai("a", &mock.url()) + &route
}

#[tokio::test]
async fn report_157_a_gateway_whose_calls_wait_to_be_repeated_drains_and_ends_at_the_second() {
    let mock = asking_for_patience().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    std::fs::write(&file, in_front_of(&mock)).unwrap();
    let mut program = Program::serve(file.to_str().unwrap());
    let addr = program.listen.parse().unwrap();
    let waiting = spawn(open(addr, chat()));
    mock.wait_for_hits(1, SOON).await.unwrap();
    program.interrupt();
    until(async || tokio::net::TcpStream::connect(addr).await.is_err()).await;
    assert!(!waiting.is_finished(), "it may still be answered");
    let began = Instant::now();
    program.interrupt();
    assert!(program.ended().await, "it ends well");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(mock.hits(), 1);
    waiting.abort();
}

#[tokio::test]
async fn report_157_a_caller_who_leaves_a_wait_ends_it_and_a_wait_beyond_his_budget_is_not_begun() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));
    let mock = asking_for_patience().await;
    let gateway = gateway(&in_front_of(&mock)).await;
    let waiting = spawn(open(gateway.addr(), chat()));
    // From then on it waits.
    until(async || breaker(&gateway, "a#0").await["hold_ms"].is_u64()).await;
    let left = Instant::now();
    waiting.abort();
    until(async || !lines.of("call").is_empty()).await;
    assert!(left.elapsed() < AT_ONCE, "{:?}", left.elapsed());
    let call = lines.of("call").remove(0);
    assert_eq!(
        (&call["status"], &call["attempts"]),
        (&Value::Null, &1.into())
    );
    assert_eq!(mock.hits(), 1);

    // By a gateway that does not know yet that the key waits.
    let gateway = crate::support::gateway(&in_front_of(&mock)).await;
    let mut request = chat();
    let budget = "2000".parse().unwrap();
    request.headers_mut().insert("x-fuseline-budget-ms", budget);
    let began = Instant::now();
    let answer = send(gateway.addr(), request).await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!((answer.status.as_u16(), mock.hits()), (429, 2));
    assert_eq!(&answer.body[..], b"slow down");
    assert_eq!(answer.header("x-fuseline-attempts"), "1");
    assert_eq!(answer.header("retry-after"), WAIT);
}
