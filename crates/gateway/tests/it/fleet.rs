//! Replicas that act as one over a real Redis: gateways in this process, and programs that can be killed.

pub(crate) mod redis;
mod trouble;

use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{Answer, breaker, chat, gateway, get, openai, route, send, until, within};
use redis::Redis;

const TOUCHY: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 4 }]\ncooldown = \"1s\"\njitter = 0.0\nsuccesses_to_close = 1\nprobe_timeout = \"2s\"\n";

/// A replica before this provider.
fn replica(redis: &Redis, provider: &str) -> String {
    format!(
        "fleet = \"{}\"\n{}{}{TOUCHY}",
        redis.url(),
        openai("a", provider),
        route(&["a"])
    )
}

async fn call(gateway: &Gateway) -> Answer {
    send(gateway.addr(), chat()).await
}

/// A number on the metrics page.
async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let page = send(gateway.admin_addr(), get("/metrics")).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name}: {page}"))
        .trim()
        .parse()
        .unwrap()
}

/// So many replicas that have found each other.
async fn fleet(redis: &Redis, provider: &str, replicas: usize) -> Vec<Gateway> {
    let mut all = Vec::new();
    for _ in 0..replicas {
        all.push(gateway(&replica(redis, provider)).await);
    }
    for one in &all {
        until(async || metric(one, "fleet_replicas").await == replicas as f64).await;
        assert_eq!(metric(one, "fleet_degraded").await, 0.0);
    }
    all
}

async fn state(gateway: &Gateway) -> Value {
    breaker(gateway, "a/m").await["state"].clone()
}

async fn all_are(fleet: &[Gateway], wanted: &str) {
    for one in fleet {
        until(async || state(one).await == wanted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trip_is_seen_by_all_within_250_ms() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let fleet = fleet(&redis, &mock.url(), 3).await;
    let mut took = Vec::new();
    for _ in 0..5 {
        mock.set(Reply::status(500)).await.unwrap();
        for at in [0, 1, 0, 1] {
            assert_eq!(call(&fleet[at]).await.status, 500);
        }
        let tripped = Instant::now();
        all_are(&fleet, "open").await;
        took.push(tripped.elapsed());
        let why = breaker(&fleet[2], "a/m").await;
        assert_eq!(why["why"]["cause"], "fleet", "{why}");
        assert_eq!(call(&fleet[2]).await.status, 503);
        mock.set(Reply::ok()).await.unwrap();
        within(async {
            while state(&fleet[0]).await != "closed" {
                call(&fleet[0]).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        all_are(&fleet, "closed").await;
        // A success anywhere keeps runs from being summed for as long as a slice.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    took.sort();
    assert!(took[2] < Duration::from_millis(250), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_probes_per_cooldown_in_the_whole_fleet() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let text = format!("{}backoff = 1.0\n", replica(&redis, &mock.url()));
    let mut fleet = Vec::new();
    for _ in 0..3 {
        fleet.push(gateway(&text).await);
    }
    for one in &fleet {
        until(async || metric(one, "fleet_replicas").await == 3.0).await;
    }
    for at in [0, 1, 0, 1] {
        call(&fleet[at]).await;
    }
    all_are(&fleet, "open").await;
    let mut hits = vec![(mock.hits(), Instant::now())];
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < Duration::from_secs(5) {
        for one in &fleet {
            call(one).await;
            calls += 1;
            if mock.hits() != hits[hits.len() - 1].0 {
                hits.push((mock.hits(), Instant::now()));
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let probes = mock.hits() - 4;
    assert!((2..=5).contains(&probes), "{probes} probes, {calls} calls");
    for pair in hits.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + 1, "{hits:?}");
        let gap = pair[1].1 - pair[0].1;
        assert!(gap >= Duration::from_millis(900), "{hits:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_whose_way_out_is_broken_opens_only_itself() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut fleet = fleet(&redis, &mock.url(), 2).await;
    let lost = gateway(&replica(&redis, "http://127.0.0.1:9/v1")).await;
    until(async || metric(&lost, "fleet_replicas").await == 3.0).await;
    for _ in 0..6 {
        call(&lost).await;
    }
    fleet.push(lost);
    for _ in 0..30 {
        for one in &fleet[..2] {
            assert_eq!(call(one).await.status, 200);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let down = breaker(&fleet[2], "a").await;
    assert_eq!(down["state"], "open", "{down}");
    assert_eq!(down["why"]["cause"], "consecutive", "{down}");
    for one in &fleet[..2] {
        assert_ne!(breaker(one, "a").await["state"], "open");
    }
}
