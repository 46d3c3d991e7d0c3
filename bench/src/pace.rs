//! Calls at a fixed rate, whatever their answers do: an open loop. Each is timed from the moment at which it was due, so that
//! a server that stalls is charged with all whom it lets wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::load::Post;
use crate::servers::spawn;

/// Calls that may be under way; one that is due beyond that waits, and its clock runs.
const CONNECTIONS: usize = 512;
/// How long what was sent last may still take.
const PATIENCE: Duration = Duration::from_secs(30);

type Sender = SendRequest<Full<Bytes>>;

/// What the calls at a fixed rate waited.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// So many calls a second for so long. The first tenth opens the connections and does not count.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
pub(crate) async fn pace(address: &str, post: &Post, rate: u32, length: u32) -> Result<Waited> {
    let caller = Arc::new(Caller {
        address: address.to_owned(),
        post: post.clone(),
        idle: Mutex::default(),
        room: Semaphore::new(CONNECTIONS),
    });
    let calls = rate * length;
    let (due, mut dues) = mpsc::unbounded_channel();
    let every = Duration::from_secs(1) / rate;
    let begin = Instant::now();
    std::thread::spawn(move || tick(begin, every, calls, &due));
    let mut under_way = JoinSet::new();
    while let Some((at, due)) = dues.recv().await {
        let caller = Arc::clone(&caller);
        under_way.spawn(async move { Ok::<_, anyhow::Error>((at, caller.call(due).await?)) });
    }
    let answers = timeout(PATIENCE, under_way.join_all()).await;
    let answers = answers.context("calls are without an answer after 30 s")?;
    let mut waits = Vec::with_capacity(answers.len());
    for answer in answers {
        let (at, took) = answer?;
        if at >= calls / 10 {
            waits.push(took.as_secs_f64() * 1e6);
        }
    }
    waits.sort_by(f64::total_cmp);
    Ok(Waited {
        p50_us: percentile(&waits, 50),
        p99_us: percentile(&waits, 99),
    })
}

/// Tells of each call when it is due.
#[expect(
    clippy::disallowed_methods,
    reason = "tokio's timer knows milliseconds only, and the rate is finer"
)]
fn tick(begin: Instant, every: Duration, calls: u32, due: &mpsc::UnboundedSender<(u32, Instant)>) {
    for call in 0..calls {
        let at = begin + every * call;
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        if due.send((call, at)).is_err() {
            return;
        }
    }
}

struct Caller {
    address: String,
    post: Post,
    idle: Mutex<Vec<Sender>>,
    room: Semaphore,
}

impl Caller {
    /// How long its answer took, from the moment at which the call was due to the answer's last byte.
    async fn call(&self, due: Instant) -> Result<Duration> {
        let _room = self.room.acquire().await?;
        let mut sender = match self.take() {
            Some(sender) => sender,
            None => connect(&self.address).await?,
        };
        let answer = send(&mut sender, &self.address, &self.post).await?;
        answer.into_body().collect().await?;
        let took = due.elapsed();
        sender.ready().await?;
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        Ok(took)
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }
}

/// One call and its answer: the media type and the body.
pub(crate) async fn ask(address: &str, post: &Post) -> Result<(String, String)> {
    let mut sender = connect(address).await?;
    let answer = send(&mut sender, address, post).await?;
    let media = answer.headers().get("content-type");
    let media = media.map_or("", |value| value.to_str().unwrap_or_default());
    let media = media.to_owned();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((media, String::from_utf8_lossy(&body).into_owned()))
}

/// Waits for the first event of a stream that does not end.
pub(crate) async fn first_event(address: &str, post: &Post) -> Result<()> {
    let mut sender = connect(address).await?;
    let first = async {
        let mut body = send(&mut sender, address, post).await?.into_body();
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            seen.extend_from_slice(frame?.data_ref().map_or(&[], |data| data));
            if seen.windows(5).any(|window| window == b"data:") {
                return Ok(());
            }
        }
        bail!("the stream has ended")
    };
    timeout(Duration::from_secs(10), first)
        .await
        .context("no event within 10 s")?
}

/// So many connections, each of which has had an answer and is silent now.
pub(crate) async fn idle(address: &str, post: &Post, connections: usize) -> Result<Vec<Sender>> {
    let mut idle = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut sender = connect(address).await?;
        let answer = send(&mut sender, address, post).await?;
        answer.into_body().collect().await?;
        sender.ready().await?;
        idle.push(sender);
    }
    ensure!(
        idle.iter().all(SendRequest::is_ready),
        "it has closed connections that were idle"
    );
    Ok(idle)
}

pub(crate) async fn connect(address: &str) -> Result<Sender> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    spawn(async move { drop(connection.await) });
    Ok(sender)
}

async fn send(sender: &mut Sender, address: &str, post: &Post) -> Result<Response<Incoming>> {
    let mut request = Request::post(&post.path).header(HOST, address);
    for (name, value) in &post.headers {
        request = request.header(*name, value);
    }
    let body = Full::new(Bytes::from(post.body.clone()));
    let answer = sender.send_request(request.body(body)?).await?;
    let status = answer.status();
    if !status.is_success() {
        let body = answer.into_body().collect().await?.to_bytes();
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(answer)
}

/// The value that so many of a hundred are below; of sorted ones.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let place = sorted.len() * percent / 100;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}
