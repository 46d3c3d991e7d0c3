//! What goes wrong: Redis dies, freezes, forgets; the holder of the lease dies.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::StatusCode;
use tokio::time::Instant;

use super::redis::Redis;
use super::{all_are, call, fleet, metric, replica, state};
use crate::state::program::Serving;
use crate::support::{chat, get, send, spawn, until, within};

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
    let fleet = fleet(&redis, &mock.url(), 2).await;
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
    let redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let fleet = fleet(&redis, &mock.url(), 2).await;
    let took = calling(&fleet, async || {
        redis.freeze();
        degraded(&fleet).await;
        let failed = metric(&fleet[0], "fleet_failures_total").await;
        assert!(failed <= 4.0, "{failed}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        redis.thaw();
    })
    .await;
    unhurt(&took);
    shares_again(&fleet, &mock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_forgets_is_told_again_and_no_breaker_closes() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let text = replica(&redis, &mock.url()).replace("cooldown = \"1s\"", "cooldown = \"60s\"");
    let mut fleet = Vec::new();
    for _ in 0..2 {
        fleet.push(crate::support::gateway(&text).await);
    }
    for one in &fleet {
        until(async || metric(one, "fleet_replicas").await == 2.0).await;
    }
    for at in [0, 1, 0, 1] {
        call(&fleet[at]).await;
    }
    all_are(&fleet, "open").await;
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
    let mut resets = 0.0;
    for one in &fleet {
        resets += metric(one, "fleet_state_reset_total").await;
    }
    assert!(resets >= 1.0);
    let newcomer = crate::support::gateway(&text).await;
    until(async || state(&newcomer).await == "open").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_starts_without_redis_serves_and_trips_each_by_itself() {
    let mut redis = Redis::start();
    redis.kill();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let alone = crate::support::gateway(&replica(&redis, &mock.url())).await;
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

/// The probe hangs, its replica dies: once the lease has ended, one of the others probes, and all close.
#[tokio::test(flavor = "multi_thread")]
async fn the_holder_is_killed_and_exactly_one_other_takes_over() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let mut programs = Vec::new();
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("state = \"off\"\n{}", replica(&redis, &mock.url()));
        fs::write(folder.path().join("fuseline.toml"), text).unwrap();
        programs.push(Serving::start(folder.path()));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for at in [0, 1, 0, 1] {
        send(programs[at].addr, chat()).await;
    }
    for program in &programs {
        let addr = program.addr;
        until(async || send(addr, chat()).await.status == StatusCode::SERVICE_UNAVAILABLE).await;
    }
    mock.set(Reply::stall()).await.unwrap();
    let before = mock.hits();
    let mut held = None;
    within(async {
        while held.is_none() {
            for (at, program) in programs.iter().enumerate() {
                let mut answer = spawn(send(program.addr, chat()));
                let waits = tokio::time::timeout(Duration::from_millis(300), &mut answer).await;
                if waits.is_err() {
                    held = Some((at, answer));
                    break;
                }
            }
        }
    })
    .await;
    let (holder, probe) = held.unwrap();
    assert_eq!(mock.hits(), before + 1, "one probe");
    programs.remove(holder).kill();
    assert!(probe.await.is_err(), "it dies with its replica");
    let killed = Instant::now();
    mock.set(Reply::ok()).await.unwrap();
    let mut passed = Vec::new();
    within(async {
        while passed.is_empty() {
            for program in &programs {
                let answer = send(program.addr, chat()).await;
                if answer.status == StatusCode::OK {
                    passed.push(killed.elapsed());
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(mock.hits(), before + 2, "one other probe");
    assert!(passed[0] > Duration::from_millis(1_000), "{passed:?}");
    assert!(passed[0] < Duration::from_millis(4_000), "{passed:?}");
    for program in &programs {
        until(async || send(program.addr, chat()).await.status == StatusCode::OK).await;
    }
}

#[tokio::test]
async fn report_112_redis_away_is_told_once_however_many_calls_come() {
    let mut redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = replica(&redis, &mock.url());
    fs::write(folder.path().join("fuseline.toml"), text).unwrap();
    let program = Serving::start(folder.path());
    let shows = async |line: &str| {
        let page = send(program.admin, get("/metrics")).await.body;
        String::from_utf8_lossy(&page).contains(line)
    };
    until(async || shows("fleet_replicas 1").await).await;
    redis.kill();
    until(async || shows("fleet_degraded 1").await).await;
    for _ in 0..400 {
        assert_eq!(send(program.addr, chat()).await.status, 200);
    }
    redis.start_again();
    until(async || shows("fleet_degraded 0").await).await;
    let logged = program.kill();
    let warned: Vec<_> = logged
        .iter()
        .filter(|line| line["level"] == "WARN")
        .collect();
    assert_eq!(warned.len(), 1, "{warned:#?}");
    let bytes: usize = warned.iter().map(|line| line.to_string().len()).sum();
    assert!(bytes < 2_000, "{bytes}");
    let again = logged
        .iter()
        .filter(|line| line["message"] == "the fleet acts as one");
    assert!(again.count() >= 1, "its return is told");
}
