//! `kill -9` at random moments: every call that was acknowledged gets its answer, each was sent first in its turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fuseline_mock::{Mock, Reply};

use super::{ask, asked, one};
use crate::state::program::Serving;
use crate::support::{CHAT, get, post, send, spawn, until, within};

const BREAKER: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\ncooldown = \"100ms\"\nbackoff = 1.0\njitter = 0.0\nsuccesses_to_close = 1\n";

/// Queues call after call, and gives back those that were acknowledged, each with the place of its answer.
async fn storm(serving: &Serving, round: u32, random: &mut fastrand::Rng) -> Vec<(String, String)> {
    let addr = serving.addr;
    let (heard, mut told) = tokio::sync::mpsc::unbounded_channel();
    let caller = spawn(async move {
        for number in 0.. {
            let name = format!("{round}-{number}");
            let answer = send(addr, post(CHAT, ask(&name))).await;
            if answer.status == 202 {
                let place = answer.header("location").to_owned();
                heard.send((name, place)).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(random.u64(100..500))).await;
    caller.abort();
    let _ended = caller.await;
    let mut all = Vec::new();
    while let Some(one) = told.recv().await {
        all.push(one);
    }
    all
}

/// One round: a process that queues, and is killed while it may be sending.
async fn round(
    folder: &Path,
    mock: &Mock,
    round: u32,
    random: &mut fastrand::Rng,
) -> Vec<(String, String)> {
    let serving = Serving::start(folder);
    assert_eq!(serving.told(), [""; 0], "round {round}");
    let queued = storm(&serving, round, random).await;
    if random.bool() {
        // It dies while it sends: some answers are on their way.
        let slow = Reply::ok().delay(Duration::from_millis(random.u64(1..40)));
        mock.set(slow).await.unwrap();
        tokio::time::sleep(Duration::from_millis(random.u64(100..400))).await;
    }
    drop(serving.kill());
    mock.set(Reply::status(503)).await.unwrap();
    queued
}

async fn rounds(rounds: u32) {
    let seed = fastrand::u64(..1 << 40);
    let mut random = fastrand::Rng::with_seed(seed);
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}{BREAKER}", one(&mock));
    std::fs::write(folder.path().join("fuseline.toml"), text).unwrap();
    let mut queued = Vec::new();
    for number in 0..rounds {
        queued.extend(round(folder.path(), &mock, number, &mut random).await);
    }
    assert!(queued.len() > 3, "seed {seed}: {queued:?}");

    mock.set(Reply::ok()).await.unwrap();
    let serving = Serving::start(folder.path());
    for (name, place) in &queued {
        let told = format!("seed {seed}, call {name}");
        until(async || send(serving.addr, get(place)).await.status != 202).await;
        let answer = within(send(serving.addr, get(place))).await;
        assert_eq!(answer.status, 200, "{told}: {answer:?}");
    }
    // Whoever was sent first was queued first, and all sendings of a call bear its id.
    let mut firsts: Vec<String> = Vec::new();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let places: BTreeMap<_, _> = queued.iter().cloned().collect();
    for (name, request) in asked(&mock).into_iter().zip(mock.requests()) {
        let Some(key) = request.header("idempotency-key") else {
            continue; // its caller's own call
        };
        let known = ids.entry(name.clone()).or_insert_with(|| key.to_owned());
        assert_eq!(known, key, "seed {seed}, call {name}");
        if let Some(place) = places.get(&name) {
            assert!(place.ends_with(key), "seed {seed}, call {name}");
            if !firsts.contains(&name) {
                firsts.push(name);
            }
        }
    }
    let order: Vec<_> = queued.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(firsts, order, "seed {seed}");
}

#[tokio::test]
async fn killed_at_random_moments_it_answers_every_call_that_it_acknowledged() {
    rounds(4).await;
}

#[tokio::test]
#[ignore = "50 kills: part of the long run"]
async fn killed_at_random_moments_it_answers_every_call_fifty_times() {
    rounds(50).await;
}
