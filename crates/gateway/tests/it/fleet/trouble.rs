//! Redis in trouble: it dies, freezes, is slow, forgets, fails over, or has another password. No call notices.

use std::fs;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::redis::{Redis, Relay};
use super::{all_are, call, fleet, metric, replica, state, together};
use crate::state::program::Serving;
use crate::support::{chat, gateway, send, spawn, until, within};

/// Calls both replicas without pause while this goes on; how long each call took. All of them pass.
async fn calling(fleet: &[Gateway], trouble: impl AsyncFnOnce()) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = fleet
        .iter()
        .map(|one| {
            let (stop, addr) = (Arc::clone(&stop), one.addr());
            spawn(async move {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let answer = send(addr, chat()).await;
                    took.push(began.elapsed());
                    assert_eq!(answer.status, 200, "{answer:?}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                took
            })
        })
        .collect();
    trouble().await;
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for caller in callers {
        took.extend(caller.await.unwrap());
    }
    took.sort();
    took
}

/// No call failed, and those that took longest did not take as long as a wait for Redis would.
fn unhurt(took: &[Duration]) {
    assert!(took.len() > 20, "{}", took.len());
    let worst = took[took.len() * 99 / 100];
    assert!(worst < Duration::from_millis(120), "{worst:?}");
}

/// A trip of one is seen by the other within five seconds from now.
async fn shares_again(fleet: &[Gateway], mock: &Mock) {
    let back = Instant::now();
    for one in fleet {
        until(async || metric(one, "fleet_degraded").await == 0.0).await;
    }
    assert!(
        back.elapsed() < Duration::from_secs(5),
        "{:?}",
        back.elapsed()
    );
    tokio::time::sleep(Duration::from_millis(400)).await;
    mock.set(Reply::status(500)).await.unwrap();
    for at in [0, 1, 0, 1] {
        call(&fleet[at]).await;
    }
    all_are(fleet, "open").await;
    mock.set(Reply::ok()).await.unwrap();
    within(async {
        while state(&fleet[1]).await != "closed" {
            call(&fleet[1]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    all_are(fleet, "closed").await;
}

async fn degraded(fleet: &[Gateway]) {
    for one in fleet {
        until(async || metric(one, "fleet_degraded").await == 1.0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_90_no_call_notices_that_redis_died_and_sharing_resumes_when_it_is_back() {
    let mut redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let fleet = fleet(&redis.url(), &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        redis.kill();
        degraded(&fleet).await;
        redis.start_again();
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_91_no_call_waits_for_a_frozen_redis() {
    freezes_for(Duration::from_millis(500)).await;
}

async fn freezes_for(long: Duration) {
    let redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let fleet = fleet(&redis.url(), &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        redis.freeze();
        degraded(&fleet).await;
        let failed = metric(&fleet[0], "fleet_failures_total").await;
        assert!(failed <= 4.0, "{failed}");
        tokio::time::sleep(long).await;
        redis.thaw();
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

/// Answers late: by a time that is within the limit, and by one that is not.
async fn slows_for(long: Duration) {
    let redis = Redis::start();
    let relay = Relay::before(&redis).await;
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let fleet = fleet(&relay.url(), &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        relay.delay(Duration::from_millis(15));
        tokio::time::sleep(long).await;
        relay.delay(Duration::from_millis(300));
        degraded(&fleet).await;
        tokio::time::sleep(long).await;
        relay.delay(Duration::ZERO);
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

/// The primary dies, its spare refuses to write for a while, then it is the primary.
async fn fails_over_after(long: Duration) {
    let mut primary = Redis::start();
    let port = primary.port().to_string();
    let spare = Redis::start_with(&["--replicaof", "127.0.0.1", &port]);
    let is_up = || {
        let info = spare.ask(&["INFO", "replication"]);
        info.contains("master_link_status:up")
    };
    until(async || is_up()).await;
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let url = format!("{},127.0.0.1:{}", primary.url(), spare.port());
    let fleet = fleet(&url, &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        primary.kill();
        degraded(&fleet).await;
        tokio::time::sleep(long).await;
        spare.ask(&["REPLICAOF", "NO", "ONE"]);
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

/// The user of the fleet has another password, and after that the old one again.
async fn locks_out_for(long: Duration) {
    let redis = Redis::start();
    let grant = |password: &str| {
        let user = ["ACL", "SETUSER", "fleet", "on", "resetpass", password];
        redis.ask(&[&user[..], &["~fuseline:*", "+@all"]].concat());
    };
    grant(">sk-canary");
    let url = redis.url().replace("://", "://fleet:sk-canary@");
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let fleet = fleet(&url, &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        grant(">other");
        redis.ask(&["CLIENT", "KILL", "USER", "fleet"]);
        degraded(&fleet).await;
        tokio::time::sleep(long).await;
        grant(">sk-canary");
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_waits_for_a_slow_redis() {
    slows_for(Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_that_takes_over_is_found() {
    fails_over_after(Duration::from_millis(500)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_notices_that_the_password_is_another() {
    locks_out_for(Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/long"]
async fn trouble_with_redis_at_its_full_length() {
    const LONG: Duration = Duration::from_secs(10);
    freezes_for(LONG).await;
    slows_for(LONG).await;
    fails_over_after(LONG).await;
    locks_out_for(LONG).await;
}

/// When a script was asked for, and when it was answered.
type Asked = (Instant, Instant);

/// A Redis that answers every command with this error, late; which scripts it was asked for, in the order of the answers.
async fn refusing(error: &'static str) -> (String, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<Asked>>>::default();
    let written = Arc::clone(&asked);
    spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let written = Arc::clone(&written);
            spawn(async move {
                let mut bytes = vec![0; 16 << 10];
                while let Ok(read @ 1..) = socket.read(&mut bytes).await {
                    let came = Instant::now();
                    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                    let scripts = text.matches("EVALSHA").count();
                    if scripts > 0 {
                        tokio::time::sleep(Duration::from_millis(300)).await;
                        let answered = iter::repeat_n((came, Instant::now()), scripts);
                        written.lock().unwrap().extend(answered);
                    }
                    let commands = text.lines().filter(|line| line.starts_with('*')).count();
                    let answer = format!("-{error}\r\n").repeat(commands);
                    if socket.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn report_92_after_three_failed_commands_of_any_kind_redis_is_left_alone() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    for error in [
        "ERR no",
        "OOM command not allowed",
        "LOADING Redis is loading",
    ] {
        let (url, asked) = refusing(error).await;
        let one = gateway(&replica(&url, &mock.url())).await;
        let began = Instant::now();
        for _ in 0..170 {
            assert_eq!(call(&one).await.status, 200);
        }
        let took = began.elapsed();
        assert!(took < Duration::from_secs(2), "{error}: {took:?}");
        until(async || metric(&one, "fleet_failures_total").await >= 3.0).await;
        assert_eq!(metric(&one, "fleet_degraded").await, 1.0);
        tokio::time::sleep(Duration::from_millis(500)).await;
        // By the server's own clock, as a busy machine may take until the next try, a second later, to come here.
        let asked = asked.lock().unwrap().clone();
        let (_, third) = asked[2];
        let after: Vec<_> = asked
            .iter()
            .map(|(came, _)| came.saturating_duration_since(third))
            .collect();
        let first = after.iter().filter(|after| after.is_zero()).count();
        assert!(first <= 5, "{error}: {after:?}");
        let alone = Duration::from_millis(500);
        let is_alone = after[first..].iter().all(|after| *after > alone);
        assert!(is_alone, "{error}: {after:?}");
    }
}

/// One line when it begins, one when it ends, whatever traffic there is.
#[tokio::test(flavor = "multi_thread")]
async fn report_112_a_redis_that_is_away_is_told_of_once() {
    let mut redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("state = \"off\"\n{}", replica(&redis.url(), &mock.url()));
    fs::write(folder.path().join("fuseline.toml"), text).unwrap();
    let program = Serving::start(folder.path());
    redis.kill();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(send(program.addr, chat()).await.status, 200);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    redis.start_again();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let log = program.kill();
    let told: Vec<_> = log
        .iter()
        .filter(|line| line["message"].to_string().contains("fleet"))
        .map(|line| (line["level"].as_str(), line["message"].as_str()))
        .collect();
    let warned = told.iter().filter(|(level, _)| *level == Some("WARN"));
    assert_eq!(warned.count(), 1, "{told:?}");
    let last = told.last().unwrap();
    assert_eq!(*last, (Some("INFO"), Some("the fleet acts as one")));
    assert!(told.len() <= 3, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_forgets_is_told_again_and_no_breaker_closes() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let text =
        replica(&redis.url(), &mock.url()).replace("cooldown = \"1s\"", "cooldown = \"60s\"");
    let mut fleet = Vec::new();
    for _ in 0..2 {
        fleet.push(gateway(&text).await);
    }
    together(&fleet).await;
    for at in [0, 1, 0, 1] {
        call(&fleet[at]).await;
    }
    all_are(&fleet, "open").await;
    // Each may have counted it out by itself: before Redis is told, it has nothing to forget.
    let version = |key: &str| redis.ask(&["HGET", key, "version"]).trim().parse::<u64>();
    until(async || {
        let keys = redis.ask(&["KEYS", "*"]);
        keys.lines()
            .any(|key| version(key).is_ok_and(|version| version > 0))
    })
    .await;
    let hits = mock.hits();
    for forgotten in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"]] {
        redis.ask(forgotten);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(800) {
            for one in &fleet {
                assert_eq!(call(one).await.status, 503);
            }
        }
        assert_eq!(mock.hits(), hits);
        assert_eq!(metric(&fleet[0], "fleet_degraded").await, 0.0);
    }
    until(async || {
        let mut resets = 0.0;
        for one in &fleet {
            resets += metric(one, "fleet_state_reset_total").await;
        }
        resets >= 1.0
    })
    .await;
    let newcomer = gateway(&text).await;
    until(async || state(&newcomer).await == "open").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_starts_without_redis_serves_and_trips_each_by_itself() {
    let mut redis = Redis::start();
    redis.kill();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let alone = gateway(&replica(&redis.url(), &mock.url())).await;
    for _ in 0..4 {
        assert_eq!(call(&alone).await.status, 500);
    }
    assert_eq!(call(&alone).await.status, 503);
    assert_eq!(metric(&alone, "fleet_degraded").await, 1.0);
    mock.set(Reply::ok()).await.unwrap();
    until(async || call(&alone).await.status == 200).await;
    redis.start_again();
    until(async || metric(&alone, "fleet_degraded").await == 0.0).await;
}
