//! The load: `wrk` for requests, plain sockets for streams that stay open.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

/// What one run of `wrk` saw.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// A request that is sent over and over: a kilobyte.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Post {
    /// For this model. `more` are fields of the body besides, each with a comma at its end.
    pub(crate) fn chat(model: &str, more: &str) -> Self {
        let question = "x".repeat(950);
        Self {
            path: "/v1/chat/completions".into(),
            headers: vec![("content-type", "application/json".into())],
            body: format!(
                r#"{{"model":"{model}",{more}"messages":[{{"role":"user","content":"{question}"}}]}}"#
            ),
        }
    }

    /// The same in the language of `wrk`, whose strings are quoted as ours are.
    fn script(&self) -> String {
        let mut script = format!(
            "wrk.method = \"POST\"\nwrk.path = {:?}\nwrk.body = {:?}\n",
            self.path, self.body
        );
        for (name, value) in &self.headers {
            let _infallible = writeln!(script, "wrk.headers[{name:?}] = {value:?}");
        }
        script + RESULT
    }
}

const RESULT: &str = r#"
done = function(s, latency)
  local bad = s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout
  io.write(string.format("\nresult %d %d %d %d %d\n", s.requests, s.duration, latency:percentile(50), latency:percentile(99), bad))
end
"#;

/// A kilobyte posted and a kilobyte answered, over and over on this many connections.
pub(crate) async fn wrk(address: &str, connections: u32, seconds: u32) -> Result<Load> {
    wrk_of(&Post::chat("m", ""), address, connections, seconds).await
}

/// The same of this request.
pub(crate) async fn wrk_of(
    post: &Post,
    address: &str,
    connections: u32,
    seconds: u32,
) -> Result<Load> {
    let script: PathBuf =
        std::env::temp_dir().join(format!("fuseline-bench-{}.lua", std::process::id()));
    std::fs::write(&script, post.script())?;
    let output = Command::new("wrk")
        .args([
            "-t1",
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
            "--timeout=30s",
            "-s",
        ])
        .arg(&script)
        .arg(format!("http://{address}"))
        .output()
        .await
        .context("wrk does not start; is the package installed?")?;
    std::fs::remove_file(&script)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("result "))
        .context("wrk printed no result")?;
    let numbers: Vec<f64> = line
        .split(' ')
        .filter_map(|number| number.parse().ok())
        .collect();
    let [requests, duration_us, p50_us, p99_us, bad] = numbers[..] else {
        anyhow::bail!("wrk's result is not understood: {line}");
    };
    ensure!(
        bad == 0.0,
        "{bad} of {requests} requests to {address} failed"
    );
    Ok(Load {
        requests,
        per_second: requests / (duration_us / 1e6),
        p50_us,
        p99_us,
    })
}

/// Opens this many event streams and returns them once each has delivered its first event.
pub(crate) async fn open_streams(address: &str, count: usize) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::with_capacity(count);
    let body = r#"{"model":"m","stream":true,"messages":[]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut seen = Vec::new();
        while !seen.windows(5).any(|window| window == b"data:") {
            ensure!(
                stream.read_buf(&mut seen).await? > 0,
                "a stream from {address} ended before its first event"
            );
        }
        streams.push(stream);
    }
    Ok(streams)
}
