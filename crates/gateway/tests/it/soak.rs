//! The program under a steady rate of calls, while all that it stands on fails in turn: every count is exact at the end, and
//! nothing has grown.
//!
//! The long one takes ten minutes, or as many as `FUSELINE_SOAK_MINUTES` says; with `--no-capture` it tells what it measured.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::fleet::redis::Redis;
use crate::metrics::{page_at, sum};
use crate::support::{CHAT, Program, openai, post, spawn, until};

const CALLERS: u64 = 16;
/// From one call of a caller to his next: 80 a second from all.
const PACE: Duration = Duration::from_millis(200);
/// Of ten calls.
const PLAN: [Call; 10] = [
    Call::Plain,
    Call::Stream,
    Call::Plain,
    Call::Left,
    Call::Plain,
    Call::Spare,
    Call::Plain,
    Call::Stream,
    Call::Plain,
    Call::Spare,
];
const BREAKER: &str = "cooldown = \"300ms\"\nbackoff = 1.0\njitter = 0.0\nsuccesses_to_close = 1\nprobe_timeout = \"2s\"\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// For an answer of `a`.
    Plain,
    /// For a stream of `a`, read to its end.
    Stream,
    /// For a stream of `a` that falls silent; its caller leaves.
    Left,
    /// For an answer of `a`, or of `b`, which is always well.
    Spare,
}

impl Call {
    fn model(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Stream => "stream",
            Self::Left => "left",
            Self::Spare => "spare",
        }
    }

    fn body(self) -> String {
        let stream = matches!(self, Self::Stream | Self::Left);
        let model = self.model();
        format!(r#"{{"model":"{model}","stream":{stream},"messages":[]}}"#)
    }
}

/// What a call came to, as its caller sees it.
#[derive(Clone, Copy, Debug)]
enum End {
    Success,
    Failure,
    Neutral,
    Rejected,
}

impl End {
    const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Neutral, Self::Rejected];

    fn outcome(self) -> String {
        label(
            "outcome",
            ["success", "failure", "neutral", "rejected"][self as usize],
        )
    }
}

/// What all callers have seen.
#[derive(Debug, Default)]
struct Seen {
    /// By call, then by its end.
    ends: [[AtomicU64; 4]; 4],
    /// Calls that went on to `b`.
    spared: AtomicU64,
}

impl Seen {
    fn add(&self, call: Call, end: End) {
        self.ends[call as usize][end as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn at(&self, call: Call, end: End) -> u64 {
        self.ends[call as usize][end as usize].load(Ordering::Relaxed)
    }

    fn of(&self, end: End) -> u64 {
        let all = [Call::Plain, Call::Stream, Call::Left, Call::Spare];
        all.map(|call| self.at(call, end)).iter().sum()
    }

    fn all(&self) -> u64 {
        End::ALL.map(|end| self.of(end)).iter().sum()
    }
}

/// The program and all that it stands on.
struct Stand {
    program: Program,
    addr: SocketAddr,
    admin: SocketAddr,
    a: Mock,
    b: Mock,
    redis: Redis,
    folder: tempfile::TempDir,
    seen: Arc<Seen>,
    hang_ups: u64,
}

/// Where whoever leaves can be sure that he left in the middle.
fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    let silent = Reply::ok().events(2).stall_after(1);
    Script::cycle(replies).rule(Rule::model("left").reply(silent))
}

impl Stand {
    async fn start() -> Self {
        let (a, b) = (
            Mock::start(script([Reply::ok()])).await,
            Mock::start(Reply::ok()).await,
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        let (redis, folder) = (Redis::start(), tempfile::tempdir().unwrap());
        let file = folder.path().join("fuseline.toml");
        std::fs::write(&file, settings(folder.path(), &a, &b, &redis, 3)).unwrap();
        let program = Program::keeping(file.to_str().unwrap());
        let (addr, admin) = (program.listen.parse(), program.admin.parse());
        Self {
            program,
            addr: addr.unwrap(),
            admin: admin.unwrap(),
            a,
            b,
            redis,
            folder,
            seen: Arc::default(),
            hang_ups: 0,
        }
    }

    /// The next trouble of `a`, or the end of one; and what else happens meanwhile.
    async fn trouble(&mut self, number: usize) {
        let next = match number {
            0 => script([Reply::status(500)]),
            2 => Script::refuse(),
            4 => script([Reply::ok(), Reply::status(500)]),
            6 => script([Reply::ok().events(9).cut_after(4)]),
            8 => Script::reset_on_accept(),
            _ => script([Reply::ok()]),
        };
        self.a.set(next).await.unwrap();
        match number {
            1 => self.hang_up(4),
            3 => self.redis.kill(),
            5 => self.redis.start_again(),
            7 => self.hang_up(3),
            _ => {}
        }
    }

    fn hang_up(&mut self, failures: u32) {
        let folder = self.folder.path();
        let text = settings(folder, &self.a, &self.b, &self.redis, failures);
        std::fs::write(folder.join("fuseline.toml"), text).unwrap();
        self.program.hang_up();
        self.hang_ups += 1;
    }

    fn callers(&self, stop: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<()>> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let callers = (0..CALLERS).map(|number| {
            let caller = Caller {
                addr: self.addr,
                client: client.clone(),
                seen: Arc::clone(&self.seen),
            };
            spawn(caller.work(number, Arc::clone(stop)))
        });
        callers.collect()
    }

    /// Calls for so many turns of all troubles; the program's memory in KiB at the end of each.
    async fn run(&mut self, turns: usize, each: Duration) -> Vec<u64> {
        let stop = Arc::<AtomicBool>::default();
        let callers = self.callers(&stop);
        let mut held = Vec::new();
        for _ in 0..turns {
            for number in 0..10 {
                self.trouble(number).await;
                sleep(each).await;
            }
            held.push(self.program.resident_kib());
        }
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
        held
    }

    /// Every count of the program against what its callers and its providers have counted.
    async fn add_up(&self) {
        let all = self.seen.all() as f64;
        let now = async |name| sum(&page_at(self.admin).await, name, &[]);
        until(async || now("calls_total").await == all && now("fleet_degraded").await == 0.0).await;
        let page = page_at(self.admin).await;
        let count = |name, labels: &[&str]| sum(&page, name, labels) as u64;
        let on_a = label("provider", "a");
        for end in End::ALL {
            let outcome = end.outcome();
            assert_eq!(
                count("calls_total", &[&outcome]),
                self.seen.of(end),
                "{outcome}"
            );
            for call in [Call::Plain, Call::Stream, Call::Left] {
                let model = label("model", call.model());
                let sent = count("attempts_total", &[&on_a, &model, &outcome]);
                let is_sent = !matches!(end, End::Rejected);
                assert_eq!(
                    sent,
                    u64::from(is_sent) * self.seen.at(call, end),
                    "{model} {outcome}"
                );
            }
        }
        let spared = self.seen.spared.load(Ordering::Relaxed);
        for (provider, asked) in [("a", self.seen.all()), ("b", spared)] {
            let of = label("provider", provider);
            let sent = count("attempts_total", &[&of]);
            let rejected = count("breaker_rejected_total", &[&of]);
            assert_eq!(sent + rejected, asked, "{provider}");
        }
        let on_b = label("provider", "b");
        assert_eq!(count("attempts_total", &[&on_b]), self.b.hits());
        self.has_worked(&page);
    }

    /// Whether there was trouble at all.
    fn has_worked(&self, page: &BTreeMap<String, f64>) {
        for end in End::ALL {
            assert!(self.seen.of(end) > 0, "{end:?}");
        }
        assert_eq!(
            sum(
                page,
                "config_reloads_total",
                &[&label("outcome", "applied")]
            ),
            self.hang_ups as f64
        );
        assert!(sum(page, "fleet_failures_total", &[]) > 0.0);
        assert!(sum(page, "breaker_opened_total", &[]) > 1.0);
        assert_eq!(sum(page, "state_failures_total", &[]), 0.0);
    }
}

fn settings(folder: &Path, a: &Mock, b: &Mock, redis: &Redis, failures: u32) -> String {
    let route = |model: &str, targets: &str| {
        format!("[[routes]]\nmodel = \"{model}\"\nretries = 0\ntargets = [{targets}]\n")
    };
    let on_a = "{ provider = \"a\" }";
    let routes = ["plain", "stream", "left"].map(|model| route(model, on_a));
    format!(
        "state = {:?}\nfleet = \"{}\"\n{}{}{}{}[pool]\nidle_timeout = \"2s\"\n[breaker]\ntrip = [{{ rule = \"consecutive\", failures = {failures} }}]\n{BREAKER}",
        folder.join("fuseline.db"),
        redis.url(),
        openai("a", &a.url()),
        openai("b", &b.url()),
        routes.concat(),
        route("spare", &format!("{on_a}, {{ provider = \"b\" }}")),
    )
}

/// A busy machine takes its time.
async fn patiently<T>(future: impl Future<Output = T>) -> T {
    let patience = Duration::from_secs(60);
    let done = tokio::time::timeout(patience, future).await;
    done.expect("no call takes a minute")
}

fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{value}\"")
}

struct Caller {
    addr: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    seen: Arc<Seen>,
}

impl Caller {
    async fn work(self, number: u64, stop: Arc<AtomicBool>) {
        sleep(PACE * number as u32 / CALLERS as u32).await;
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for call in PLAN.iter().cycle().skip(number as usize) {
            pace.tick().await;
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let end = match call {
                Call::Left => self.leave().await,
                Call::Plain | Call::Stream | Call::Spare => self.call(*call).await,
            };
            self.seen.add(*call, end);
        }
    }

    async fn leave(&self) -> End {
        let answer = self.send(Call::Left).await;
        if answer.status() == 200 {
            // Whose body is dropped unread, his connection is closed.
            return End::Neutral;
        }
        self.judge(&answer.into_parts().0, None)
    }

    async fn call(&self, call: Call) -> End {
        let (head, body) = self.send(call).await.into_parts();
        let body = patiently(body.collect()).await.ok();
        let body = body.map(|body| body.to_bytes());
        let ends_well = body.as_ref().is_some_and(|body| match call {
            Call::Stream => body.ends_with(b"data: [DONE]\n\n"),
            Call::Plain | Call::Left | Call::Spare => !body.is_empty(),
        });
        let is_spared = head.headers["x-fuseline-fallback"] == "true";
        let spared = &self.seen.spared;
        spared.fetch_add(u64::from(is_spared), Ordering::Relaxed);
        self.judge(&head, Some(ends_well))
    }

    async fn send(&self, call: Call) -> Response<Incoming> {
        let mut request = post(CHAT, call.body());
        *request.uri_mut() = format!("http://{}{CHAT}", self.addr).parse().unwrap();
        patiently(self.client.request(request)).await.unwrap()
    }

    fn judge(&self, head: &http::response::Parts, ends_well: Option<bool>) -> End {
        match (head.status.as_u16(), ends_well) {
            (200, Some(true)) => End::Success,
            _ if head.headers["x-fuseline-attempts"] == "0" => End::Rejected,
            _ => End::Failure,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_count_is_exact_after_each_trouble() {
    let mut stand = Stand::start().await;
    stand.run(1, Duration::from_millis(200)).await;
    stand.add_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes: scripts/long"]
async fn nothing_grows_and_every_count_is_exact_after_many_troubles() {
    let minutes = std::env::var("FUSELINE_SOAK_MINUTES");
    let minutes: u64 = minutes.map_or(10, |minutes| minutes.parse().unwrap());
    let mut stand = Stand::start().await;
    let files = stand.program.open_files();
    let turns = (minutes * 60 / 20) as usize;
    let memory = stand.run(turns.max(6), Duration::from_secs(2)).await;
    stand.add_up().await;
    // The first third is warm-up.
    let third = memory.len() / 3;
    let before = median(&memory[third..2 * third]);
    let after = median(&memory[2 * third..]);
    println!(
        "{} calls in {minutes} min: {before} KiB, then {after} KiB; {files} descriptors, then {}; {:?}",
        stand.seen.all(),
        stand.program.open_files(),
        End::ALL.map(|end| (end, stand.seen.of(end))),
    );
    assert!(after < before + 1024, "{memory:?}");
    // Whatever the calls had opened is closed again; those to Redis and the state's own may have come since the start.
    until(async || stand.program.open_files() <= files + 4).await;
}

fn median(of: &[u64]) -> u64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}
