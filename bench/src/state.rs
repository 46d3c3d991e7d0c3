//! `state`: what it costs a call that states are kept and shared: without, in a file, with a fleet's Redis.
//!
//! All three gateways run at once, each in its own process, before the same nginx, and take turns in short rounds, so that a
//! noisy minute hits them alike. One call in twenty fails, so that there is something to keep and to share.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use tokio::process::Command;

use crate::pace::{connect, percentile};
use crate::process::{Server, free_port, wait_for};

/// One call in so many fails.
const FAILS: u32 = 20;
/// Breakers that are made to be weighed; `max_breakers` has room for them.
const BREAKERS: u32 = 400;
const RATES: [u32; 3] = [10, 1_000, 5_000];
/// Connections over which a rate is spread, at most.
const CONNECTIONS: u32 = 50;

/// How long it all takes.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    rounds: usize,
    calls: usize,
    seconds: u64,
}

impl Effort {
    /// Some four minutes.
    pub(crate) const FULL: Self = Self {
        rounds: 41,
        calls: 2_000,
        seconds: 10,
    };
    /// To see that it runs.
    pub(crate) const QUICK: Self = Self {
        rounds: 5,
        calls: 200,
        seconds: 2,
    };
}

/// One gateway under measurement.
struct Variant {
    name: &'static str,
    server: Server,
    /// By round, in microseconds.
    p50: Vec<f64>,
    p99: Vec<f64>,
    bytes_per_breaker: f64,
}

/// Prints the tables.
pub(crate) async fn measure(effort: Effort) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("fuseline-bench-state-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let answer = format!(
        "location / {{ if ($http_x_fail) {{ return 500; }} return 200 '{}'; }}",
        "x".repeat(1024)
    );
    let upstream = Server::nginx(&answer, "").await?;
    let measured = measure_before(&upstream, &folder, effort).await;
    upstream.stop().await?;
    fs::remove_dir_all(folder)?;
    measured
}

async fn measure_before(upstream: &Server, folder: &Path, effort: Effort) -> Result<()> {
    let redis = Redis::start(folder).await?;
    let kept = format!("state = {:?}", folder.join("state.db"));
    let shared = format!(
        "state = \"off\"\nfleet = \"redis://127.0.0.1:{}\"",
        redis.port
    );
    let mut variants = Vec::new();
    for (name, settings) in [
        ("off", "state = \"off\""),
        ("SQLite", &kept),
        ("Redis", &shared),
    ] {
        variants.push(Variant {
            name,
            server: gateway(settings, &upstream.address).await?,
            p50: Vec::new(),
            p99: Vec::new(),
            bytes_per_breaker: 0.0,
        });
    }
    for _ in 0..effort.rounds {
        for variant in &mut variants {
            let mut took = call_alone(&variant.server.address, effort.calls).await?;
            took.sort_by(f64::total_cmp);
            variant.p50.push(percentile(&took, 50));
            variant.p99.push(percentile(&took, 99));
        }
    }
    let mut commands = Vec::new();
    if let Some(fleet) = variants.last() {
        for rate in RATES {
            commands.push(commands_at(rate, &fleet.server, &redis, effort.seconds).await?);
        }
    }
    for variant in &mut variants {
        variant.bytes_per_breaker = weigh(&variant.server).await?;
    }
    print(&variants, &commands);
    for variant in variants {
        variant.server.stop().await?;
    }
    Ok(())
}

async fn gateway(settings: &str, upstream: &str) -> Result<Server> {
    let text = format!(
        "{settings}\nlog = \"off\"\n\
         [providers.a]\nprotocol = \"openai\"\nbase_url = \"http://{upstream}/v1\"\napi_key = \"key\"\n\
         [[routes]]\nmodel = \"*\"\nretries = 0\ntargets = [{{ provider = \"a\" }}]\n\
         [breaker]\ntrip = [{{ rule = \"rate\", threshold = 0.5, window = \"60s\", min_calls = 10 }}]\n"
    );
    Server::gateway(&text).await
}

/// A `redis-server` on a free port, ended with this.
struct Redis {
    port: u16,
    _child: tokio::process::Child,
}

impl Redis {
    async fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .current_dir(folder)
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("redis-server does not start; is the package installed?")?;
        wait_for(&format!("127.0.0.1:{port}")).await?;
        Ok(Self {
            port,
            _child: child,
        })
    }

    /// Commands that it was sent so far: those that scripts give are not counted.
    async fn commands(&self) -> Result<f64> {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string(), "INFO", "commandstats"])
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| {
            let rest = line.strip_prefix("cmdstat_evalsha:calls=")?;
            rest.split(',').next()?.parse::<f64>().ok()
        });
        line.context("nobody has asked Redis for a script")
    }
}

/// A connection that calls, every twentieth time in vain.
struct Caller {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    calls: u32,
}

impl Caller {
    async fn connect(address: &str) -> Result<Self> {
        Ok(Self {
            sender: connect(address).await?,
            host: address.to_owned(),
            calls: 0,
        })
    }

    async fn call(&mut self, model: &str) -> Result<()> {
        self.calls += 1;
        let fails = self.calls.is_multiple_of(FAILS);
        let mut request = Request::post("/v1/chat/completions")
            .header("host", &self.host)
            .header("content-type", "application/json");
        if fails {
            request = request.header("x-fail", "1");
        }
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        self.sender.ready().await?;
        let answer = self
            .sender
            .send_request(request.body(Full::new(Bytes::from(body)))?)
            .await?;
        let status = answer.status().as_u16();
        answer.into_body().collect().await?;
        let expected = if fails { 500 } else { 200 };
        ensure!(status == expected, "{status} in the place of {expected}");
        Ok(())
    }
}

/// Calls one after the other, and what each took in microseconds.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
async fn call_alone(address: &str, calls: usize) -> Result<Vec<f64>> {
    let mut caller = Caller::connect(address).await?;
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let begin = Instant::now();
        caller.call("m").await?;
        took.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(took)
}

/// What Redis was asked at so many calls a second.
struct Commands {
    /// Calls a second that there really were.
    calls: f64,
    per_second: f64,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
async fn commands_at(rate: u32, server: &Server, redis: &Redis, seconds: u64) -> Result<Commands> {
    let connections = rate.min(CONNECTIONS);
    let lasts = Duration::from_secs(seconds);
    let every = Duration::from_secs(1) * connections / rate;
    let before = redis.commands().await?;
    let begin = Instant::now();
    let mut callers = Vec::new();
    for at in 0..connections {
        let mut caller = Caller::connect(&server.address).await?;
        let first = at % FAILS;
        caller.calls = first;
        let calling = async move {
            tokio::time::sleep(every * at / connections).await;
            let mut ticks = tokio::time::interval(every);
            while begin.elapsed() < lasts {
                ticks.tick().await;
                caller.call("m").await?;
            }
            Ok::<_, anyhow::Error>(caller.calls - first)
        };
        callers.push(calling);
    }
    let calls = all_at_once(callers).await?;
    let took = begin.elapsed().as_secs_f64();
    let after = redis.commands().await?;
    Ok(Commands {
        calls: f64::from(calls) / took,
        per_second: (after - before) / took,
    })
}

/// All of them at once; the sum of what they give.
async fn all_at_once(
    callers: Vec<impl Future<Output = Result<u32>> + Send + 'static>,
) -> Result<u32> {
    let mut tasks = tokio::task::JoinSet::new();
    for caller in callers {
        tasks.spawn(caller);
    }
    let mut sum = 0;
    while let Some(calls) = tasks.join_next().await {
        sum += calls??;
    }
    Ok(sum)
}

/// Bytes of resident memory by which a breaker makes the process grow, failures of it included.
async fn weigh(server: &Server) -> Result<f64> {
    let mut caller = Caller::connect(&server.address).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.resident()?;
    for at in 0..BREAKERS {
        caller.calls = FAILS - 2;
        for _ in 0..2 {
            caller.call(&format!("model-{at}")).await?;
        }
    }
    // What is kept and shared of them follows.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = server.resident()?;
    Ok(after.saturating_sub(before) as f64 / f64::from(BREAKERS))
}

#[expect(clippy::print_stdout, reason = "the tables are the output")]
fn print(variants: &[Variant], commands: &[Commands]) {
    let mut text = String::from(
        "| state | p50 us | p99 us | p50 against off | p99 against off | KiB per breaker |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for variant in variants {
        let against = |part: fn(&Variant) -> &Vec<f64>| {
            let off = variants.first().map_or(&[][..], |off| part(off));
            let ratios = part(variant).iter().zip(off).map(|(own, off)| own / off);
            median(ratios.collect())
        };
        let _infallible = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {:.3} | {:.3} | {:.1} |",
            variant.name,
            median(variant.p50.clone()),
            median(variant.p99.clone()),
            against(|variant| &variant.p50),
            against(|variant| &variant.p99),
            variant.bytes_per_breaker / 1024.0
        );
    }
    text.push_str("\n| calls a second | commands to Redis a second |\n|---:|---:|\n");
    for row in commands {
        let _infallible = writeln!(text, "| {:.0} | {:.1} |", row.calls, row.per_second);
    }
    println!("{text}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    percentile(&values, 50)
}
