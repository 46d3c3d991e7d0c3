//! Every example is run, most of them against a provider that fails, and says what its readers are told it says.
#![cfg(test)]

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use fuseline_mock::{Mock, Reply, Script};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What it prints, line by line. It must end well, and by itself.
async fn run(program: &str, arguments: Vec<String>) -> Result<Vec<String>, Failed> {
    let mut command = Command::new(program);
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().map(str::to_owned).collect())
}

async fn provider(script: impl Into<Script>) -> Result<(Mock, String), Failed> {
    let mock = Mock::start(script).await?;
    let base_url = mock.url() + "/v1";
    Ok((mock, base_url))
}

fn how_many(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

const OPEN: &str = "circuit `openai` is open, retry in 1";

#[tokio::test(flavor = "multi_thread")]
async fn quick_start() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_quick_start");
    let (mock, base_url) = provider(Reply::ok().text("Because.")).await?;
    let lines = run(program, vec![base_url.clone()]).await?;
    assert_eq!(lines, ["Because."; 7]);

    mock.set(Reply::status(503)).await?;
    let lines = run(program, vec![base_url]).await?;
    assert_eq!(
        how_many(&lines, "asked in vain: HTTP status server error (503"),
        5
    );
    assert_eq!(how_many(&lines, OPEN), 2);
    assert_eq!(mock.hits(), 7 + 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_chain");
    let (large, large_url) = provider(Reply::status(503)).await?;
    let (spare, spare_url) = provider(Reply::ok().text("Because.")).await?;
    let urls = vec![large_url, spare_url];
    let lines = run(program, urls.clone()).await?;
    assert_eq!(lines, ["llama-3.3-70b: Because."; 7]);
    assert_eq!((large.hits(), spare.hits()), (5, 7));

    large.set(Reply::status(400)).await?;
    let lines = run(program, urls).await?;
    assert_eq!(
        how_many(
            &lines,
            "We are busy, please try again: HTTP status client error (400"
        ),
        7
    );
    assert_eq!(
        (large.hits(), spare.hits()),
        (12, 7),
        "no other target, and no trip"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_cache() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_chain_cache");
    let once = Script::sequence([Reply::ok().text("Because."), Reply::status(503)]);
    let (mock, base_url) = provider(once).await?;
    let lines = run(program, vec![base_url]).await?;
    assert_eq!(lines[..2], ["Because.", "Because. (an old answer)"]);
    assert!(
        lines[2].starts_with("We are busy, please try again: HTTP status server error (503"),
        "another user's answer is nobody else's: {lines:?}"
    );
    assert_eq!(mock.hits(), 1 + 2 + 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reqwest_stream() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_reqwest_stream");
    let (mock, base_url) = provider(Reply::ok().events(3)).await?;
    let lines = run(program, vec![base_url.clone()]).await?;
    assert_eq!(how_many(&lines, "data: [DONE]"), 7);
    assert_eq!(how_many(&lines, " bytes"), 7);

    mock.set(Reply::ok().events(9).cut_after(3)).await?;
    let lines = run(program, vec![base_url]).await?;
    assert_eq!(
        how_many(&lines, "-- error decoding response body"),
        5,
        "{lines:?}"
    );
    assert_eq!(how_many(&lines, OPEN), 2);
    assert_eq!(mock.hits(), 7 + 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn collected_answer() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_collected_answer");
    let (mock, base_url) = provider(Reply::ok().text("Because it is so.")).await?;
    let lines = run(program, vec![base_url.clone()]).await?;
    assert_eq!(lines, ["Because it is so."; 7]);

    // A tidy end, and no end marker.
    let begun = r#"{"choices": [{"delta": {"content": "Beca"}}]}"#;
    let cut = Reply::ok().header("content-type", "text/event-stream");
    mock.set(cut.body(format!("data: {begun}\n\n"))).await?;
    let lines = run(program, vec![base_url]).await?;
    assert_eq!(how_many(&lines, "the answer is not complete: "), 5);
    assert_eq!(how_many(&lines, OPEN), 2);
    assert_eq!(mock.hits(), 7 + 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tower_client() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_tower_client");
    let (mock, base_url) = provider(Reply::status(529)).await?;
    let lines = run(program, vec![base_url.clone()]).await?;
    assert_eq!(how_many(&lines, "529"), 5);
    assert_eq!(how_many(&lines, OPEN), 2);
    assert_eq!(
        lines.last().map(String::as_str),
        Some("the breaker is open")
    );

    mock.set(Reply::ok()).await?;
    let lines = run(program, vec![base_url]).await?;
    assert_eq!(how_many(&lines, "200 OK"), 7);
    assert_eq!(
        lines.last().map(String::as_str),
        Some("the breaker is closed")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_threads() -> Result<(), Failed> {
    let program = env!("CARGO_BIN_EXE_blocking_threads");
    let (mock, base_url) = provider(Reply::status(500)).await?;
    let lines = run(program, vec![base_url]).await?;
    let asked = how_many(&lines, "asked in vain: HTTP status server error (500");
    assert!(
        (5..=8).contains(&asked),
        "5 open it, while 3 may be under way: {lines:?}"
    );
    assert_eq!(how_many(&lines, OPEN), 16 - asked);
    assert_eq!(usize::try_from(mock.hits())?, asked);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn presets() -> Result<(), Failed> {
    let lines = run(env!("CARGO_BIN_EXE_presets"), Vec::new()).await?;
    let expected = [
        "vernllm      a run of 5, 30 s",
        "llmtest      a run of 5, 60 s",
        "llmtest-rate 50 % of at least 10 within 60 s, 60 s",
        "omniroute    a run of 5, 30 s",
        "agents       5 within 60 s, 30 s",
        "n4n          5 within 60 s, 30 s",
        "circuit `openai` is open, retry in 20 s",
    ];
    assert_eq!(lines[..7], expected);
    assert!(lines[7..].concat().contains("probes"), "{lines:?}");
    assert!(lines[7..].concat().contains("backoff"), "{lines:?}");
    Ok(())
}

/// A server that is stopped when the test ends, well or not.
struct Server(Child);

impl Server {
    fn start(
        program: &str,
        arguments: [String; 2],
    ) -> Result<(Self, Lines<BufReader<ChildStdout>>), Failed> {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let printed = child.stdout.take().ok_or("it prints")?;
        Ok((Self(child), BufReader::new(printed).lines()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn axum_app() -> Result<(), Failed> {
    let (mock, base_url) = provider(Reply::ok().text("Because.")).await?;
    let arguments = [base_url, "127.0.0.1:0".to_owned()];
    let (_server, mut lines) = Server::start(env!("CARGO_BIN_EXE_axum_app"), arguments)?;
    let first = tokio::task::spawn_blocking(move || lines.next()).await?;
    let first = first.ok_or("it says where it listens")??;
    let url = first
        .strip_prefix("listening on ")
        .ok_or("it says where it listens")?;

    let http = reqwest::Client::new();
    let ask = async || http.post(format!("{url}/chat")).body("{}").send().await;
    assert!(ask().await?.text().await?.contains("Because."));
    mock.set(Reply::status(503)).await?;
    for _ in 0..5 {
        assert_eq!(ask().await?.status(), 503);
    }
    let refused = ask().await?;
    assert_eq!(refused.status(), 503);
    let wait: u64 = refused.headers()["retry-after"].to_str()?.parse()?;
    assert!((14..=17).contains(&wait), "{wait}");
    assert!(refused.text().await?.starts_with(OPEN));
    assert_eq!(mock.hits(), 1 + 5);
    let ready = http.get(format!("{url}/readyz")).send().await?;
    assert_eq!(ready.text().await?, "openai: open\n");
    Ok(())
}
