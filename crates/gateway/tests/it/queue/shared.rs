//! A queue on the fleet's Redis: any replica sends, any gives out the result; a dead one's calls are sent by another.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};

use super::{TOUCHY, answer, asked, fetch, metric, one, queue};
use crate::fleet::redis::Redis;
use crate::fleet::secured::secured;
use crate::support::{config, until, within};

async fn replica(redis: &Redis, mock: &Mock) -> Gateway {
    let text = format!(
        "fleet = \"{}\"\ndrain = \"100ms\"\n{}{TOUCHY}",
        redis.url(),
        one(mock)
    );
    Gateway::start(config(&text)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_gives_out_what_another_has_queued_and_the_fleet_probes_for_it() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let (one, two) = (replica(&redis, &mock).await, replica(&redis, &mock).await);
    for gateway in [&one, &two] {
        until(async || metric(gateway, "fleet_replicas").await == 2).await;
    }
    let mut places = Vec::new();
    for name in ["one", "two", "three"] {
        places.push(queue(&one, "me", name).await);
    }
    until(async || metric(&two, "queue_waiting").await == 3).await;
    assert_eq!(fetch(&two, "another", &places[0]).await.status, 404);
    assert_eq!(fetch(&two, "me", &places[2]).await.status, 202);
    mock.set(Reply::ok()).await.unwrap();
    for place in &places {
        assert_eq!(answer(&two, "me", place).await.status, 200);
        assert_eq!(fetch(&one, "me", place).await.status, 200);
    }
    let asked = asked(&mock);
    assert_eq!(asked[asked.len() - 3..], ["one", "two", "three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_leaves_gives_back_what_it_was_sending() {
    let redis = Redis::start();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let one = replica(&redis, &mock).await;
    let place = queue(&one, "me", "one").await;
    mock.set(Reply::stall()).await.unwrap();
    until(async || mock.in_flight() > 0).await;
    one.shutdown().await;
    until(async || mock.in_flight() == 0).await;
    mock.set(Reply::ok()).await.unwrap();
    let two = replica(&redis, &mock).await;
    assert_eq!(answer(&two, "me", &place).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_away_costs_the_queue_alone_and_comes_back() {
    let mut redis = Redis::start();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = replica(&redis, &mock).await;
    queue(&gateway, "me", "one").await;
    redis.kill();
    until(async || metric(&gateway, "queue_failing").await == 1).await;
    let refused = within(crate::support::send(
        gateway.addr(),
        super::call("me", "two"),
    ))
    .await;
    assert_eq!(refused.status, 503);
    let why = refused.header("x-fuseline-why");
    assert!(
        why.contains("not queued, the queue cannot be used"),
        "{why}"
    );
    redis.start_again();
    until(async || metric(&gateway, "queue_failing").await == 0).await;
    let place = queue(&gateway, "me", "three").await;
    mock.set(Reply::ok()).await.unwrap();
    assert_eq!(answer(&gateway, "me", &place).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_behind_tls_too() {
    let folder = tempfile::tempdir().unwrap();
    let (redis, url) = secured(&folder);
    let ca = folder.path().join("ca.pem");
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let text = format!(
        "ca_file = {ca:?}\nfleet = \"{url}\"\n{}{TOUCHY}",
        one(&mock)
    );
    let gateway = Gateway::start(config(&text)).await.unwrap();
    let place = queue(&gateway, "me", "one").await;
    let kept = redis.ask(&["-n", "2", "HLEN", "fuseline:{queue}:calls"]);
    assert_eq!(kept.trim(), "1");
    mock.set(Reply::ok()).await.unwrap();
    assert_eq!(answer(&gateway, "me", &place).await.status, 200);
}
