//! `proxy`: a bare streaming reverse proxy in each candidate stack, beside nginx, in one run.
//!
//! All candidates take turns in each round, so that a noisy minute hits them alike; the table shows medians over the rounds.

use anyhow::{Context as _, Result};

use crate::load::{Load, open_streams, wrk};
use crate::process::Server;
use crate::servers::CANDIDATES;

const ROUNDS: usize = 3;
const STREAMS: usize = 4_000;
pub(crate) const NGINX_PROXY: &str = "location / { proxy_pass http://provider; proxy_http_version 1.1; \
    proxy_set_header Connection \"\"; proxy_buffering off; proxy_request_buffering off; }";

/// Prints the table.
pub(crate) async fn measure() -> Result<()> {
    let answer = format!("location / {{ return 200 '{}'; }}", "x".repeat(1024));
    let fast = Server::nginx(&answer, "").await?;
    let slow = Server::own("upstream", "").await?;
    let names = ["nginx"].into_iter().chain(CANDIDATES).chain(["fuseline"]);
    let mut rows: Vec<Row> = names.map(Row::new).collect();
    let mut direct = Row::new("no proxy");
    for _ in 0..ROUNDS {
        direct.load(&fast).await?;
        for row in &mut rows {
            let proxy = row.start(&fast.address).await?;
            row.load(&proxy).await?;
            proxy.stop().await?;
        }
    }
    for row in &mut rows {
        let proxy = row.start(&slow.address).await?;
        row.weigh(&proxy).await?;
        proxy.stop().await?;
    }
    fast.stop().await?;
    slow.stop().await?;
    rows.insert(0, direct);
    print(&mut rows);
    Ok(())
}

/// What is measured of one server.
struct Row {
    name: &'static str,
    busy: Vec<Load>,
    alone: Vec<Load>,
    cpu_ms_per_1000: Vec<f64>,
    bytes_per_stream: Option<u64>,
}

impl Row {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            busy: Vec::new(),
            alone: Vec::new(),
            cpu_ms_per_1000: Vec::new(),
            bytes_per_stream: None,
        }
    }

    async fn start(&self, upstream: &str) -> Result<Server> {
        match self.name {
            "nginx" => Server::nginx(NGINX_PROXY, upstream).await,
            "fuseline" => Server::plain_gateway(upstream).await,
            name => Server::own(name, upstream).await,
        }
    }

    async fn load(&mut self, server: &Server) -> Result<()> {
        let context = || format!("loading {}", self.name);
        wrk(&server.address, 64, 1).await.with_context(context)?;
        let before = server.cpu_seconds()?;
        let busy = wrk(&server.address, 64, 4).await.with_context(context)?;
        let cpu = server.cpu_seconds()? - before;
        self.alone
            .push(wrk(&server.address, 1, 2).await.with_context(context)?);
        self.busy.push(busy);
        self.cpu_ms_per_1000.push(cpu * 1e6 / busy.requests);
        Ok(())
    }

    async fn weigh(&mut self, server: &Server) -> Result<()> {
        let context = || format!("opening streams through {}", self.name);
        drop(
            open_streams(&server.address, 50)
                .await
                .with_context(context)?,
        );
        let before = server.resident()?;
        let streams = open_streams(&server.address, STREAMS)
            .await
            .with_context(context)?;
        let after = server.resident()?;
        self.bytes_per_stream = Some(after.saturating_sub(before) / streams.len() as u64);
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "the table is the output")]
fn print(rows: &mut [Row]) {
    println!(
        "| proxy | requests/s | CPU ms per 1,000 | p50 / p99 at 64 | p50 / p99 alone | KiB per open stream |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let memory = row.bytes_per_stream.map_or_else(
            || "-".into(),
            |bytes| format!("{:.1}", bytes as f64 / 1024.0),
        );
        let cpu = median(&mut row.cpu_ms_per_1000);
        println!(
            "| {} | {:.0} | {cpu:.0} | {} | {} | {memory} |",
            row.name,
            median_of(&row.busy, |load| load.per_second),
            latency(&row.busy),
            latency(&row.alone),
        );
    }
}

fn latency(loads: &[Load]) -> String {
    let (p50, p99) = (
        median_of(loads, |load| load.p50_us),
        median_of(loads, |load| load.p99_us),
    );
    format!("{:.2} / {:.2} ms", p50 / 1e3, p99 / 1e3)
}

fn median_of(loads: &[Load], field: impl Fn(&Load) -> f64) -> f64 {
    median(&mut loads.iter().map(field).collect::<Vec<_>>())
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
