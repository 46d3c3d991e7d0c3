//! Replicas as they run: programs of their own, one Redis, one provider that counts.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::redis::Redis;
use super::replica;
use crate::state::program::Serving;
use crate::support::{chat, get, post, send, spawn, until, within};

/// What a call takes that is under way, at most.
const UNDER_WAY: Duration = Duration::from_millis(50);

struct Programs {
    redis: Redis,
    mock: Mock,
    all: Vec<Serving>,
}

/// When a replica opened, and what its own clock has to do with it: nothing.
struct Opened {
    at: Instant,
    cause: String,
}

impl Programs {
    async fn start(count: usize) -> Self {
        let redis = Redis::start();
        let mock = Mock::start(Reply::ok()).await.unwrap();
        let mut programs = Self {
            redis,
            mock,
            all: Vec::new(),
        };
        for _ in 0..count {
            let url = programs.mock.url();
            programs.add(&url);
        }
        for one in &programs.all {
            let found = format!("fleet_replicas {count}\n");
            until(async || page(one).await.contains(&found)).await;
        }
        programs
    }

    fn add(&mut self, provider: &str) {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("state = \"off\"\n{}", replica(&self.redis.url(), provider));
        fs::write(folder.path().join("fuseline.toml"), text).unwrap();
        // Read once, at the start.
        self.all.push(Serving::start(folder.path()));
    }

    /// Waits until all are in this state.
    async fn all_are(&self, wanted: &str) {
        for one in &self.all {
            until(async || breaker(one).await["state"] == wanted).await;
        }
    }

    /// Waits until all are open, and tells since when.
    async fn opened(&self) -> Vec<Opened> {
        let mut all = Vec::new();
        for one in &self.all {
            let mut seen = Value::Null;
            within(async {
                while seen["state"] != "open" {
                    seen = breaker(one).await;
                }
            })
            .await;
            let ago = seen["why"]["ms_ago"].as_u64().unwrap();
            all.push(Opened {
                at: Instant::now() - Duration::from_millis(ago),
                cause: seen["why"]["cause"].as_str().unwrap().to_owned(),
            });
        }
        all
    }

    /// Trips by failures at two replicas; how long after the last of them the last one was open, and how long after the
    /// first one that was.
    async fn trip(&self, round: usize) -> (Duration, Duration) {
        // Whatever ends a run keeps runs from being summed for as long as a slice, wherever that is heard.
        sleep(Duration::from_millis(450)).await;
        let count = self.all.len();
        for at in [0, 1, 0, 1] {
            let one = &self.all[(round + at) % count];
            assert_eq!(send(one.addr, chat()).await.status, 500);
        }
        let failed = Instant::now();
        let opened = self.opened().await;
        assert!(opened.iter().all(|one| one.cause == "fleet"));
        let first = opened.iter().map(|one| one.at).min().unwrap();
        let last = opened.iter().map(|one| one.at).max().unwrap();
        (last.saturating_duration_since(failed), last - first)
    }

    /// Trips again and again, ended by an operator at some replica in between.
    async fn trips(&self, times: usize) -> Vec<(Duration, Duration)> {
        self.mock.set(Reply::status(500)).await.unwrap();
        let mut took = Vec::new();
        for round in 0..times {
            took.push(self.trip(round).await);
            let operator = &self.all[(round + 2) % self.all.len()];
            let reset = post("/breakers/a%2Fm/reset", "");
            assert_eq!(send(operator.admin, reset).await.status, StatusCode::OK);
            self.all_are("closed").await;
        }
        took
    }

    /// Every replica is called without end while the provider fails, for so many cooldowns; then it is well.
    async fn flood(&self, cooldowns: u64, pause: Duration) -> Flood {
        let failing = Reply::status(500).delay(UNDER_WAY);
        self.mock.set(failing).await.unwrap();
        let before = self.mock.hits();
        let failed = self.failed_exchanges().await;
        let callers = Callers::at(self.all.iter().map(|one| one.addr), pause);
        let opened = self.opened().await;
        let first = opened.iter().map(|one| one.at).min().unwrap();
        sleep(UNDER_WAY).await;
        let tripped = self.mock.hits();
        let mut probes = Vec::new();
        while (probes.len() as u64) < cooldowns {
            within(async {
                self.mock
                    .wait_for_hits(tripped + probes.len() as u64 + 1, Duration::from_secs(9))
                    .await
                    .unwrap()
            })
            .await;
            probes.push((Instant::now() - first, self.mock.hits()));
        }
        // Within the cooldown of the last one, so that the next one is good.
        self.mock.set(Reply::ok()).await.unwrap();
        self.mock
            .wait_for_hits(tripped + cooldowns + 1, Duration::from_secs(9))
            .await
            .unwrap();
        let proven = Instant::now();
        self.all_are("closed").await;
        let closed = proven.elapsed();
        Flood {
            calls: callers.stop().await,
            before_all_were_open: tripped - before,
            probes,
            closed,
            failed_exchanges: self.failed_exchanges().await - failed,
        }
    }

    /// Exchanges that failed, of all replicas: three in a row of one, and it probes by itself.
    async fn failed_exchanges(&self) -> u64 {
        let mut failed = 0;
        for one in &self.all {
            let page = page(one).await;
            let line = page
                .lines()
                .find_map(|line| line.strip_prefix("fleet_failures_total "));
            failed += line.unwrap().parse::<u64>().unwrap();
        }
        failed
    }

    /// The probe hangs, and its replica is killed; how long after that another one has probed.
    async fn kill_the_holder(&mut self) -> Duration {
        self.mock.set(Reply::status(500)).await.unwrap();
        self.trip(0).await;
        self.mock.set(Reply::stall()).await.unwrap();
        let before = self.mock.hits();
        let mut held = None;
        within(async {
            while held.is_none() {
                for (at, program) in self.all.iter().enumerate() {
                    let mut answer = spawn(send(program.addr, chat()));
                    if timeout(Duration::from_millis(300), &mut answer)
                        .await
                        .is_err()
                    {
                        held = Some((at, answer));
                        break;
                    }
                }
            }
        })
        .await;
        let (holder, probe) = held.unwrap();
        assert_eq!(self.mock.hits(), before + 1, "one probe");
        self.all.remove(holder).kill();
        assert!(probe.await.is_err(), "it dies with its replica");
        let killed = Instant::now();
        self.mock.set(Reply::ok()).await.unwrap();
        let mut took = None;
        within(async {
            while took.is_none() {
                for program in &self.all {
                    if send(program.addr, chat()).await.status == StatusCode::OK {
                        took = Some(killed.elapsed());
                        break;
                    }
                }
            }
        })
        .await;
        assert_eq!(self.mock.hits(), before + 2, "exactly one other probe");
        let recovered = Instant::now();
        self.all_are("closed").await;
        assert!(recovered.elapsed() < Duration::from_secs(1));
        took.unwrap()
    }

    /// One more replica, whose way out is broken, fails call after call; all the others go on.
    async fn break_one(&mut self) {
        self.mock.set(Reply::ok()).await.unwrap();
        self.add("http://127.0.0.1:9/v1");
        let (lost, others) = self.all.split_last().unwrap();
        for _ in 0..10 {
            send(lost.addr, chat()).await;
            for one in others {
                assert_eq!(send(one.addr, chat()).await.status, StatusCode::OK);
            }
        }
        let list = send(lost.admin, get("/breakers")).await.json();
        let open = |one: &Value| one["state"] == "open";
        assert!(list.as_array().unwrap().iter().any(open), "{list}");
        for one in others {
            let list = send(one.admin, get("/breakers")).await.json();
            assert!(!list.as_array().unwrap().iter().any(open), "{list}");
        }
    }
}

/// What came of a flood.
#[derive(Debug)]
struct Flood {
    calls: u64,
    /// Calls that reached the provider until the last replica was open and what was under way had ended.
    before_all_were_open: u64,
    /// How long after the trip each probe came, and how many calls had reached the provider by then.
    probes: Vec<(Duration, u64)>,
    /// How long after the good probe all were closed.
    closed: Duration,
    failed_exchanges: u64,
}

impl Flood {
    /// After the trip nothing reaches the provider but one probe a cooldown.
    fn check(&self) {
        // Three of one replica in a row, and it probes by itself, as it should.
        assert!(self.failed_exchanges < 10, "too busy a machine: {self:?}");
        let (_, first) = self.probes[0];
        for (at, (_, hits)) in self.probes.iter().enumerate() {
            assert_eq!(*hits, first + at as u64, "one a cooldown: {self:?}");
        }
        for pair in self.probes.windows(2) {
            let gap = pair[1].0 - pair[0].0;
            assert!(gap >= Duration::from_millis(950), "{gap:?}: {self:?}");
        }
        assert!(self.closed < Duration::from_secs(1), "{self:?}");
        let spared = self.calls - self.before_all_were_open;
        assert!(spared > 2 * self.before_all_were_open, "{self:?}");
    }
}

/// Calls every replica, each with a pause between its calls.
struct Callers {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<u64>>,
}

impl Callers {
    fn at(addrs: impl Iterator<Item = SocketAddr>, pause: Duration) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let call = |addr| {
            let stop = Arc::clone(&stop);
            spawn(async move {
                let mut calls = 0;
                while !stop.load(Ordering::Relaxed) {
                    send(addr, chat()).await;
                    calls += 1;
                    sleep(pause).await;
                }
                calls
            })
        };
        let tasks = addrs.map(call).collect();
        Self { stop, tasks }
    }

    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let mut calls = 0;
        for task in self.tasks {
            calls += task.await.unwrap();
        }
        calls
    }
}

async fn page(program: &Serving) -> String {
    let page = send(program.admin, get("/metrics")).await;
    String::from_utf8(page.body.to_vec()).unwrap()
}

/// The breaker that all this is about; null where there is none.
async fn breaker(program: &Serving) -> Value {
    let list = send(program.admin, get("/breakers")).await.json();
    let is_it = |one: &&Value| one["name"] == "a/m";
    list.as_array()
        .unwrap()
        .iter()
        .find(is_it)
        .cloned()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_programs_trip_as_one_and_send_one_probe_a_cooldown() {
    let programs = Programs::start(4).await;
    let mut took = programs.trips(3).await;
    took.sort();
    assert!(took[1].0 < Duration::from_millis(250), "{took:?}");
    let flood = programs.flood(2, Duration::from_millis(20)).await;
    flood.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_holder_is_killed_and_exactly_one_other_takes_over() {
    let mut programs = Programs::start(3).await;
    let took = programs.kill_the_holder().await;
    assert!(took > Duration::from_millis(1_000), "{took:?}");
    assert!(took < Duration::from_millis(4_000), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/long"]
async fn twenty_programs_act_as_one() {
    let mut programs = Programs::start(20).await;
    let took = programs.trips(50).await;
    let at = |share: usize, part: fn(&(Duration, Duration)) -> Duration| {
        let mut sorted: Vec<_> = took.iter().map(part).collect();
        sorted.sort();
        sorted[(sorted.len() * share / 100).min(sorted.len() - 1)]
    };
    println!(
        "after the last failure: p50 {:?}, p99 {:?}; after the first that was open: p50 {:?}, p99 {:?}",
        at(50, |one| one.0),
        at(99, |one| one.0),
        at(50, |one| one.1),
        at(99, |one| one.1)
    );
    let flood = programs.flood(10, Duration::from_millis(400)).await;
    println!("{flood:?}");
    flood.check();
    programs.break_one().await;
    drop(programs.all.pop());
    let taken_over = programs.kill_the_holder().await;
    println!("taken over {taken_over:?} after the kill");
    assert!(taken_over < Duration::from_millis(4_000), "{taken_over:?}");
    let spread = at(99, |one| one.1);
    assert!(spread <= Duration::from_millis(250), "{spread:?}");
}
