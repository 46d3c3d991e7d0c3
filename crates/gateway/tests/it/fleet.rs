//! Replicas that act as one over a real Redis: gateways in this process, and programs that can be killed.

mod processes;
pub(crate) mod redis;
pub(crate) mod secured;
mod trouble;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::StatusCode;
use serde_json::Value;
use std::time::Duration;

use crate::support::{Answer, breaker, chat, gateway, get, openai, post, route, send, until};
use redis::Redis;

const TOUCHY: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 4 }]\ncooldown = \"1s\"\nbackoff = 1.0\njitter = 0.0\nsuccesses_to_close = 1\nprobe_timeout = \"2s\"\n";

/// A replica before this provider, whose fleet meets there.
fn replica(redis: &str, provider: &str) -> String {
    format!(
        "fleet = \"{redis}\"\n{}{}{TOUCHY}",
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
async fn fleet(redis: &str, provider: &str, replicas: usize) -> Vec<Gateway> {
    let mut all = Vec::new();
    for _ in 0..replicas {
        all.push(gateway(&replica(redis, provider)).await);
    }
    together(&all).await;
    all
}

/// They have found each other.
async fn together(fleet: &[Gateway]) {
    for one in fleet {
        until(async || metric(one, "fleet_replicas").await == fleet.len() as f64).await;
        assert_eq!(metric(one, "fleet_degraded").await, 0.0);
    }
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
async fn one_replica_whose_way_out_is_broken_opens_only_itself() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut fleet = fleet(&redis.url(), &mock.url(), 2).await;
    let lost = gateway(&replica(&redis.url(), "http://127.0.0.1:9/v1")).await;
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

/// An operator need not know which replica has opened what.
#[tokio::test(flavor = "multi_thread")]
async fn reset_and_force_reach_breakers_that_only_another_replica_has_opened() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let fleet = fleet(&redis.url(), &mock.url(), 2).await;
    let opened = async || {
        for _ in 0..4 {
            call(&fleet[0]).await;
        }
        assert_eq!(state(&fleet[0]).await, "open");
        // The other has heard that there is trouble, and stays as it is.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_ne!(state(&fleet[1]).await, "open");
    };
    let command = async |path: &str, body: &str| {
        let answer = send(fleet[1].admin_addr(), post(path, body.to_owned())).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    };
    opened().await;
    assert!(breaker(&fleet[1], "a/m").await.is_null(), "never called");
    assert!(command("/reset", "").await["reset"].as_u64() >= Some(1));
    until(async || state(&fleet[0]).await == "closed").await;
    opened().await;
    command("/breakers/a%2Fm/reset", "").await;
    until(async || state(&fleet[0]).await == "closed").await;
    opened().await;
    command("/breakers/a%2Fm/force", r#"{"to": "closed"}"#).await;
    until(async || state(&fleet[0]).await == "forced_closed").await;
    command("/breakers/a%2Fm/release", "").await;
    until(async || state(&fleet[0]).await == "closed").await;
}

/// Two fleets in one database, and one in another, have nothing to do with each other.
#[tokio::test(flavor = "multi_thread")]
async fn prefix_and_database_keep_fleets_apart() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let at = |url: &str| replica(url, &mock.url());
    let one = gateway(&at(&redis.url())).await;
    let second = format!("{}/3", redis.url());
    let others = [
        gateway(&format!("fleet_prefix = \"b\"\n{}", at(&redis.url()))).await,
        gateway(&at(&second)).await,
        gateway(&format!("fleet_prefix = \"b\"\n{}", at(&second))).await,
    ];
    for other in others.iter().chain([&one]) {
        until(async || metric(other, "fleet_replicas").await == 1.0).await;
    }
    for _ in 0..4 {
        call(&one).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(state(&one).await, "open", "alone, it is all there are");
    for other in &others {
        assert!(breaker(other, "a/m").await.is_null());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_file_user_and_metrics_are_what_there_is() {
    let guide = include_str!("../../../../docs/guide/fleet.md");
    let block = |kind: &str| {
        let (_, rest) = guide.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let redis = Redis::start();
    let command = block("sh")
        .replace("redis-cli", &format!("redis-cli -p {}", redis.port()))
        .replace(">password", ">sk-canary");
    let done = std::process::Command::new("sh")
        .args(["-c", &command])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "OK");
    let url = redis.url().replace("://", "://fleet:sk-canary@");
    let text = block("toml")
        .replace("{ env = \"FUSELINE_FLEET\" }", &format!("\"{url}\""))
        .replace("{ env = \"OPENAI_API_KEY\" }", "\"key\"");
    assert_eq!(text.matches("sk-canary").count(), 1, "{text}");
    let fleet = [gateway(&text).await, gateway(&text).await];
    together(&fleet).await;
    let quoted = guide.split('`').skip(1).step_by(2);
    let metrics: Vec<_> = quoted
        .filter(|word| word.starts_with("fleet_") && *word != "fleet_prefix")
        .collect();
    assert!(metrics.len() >= 5, "{metrics:?}");
    for name in metrics {
        metric(&fleet[0], name).await;
    }
}
