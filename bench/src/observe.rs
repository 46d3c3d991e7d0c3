//! `observe`: what it costs that everything is told. The gateway with a log in a file, its metrics scraped each second, spans
//! and metrics exported over OTLP, beside one that tells nothing, in one run: they take turns, and swap who goes first, so
//! that a noisy minute hits them alike.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::load::{Load, wrk};
use crate::process::{Server, config};
use crate::proxy::median;
use crate::servers::spawn;

const SECONDS: u32 = 4;
const ROUNDS: usize = 9;
/// For a first impression: `bench/run observe quick`.
const QUICK_ROUNDS: usize = 3;
/// Throughput that may be lost.
const MAX_LOSS: f64 = 0.10;

/// Prints the table; fails where more is lost than may be.
pub(crate) async fn measure(is_quick: bool) -> Result<()> {
    let answer = format!("location / {{ return 200 '{}'; }}", "x".repeat(1024));
    let provider = Server::nginx(&answer, "").await?;
    let takes_all = "client_max_body_size 64m; location / { return 200; }";
    let collector = Server::nginx(takes_all, "").await?;
    let told = format!(
        "log = \"info\"\n[otlp]\nendpoint = \"http://{}\"\n",
        collector.address
    );
    let mut rows = [
        Row::start("nothing is told", "log = \"off\"\n", &provider).await?,
        Row::start("log, metrics and OTLP", &told, &provider).await?,
    ];
    let [_, on] = &rows;
    scrape(on.server.admin.clone());
    for row in &rows {
        wrk(&row.server.address, 64, 1).await?;
    }
    for round in 0..if is_quick { QUICK_ROUNDS } else { ROUNDS } {
        let mut order: Vec<&mut Row> = rows.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for row in order {
            row.load().await?;
        }
    }
    let lost = print(&mut rows)?;
    for row in rows {
        row.server.stop().await?;
    }
    provider.stop().await?;
    collector.stop().await?;
    let most = MAX_LOSS * 100.0;
    ensure!(lost <= MAX_LOSS, "more than {most:.0} % is lost");
    Ok(())
}

struct Row {
    name: &'static str,
    server: Server,
    loads: Vec<Load>,
    cpu_ms_per_1000: Vec<f64>,
}

impl Row {
    async fn start(name: &'static str, told: &str, provider: &Server) -> Result<Self> {
        Ok(Self {
            name,
            server: Server::gateway(&config(told, &provider.address)).await?,
            loads: Vec::new(),
            cpu_ms_per_1000: Vec::new(),
        })
    }

    async fn load(&mut self) -> Result<()> {
        let before = self.server.cpu_seconds()?;
        let load = wrk(&self.server.address, 64, SECONDS).await;
        let load = load.with_context(|| format!("loading where {}", self.name))?;
        let cpu = self.server.cpu_seconds()? - before;
        self.cpu_ms_per_1000.push(cpu * 1e6 / load.requests);
        self.loads.push(load);
        Ok(())
    }

    fn median(&self, field: impl Fn(&Load) -> f64) -> f64 {
        median(&mut self.loads.iter().map(field).collect::<Vec<_>>())
    }
}

/// Reads the metrics each second, as a Prometheus in a hurry would.
fn scrape(admin: String) {
    spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let Ok(mut stream) = TcpStream::connect(&admin).await else {
                return;
            };
            let request = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
            let mut page = Vec::new();
            if stream.write_all(request).await.is_ok() {
                drop(stream.read_to_end(&mut page).await);
            }
        }
    });
}

/// The table; gives the share of the throughput that is lost.
#[expect(clippy::print_stdout, reason = "the table is the output")]
fn print(rows: &mut [Row; 2]) -> Result<f64> {
    println!("| | requests/s | CPU ms per 1,000 | p50 / p99 at 64 | logged |");
    println!("|---|---:|---:|---:|---:|");
    for row in rows.iter_mut() {
        println!(
            "| {} | {:.0} | {:.0} | {:.2} / {:.2} ms | {} MiB |",
            row.name,
            row.median(|load| load.per_second),
            median(&mut row.cpu_ms_per_1000),
            row.median(|load| load.p50_us) / 1e3,
            row.median(|load| load.p99_us) / 1e3,
            row.server.logged()? >> 20,
        );
    }
    let [off, on] = rows;
    let lost = 1.0 - on.median(|load| load.per_second) / off.median(|load| load.per_second);
    println!("\nthroughput lost: {:.1} %", lost * 100.0);
    Ok(lost)
}
