//! `stream`: how long events take through the gateway, nginx and a bare proxy, in one run.
//!
//! The provider is a task of this process and so is the caller: each event carries the moment at which it was sent. All
//! take turns in each round, so that a noisy minute hits them alike.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context as Wake, Poll, ready};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1 as client;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

use crate::process::Server;
use crate::proxy::NGINX_PROXY;

const ROUNDS: usize = 15;
const STREAMS: usize = 20;
const EVENTS: usize = 30;
const GAP: Duration = Duration::from_millis(2);
/// Events of the stream that comes without pauses.
const FLOOD: usize = 20_000;
const NAMES: [&str; 4] = ["no proxy", "nginx", "hyper http1 + client", "fuseline"];

/// Prints the table.
#[expect(clippy::disallowed_methods, reason = "it is time that is measured")]
pub(crate) async fn measure() -> Result<()> {
    let began = Instant::now();
    let provider = provider(began).await?;
    let mut rows = Vec::new();
    for name in NAMES {
        rows.push(Row::start(name, &provider).await?);
    }
    for row in &rows {
        // Connections are made and memory is touched before anything counts.
        stream(&row.address, began, "warm").await?;
    }
    for _ in 0..ROUNDS {
        for row in &mut rows {
            for _ in 0..STREAMS {
                let mut times = stream(&row.address, began, "paced").await?.into_iter();
                row.first.extend(times.next());
                row.event.extend(times);
            }
            row.flood(began).await?;
        }
    }
    print(&mut rows);
    for row in rows {
        if let Some(server) = row.server {
            server.stop().await?;
        }
    }
    Ok(())
}

/// What is measured on one way.
struct Row {
    name: &'static str,
    address: String,
    server: Option<Server>,
    /// Microseconds from the request to the first event, and from an event's sending to its arrival.
    first: Vec<f64>,
    event: Vec<f64>,
    /// Seconds of CPU that the streams without pauses took.
    cpu: f64,
}

impl Row {
    async fn start(name: &'static str, provider: &str) -> Result<Self> {
        let server = match name {
            "no proxy" => None,
            "nginx" => Some(Server::nginx(NGINX_PROXY, provider).await?),
            "fuseline" => Some(Server::plain_gateway(provider).await?),
            name => Some(Server::own(name, provider).await?),
        };
        let address = server
            .as_ref()
            .map_or_else(|| provider.to_owned(), |server| server.address.clone());
        Ok(Self {
            name,
            address,
            server,
            first: Vec::new(),
            event: Vec::new(),
            cpu: 0.0,
        })
    }

    async fn flood(&mut self, began: Instant) -> Result<()> {
        let cpu = || self.server.as_ref().map_or(Ok(0.0), Server::cpu_seconds);
        let before = cpu()?;
        let times = stream(&self.address, began, "flood").await?;
        ensure!(
            times.len() == FLOOD,
            "{} of {FLOOD} events came",
            times.len()
        );
        self.cpu += cpu()? - before;
        Ok(())
    }
}

/// One stream's times in microseconds: until the first event from the request, and of each later one from its sending.
async fn stream(address: &str, began: Instant, pace: &str) -> Result<Vec<f64>> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (mut sender, connection) = client::handshake(TokioIo::new(socket)).await?;
    crate::servers::spawn(async move { drop(connection.await) });
    let request = Request::post("/v1/chat/completions")
        .header(HOST, address)
        .header(CONTENT_TYPE, "application/json")
        .header("x-pace", pace)
        .body(Full::<Bytes>::from(
            r#"{"model":"m","stream":true,"messages":[]}"#,
        ))?;
    let asked = nanos(began);
    let mut body = sender.send_request(request).await?.into_body();
    let (mut seen, mut times) = (Vec::with_capacity(1 << 16), Vec::new());
    while let Some(frame) = body.frame().await {
        let now = nanos(began);
        seen.extend_from_slice(frame?.data_ref().context("a stream has no trailers")?);
        let mut at = 0;
        while let Some(end) = find(&seen, at, b"\n\n") {
            let event = seen.get(at..end).unwrap_or_default();
            if let Some(sent) = sent_at(event) {
                let since = if times.is_empty() { asked } else { sent };
                times.push((now - since) as f64 / 1e3);
            }
            at = end + 2;
        }
        seen.drain(..at);
    }
    Ok(times)
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(what.len()).position(|window| window == what)?;
    Some(from + at)
}

fn sent_at(event: &[u8]) -> Option<u64> {
    let mark = b"\"content\":\"";
    let begin = find(event, 0, mark)? + mark.len();
    let digits = event.get(begin..begin + 16)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn nanos(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A provider whose events say when they were sent. Returns its address.
async fn provider(began: Instant) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    crate::servers::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream.set_nodelay(true));
            let service = service_fn(move |request: Request<Incoming>| async move {
                let (left, gap) = match request.headers().get("x-pace").map(|pace| pace.as_bytes())
                {
                    Some(b"flood") => (FLOOD, None),
                    _ => (EVENTS, Some(GAP)),
                };
                let events = Events {
                    began,
                    left,
                    gap,
                    pause: None,
                    is_done: false,
                };
                Response::builder()
                    .header(CONTENT_TYPE, "text/event-stream")
                    .body(events)
            });
            crate::servers::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                drop(
                    connection
                        .serve_connection(TokioIo::new(stream), service)
                        .await,
                );
            });
        }
    });
    Ok(address)
}

struct Events {
    began: Instant,
    left: usize,
    gap: Option<Duration>,
    pause: Option<Pin<Box<Sleep>>>,
    is_done: bool,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        wake: &mut Wake<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(wake));
        }
        self.pause = self.gap.map(|gap| Box::pin(sleep(gap)));
        let text = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                format!(
                    "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                     \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{:016}\"}},\"finish_reason\":null}}]}}\n\n",
                    nanos(self.began)
                )
            }
            None => {
                self.is_done = true;
                "data: [DONE]\n\n".to_owned()
            }
        };
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}

#[expect(clippy::print_stdout, reason = "the table is the output")]
fn print(rows: &mut [Row]) {
    println!(
        "| way | first event, p50 / p99 us | later event, p50 / p99 us | CPU us per event, without pauses |"
    );
    println!("|---|---:|---:|---:|");
    for row in rows.iter_mut() {
        let (first, event) = (spread(&mut row.first), spread(&mut row.event));
        let cpu = row.cpu * 1e6 / (ROUNDS * FLOOD) as f64;
        println!("| {} | {first} | {event} | {cpu:.2} |", row.name);
    }
    let of = |name| {
        rows.iter()
            .find(|row| row.name == name)
            .context("a row is missing")
    };
    if let (Ok(nginx), Ok(ours)) = (of("nginx"), of("fuseline")) {
        println!(
            "\nfuseline / nginx: first event {:.2}, later event {:.2}",
            at(&ours.first, 50) / at(&nginx.first, 50),
            at(&ours.event, 50) / at(&nginx.event, 50)
        );
    }
}

fn spread(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    format!("{:.0} / {:.0}", at(times, 50), at(times, 99))
}

/// This percentile of times in order.
fn at(times: &[f64], percent: usize) -> f64 {
    times
        .get(times.len() * percent / 100)
        .copied()
        .unwrap_or(f64::NAN)
}
