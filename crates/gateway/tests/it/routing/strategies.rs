//! In which order targets are asked, and several keys of one provider.

use std::time::Duration;

use fuseline_core::{Kind, Outcome, ScopeName};
use fuseline_mock::{Mock, Reply, Rule, Script};
use tokio::time::Instant;

use super::{Scene, by, targets};
use crate::support::{CHAT, breaker, chat, gateway, post, send, until};

const TOUCHY: &str = "[breaker]\njitter = 0.0\ncooldown = \"300ms\"\ntrip = [{ rule = \"consecutive\", failures = 1 }]\nsuccesses_to_close = 1\n";

async fn ask(scene: &Scene, body: String) -> String {
    let answer = send(scene.gateway.addr(), post(CHAT, body)).await;
    by(&answer).to_owned()
}

#[tokio::test]
async fn the_cheapest_depends_on_what_is_asked_for() {
    let text = targets(&["a price = { input = 1, output = 100 }", "b price = 10"])
        + "strategy = \"cheapest\"\n";
    let scene = Scene::of([Reply::ok(), Reply::ok()], &text).await;
    let talk = r#"{"model":"m","max_tokens":1000,"messages":[]}"#;
    assert_eq!(ask(&scene, talk.to_owned()).await, "b/m");
    let read = format!(
        r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "word ".repeat(8_000)
    );
    assert_eq!(ask(&scene, read).await, "a/m");
}

#[tokio::test]
async fn weights_share_the_calls() {
    let text = targets(&["a weight = 3", "b"]) + "strategy = \"weighted\"\n";
    let scene = Scene::of([Reply::ok(), Reply::ok()], &text).await;
    for _ in 0..200 {
        assert_eq!(scene.call().await.status, 200);
    }
    // 150 are expected, with a deviation of 6.
    let [a, b] = scene.hits()[..] else {
        panic!("two")
    };
    assert!((110..=190).contains(&a) && a + b == 200, "{a} and {b}");
}

#[tokio::test]
async fn the_fastest_gets_the_calls_once_all_have_been_tried() {
    let slow = Reply::ok().delay(Duration::from_millis(400));
    let text = targets(&["a", "b"]) + "strategy = \"fastest\"\n";
    let scene = Scene::of([slow, Reply::ok()], &text).await;
    for _ in 0..20 {
        assert_eq!(scene.call().await.status, 200);
    }
    let [a, b] = scene.hits()[..] else {
        panic!("two")
    };
    assert!(a == 1 && b == 19, "{a} and {b}");
}

#[tokio::test]
async fn degraded_targets_stand_behind_healthy_ones_until_they_were_left_alone() {
    let text = targets(&["a price = 1", "b price = 2"])
        + "strategy = \"cheapest\"\nretries = 0\n[breaker]\ncooldown = \"400ms\"\njitter = 0.0\n";
    let scene = Scene::of([Reply::status(500), Reply::ok()], &text).await;
    for _ in 0..4 {
        assert_eq!(by(&scene.call().await), "b/m");
    }
    assert_eq!(
        scene.hits(),
        [3, 4],
        "three of five failures are pressure enough"
    );
    assert_eq!(breaker(&scene.gateway, "a/m").await["state"], "degraded");
    scene.mocks[0].set(Reply::ok()).await.unwrap();
    until(async || by(&scene.call().await) == "a/m").await;
    assert_eq!(breaker(&scene.gateway, "a/m").await["state"], "closed");
    assert_eq!(by(&scene.call().await), "a/m");
}

#[tokio::test]
async fn a_target_due_for_a_probe_goes_first_whatever_the_strategy() {
    for strategy in ["priority", "cheapest", "fastest", "weighted"] {
        let text = targets(&["a price = 1, weight = 1000000", "b price = 9"])
            + &format!("strategy = \"{strategy}\"\nretries = 0\n{TOUCHY}");
        let scene = Scene::of([Reply::ok(), Reply::status(500)], &text).await;
        assert_eq!(scene.call().await.status, 200);
        scene.mocks[0].set(Reply::status(404)).await.unwrap();
        let b = ScopeName::provider("b");
        let b = scene.gateway.registry().find_breaker(&b).unwrap();
        let permit = b.try_acquire(b.now()).unwrap();
        let failure = Outcome::failure(Kind::Network);
        permit.record(&failure, b.now());
        scene.mocks[1].set(Reply::ok()).await.unwrap();
        until(async || breaker(&scene.gateway, "b").await["retry_after_ms"] == 0).await;
        let answer = scene.call().await;
        assert_eq!(
            (by(&answer), answer.status.as_u16()),
            ("b/m", 200),
            "{strategy}"
        );
    }
}

async fn two_keys(first: Reply) -> (Mock, fuseline_gateway::Gateway) {
    let script = Script::always(Reply::ok()).rule(Rule::key("k1").reply(first));
    let mock = Mock::start(script).await.unwrap();
    let text = format!(
        "[providers.a]\nprotocol = \"openai\"\nbase_url = \"{}\"\napi_key = [\"k1\", \"k2\"]\n[[routes]]\nmodel = \"*\"\n{}",
        mock.url(),
        targets(&["a"])
    );
    (mock, gateway(&text).await)
}

#[tokio::test]
async fn a_held_or_spent_key_rests_alone_and_the_next_one_serves() {
    for first in [
        Reply::status(429).retry_after(9),
        Reply::status(429).error_code("insufficient_quota"),
    ] {
        let (mock, gateway) = two_keys(first).await;
        let began = Instant::now();
        let attempts = async || {
            let answer = send(gateway.addr(), chat()).await;
            assert_eq!((answer.status.as_u16(), by(&answer)), (200, "a/m"));
            answer.header("x-fuseline-attempts").to_owned()
        };
        assert_eq!(attempts().await, "2");
        for _ in 0..4 {
            attempts().await;
        }
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "nobody sat the hint out"
        );
        let keys = |key: &str| {
            let requests = mock.requests();
            let shown = requests
                .iter()
                .filter_map(|request| request.header("authorization"));
            shown.filter(|shown| shown.ends_with(key)).count()
        };
        assert_eq!(keys("k2"), 5);
    }
}

#[tokio::test]
async fn a_held_key_is_not_asked_again() {
    let (mock, gateway) = two_keys(Reply::status(429).retry_after(9)).await;
    for _ in 0..5 {
        assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    }
    assert_eq!(mock.hits(), 6);
    assert!(breaker(&gateway, "a#0").await["hold_ms"].as_u64() > Some(5_000));
}
