//! `start`: how long the gateway's program takes until it is ready, and how large it is without what debuggers need.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::{Server, free_port};
use crate::proxy::median;
use crate::shipped::program;

const STARTS: usize = 21;
const SLOWEST: Duration = Duration::from_millis(50);
const LARGEST: u64 = 20 << 20;

/// Prints both; fails where one is more than it may be.
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub(crate) async fn measure() -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..STARTS {
        took.push(start().await?.as_secs_f64() * 1e3);
    }
    let size = stripped_size(&program()?)?;
    let median = median(&mut took);
    let last = took.last().copied().unwrap_or(f64::NAN);
    println!("ready after {median:.1} ms, at most {last:.1} ms in {STARTS} starts");
    println!("stripped: {:.1} MiB", size as f64 / 1_048_576.0);
    ensure!(
        median < SLOWEST.as_secs_f64() * 1e3,
        "it may take {SLOWEST:?}"
    );
    ensure!(size < LARGEST, "it may have {} MiB", LARGEST >> 20);
    Ok(())
}

/// From the command to the first answer of `/readyz` that says yes.
#[expect(clippy::disallowed_methods, reason = "it is time that is measured")]
async fn start() -> Result<Duration> {
    let provider = format!("127.0.0.1:{}", free_port()?);
    let began = Instant::now();
    let gateway = Server::starting_gateway(&provider)?;
    while !is_ready(&gateway.admin).await {
        ensure!(
            began.elapsed() < Duration::from_secs(5),
            "it is not ready after 5 s"
        );
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    let took = began.elapsed();
    gateway.stop().await?;
    Ok(took)
}

async fn is_ready(admin: &str) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(admin).await?;
        let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    ask.await.unwrap_or(false)
}

fn stripped_size(program: &Path) -> Result<u64> {
    let stripped =
        std::env::temp_dir().join(format!("fuseline-bench-stripped-{}", std::process::id()));
    let done = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(program)
        .status();
    ensure!(
        done.context("strip does not start; it comes with gcc")?
            .success(),
        "strip failed"
    );
    let size = std::fs::metadata(&stripped)?.len();
    std::fs::remove_file(&stripped)?;
    Ok(size)
}
