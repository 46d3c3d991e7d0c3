//! How long one call may take, how often, and how often all of them.

use std::time::Duration;

use fuseline_mock::Reply;
use http::header::HeaderName;
use tokio::time::Instant;

use super::{Scene, again, by, targets};
use crate::support::{Answer, chat, get, post, send, stream, until};

async fn with(scene: &Scene, name: &'static str, value: &str) -> Answer {
    let mut request = chat();
    let name = HeaderName::from_static(name);
    request.headers_mut().insert(name, value.parse().unwrap());
    send(scene.gateway.addr(), request).await
}

#[tokio::test]
async fn a_callers_budget_is_for_all_targets_together() {
    let text = targets(&["a", "b", "c"]) + "retries = 0\n";
    let scene = Scene::of([Reply::stall(), Reply::stall(), Reply::ok()], &text).await;
    let began = Instant::now();
    let answer = with(&scene, "x-fuseline-budget-ms", "300").await;
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(290) && took < Duration::from_secs(3),
        "{took:?}"
    );
    assert_eq!(answer.status, 504);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "exhausted");
    assert_eq!(
        error["attempts"],
        serde_json::json!([
            {"target": "a/m", "kind": "timeout", "outcome": "unknown"},
            {"target": "b/m", "kind": "timeout", "outcome": "unknown"},
        ])
    );
    assert!(
        answer.header("x-fuseline-why").contains("limit budget"),
        "{answer:?}"
    );
    assert_eq!(scene.hits(), [1, 1, 0], "who comes first leaves a third");
}

#[tokio::test]
async fn a_silent_target_leaves_time_for_the_next_one_and_takes_all_where_there_is_none() {
    for request in [chat, stream] {
        let text = targets(&["a", "b"]) + "retries = 0\nbudget = \"900ms\"\n";
        let scene = Scene::of([Reply::stall(), Reply::ok()], &text).await;
        let answer = send(scene.gateway.addr(), request()).await;
        assert_eq!(answer.header("x-fuseline-target"), "b/m");
        let why = answer.header("x-fuseline-why");
        let is_share = |ms| why.contains(&format!("within {ms}ms (limit budget)"));
        assert!((580..=600).any(is_share), "{why}");
    }
    let text = targets(&["a"]) + "retries = 0\nbudget = \"900ms\"\n";
    let scene = Scene::of([Reply::stall()], &text).await;
    let why = send(scene.gateway.addr(), chat()).await;
    let why = why.header("x-fuseline-why");
    let is_all = |ms| why.contains(&format!("within {ms}ms (limit budget)"));
    assert!((880..=900).any(is_all), "{why}");
}

#[tokio::test]
async fn a_callers_budget_cannot_lengthen_the_routes() {
    let text = targets(&["a"]) + "retries = 0\nbudget = \"200ms\"\n";
    let scene = Scene::of([Reply::stall()], &text).await;
    let answer = with(&scene, "x-fuseline-budget-ms", "8000").await;
    assert_eq!(answer.status, 504);
    assert!(
        answer.header("x-fuseline-why").contains("(limit budget)"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_budget_that_is_no_number_is_refused_and_not_repeated() {
    let scene = Scene::of([Reply::ok()], &targets(&["a"])).await;
    for odd in ["0", "-5", "1s", "secret"] {
        let answer = with(&scene, "x-fuseline-budget-ms", odd).await;
        assert_eq!(answer.status, 400, "{odd}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(
            message.contains("x-fuseline-budget-ms") && message.contains("such as 30000"),
            "{message}"
        );
        assert!(!message.contains("secret"));
    }
    assert_eq!(scene.hits(), [0]);
}

#[tokio::test]
async fn an_sdks_read_timeout_bounds_a_plain_answer_too() {
    let text = targets(&["a", "b"]) + "retries = 0\n";
    let scene = Scene::of([Reply::stall(), Reply::ok()], &text).await;
    let answer = with(&scene, "x-stainless-read-timeout", "0.2").await;
    assert_eq!((answer.status.as_u16(), by(&answer)), (200, "b/m"));
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("200ms (limit answer)"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn callers_in_a_hurry_open_nobodys_breaker() {
    for (name, hurry) in [
        ("x-fuseline-budget-ms", "50"),
        ("x-stainless-read-timeout", "0.05"),
    ] {
        for (usual, opens) in [("", false), ("cancel_counts_after = \"20ms\"\n", true)] {
            let text = targets(&["a"])
                + "retries = 0\n[breaker]\ntrip = [{ rule = \"consecutive\", failures = 2 }]\n";
            let scene = Scene::under(usual, [Reply::stall()], &text).await;
            for _ in 0..3 {
                with(&scene, name, hurry).await;
            }
            assert_eq!(scene.hits(), [if opens { 2 } else { 3 }], "{name} {usual}");
        }
    }
}

#[tokio::test]
async fn what_sdks_repeat_uses_the_retries_up_and_then_there_are_none() {
    let text = targets(&["a", "b"]) + "retries = 3\n";
    let scene = Scene::of([Reply::ok(), Reply::ok()], &text).await;
    for _ in 0..130 {
        assert_eq!(
            with(&scene, "x-stainless-retry-count", "1").await.status,
            200
        );
    }
    scene.mocks[0].set(again(500)).await.unwrap();
    // A retry may have grown back if this machine is slow; the next call takes that, too.
    until(async || {
        let hits = scene.hits()[0];
        let answer = with(&scene, "x-stainless-retry-count", "2").await;
        assert_eq!(by(&answer), "b/m");
        let is_denied = answer.header("x-fuseline-why").contains("retry budget");
        is_denied && scene.hits()[0] == hits + 1
    })
    .await;
}

#[tokio::test]
async fn a_crowd_does_not_ask_a_dead_target_twice_each_and_a_single_call_does() {
    let scene = Scene::of([Reply::ok(), Reply::ok()], &targets(&["a", "b"])).await;
    assert_eq!(by(&scene.call().await), "a/m");
    let dead = Reply::status(503).delay(Duration::from_millis(100));
    scene.mocks[0].set(dead).await.unwrap();
    let addr = scene.gateway.addr();
    let calls = (0..30).map(|_| crate::support::spawn(send(addr, chat())));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(by(&call.await.unwrap()), "b/m");
    }
    let asked = scene.hits()[0] - 1;
    // Four may be repeated before the fifth failure, and their failures may come before the breaker opens.
    assert!((30..=38).contains(&asked), "{asked} requests of 30 calls");

    let scene = Scene::of([again(500), Reply::ok()], &targets(&["a", "b"])).await;
    assert_eq!(by(&scene.call().await), "b/m");
    assert_eq!(scene.hits(), [2, 1]);
}

#[tokio::test]
async fn a_rule_free_route_has_its_usual_retries() {
    let text = targets(&["a", "b"]) + "retries = 3\n";
    let scene = Scene::of([again(500), Reply::ok()], &text).await;
    assert_eq!(by(&scene.call().await), "b/m");
    assert_eq!(scene.hits(), [4, 1]);
}

#[tokio::test]
async fn report_82_an_unknown_outcome_is_not_sent_there_again_and_is_called_by_its_name() {
    for reply in [
        Reply::ok().delay(Duration::from_millis(850)),
        Reply::reset(),
    ] {
        let text = targets(&["a", "b"]) + "retries = 3\ntimeouts = { answer = \"300ms\" }\n";
        let scene = Scene::of([reply.clone(), reply], &text).await;
        let answer = scene.call().await;
        assert_eq!((answer.status.as_u16(), scene.hits()), (504, vec![1, 1]));
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("unknown outcome"), "{message}");
        assert_eq!(error["attempts"][1]["outcome"], "unknown");
        assert_eq!(answer.header("x-should-retry"), "false");
        assert!(
            scene.mocks[0].requests()[0]
                .header("idempotency-key")
                .is_none()
        );
    }
}

#[tokio::test]
async fn report_82_what_abandoned_attempts_may_have_cost_is_counted() {
    let priced = "retries = 0\ntargets = [\
                  { provider = \"a\", price = { input = 0, output = 2000 } }, { provider = \"b\" }]\n";
    let scene = Scene::of([Reply::reset(), Reply::ok()], priced).await;
    let answer = send(
        scene.gateway.addr(),
        post("/v1/chat/completions", r#"{"model":"m","max_tokens":250}"#),
    )
    .await;
    assert_eq!(by(&answer), "b/m");
    let page = send(scene.gateway.admin_addr(), get("/metrics")).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    for line in [
        "attempts_abandoned_total 1",
        "attempts_abandoned_cost_dollars_total 0.5",
    ] {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn report_82_a_request_that_was_not_sent_is_free_to_go_on() {
    let text = targets(&["a", "b", "c"]) + "retries = 1\n";
    let scripts = [
        fuseline_mock::Script::refuse(),
        fuseline_mock::Script::refuse(),
        Reply::ok().into(),
    ];
    let scene = Scene::of(scripts, &text).await;
    assert_eq!(by(&scene.call().await), "c/m");
}

#[tokio::test]
async fn report_82_resending_is_the_operators_choice_and_bears_one_name() {
    let text = targets(&["a", "b"]) + "retries = 1\nresend_unknown = true\n";
    let scene = Scene::of([Reply::close(), Reply::ok()], &text).await;
    let answer = scene.call().await;
    assert_eq!((by(&answer), scene.hits()), ("b/m", vec![2, 1]));
    let names = || {
        let requests = scene.mocks.iter().flat_map(fuseline_mock::Mock::requests);
        let names = requests.map(|request| request.header("idempotency-key").unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let first = names();
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|name| *name == first[0]), "{first:?}");
    assert_eq!(first[0], answer.header("x-fuseline-request-id"));

    let answer = with(&scene, "idempotency-key", "of-the-caller").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        names()
            .iter()
            .filter(|name| *name == "of-the-caller")
            .count(),
        3
    );
}

#[tokio::test]
async fn every_answer_says_who_gave_it_and_why() {
    let text = targets(&["a", "b"]) + "retries = 0\n";
    let scene = Scene::of([Reply::status(500), Reply::ok()], &text).await;
    let wrong = post("/v1/nothing/../..", "");
    let calls = [
        (chat(), "b/m", "1", "true"),
        (stream(), "b/m", "1", "true"),
        (wrong, "none", "0", "false"),
    ];
    for (request, target, least, fallback) in calls {
        let answer = send(scene.gateway.addr(), request).await;
        assert_eq!(by(&answer), target);
        assert!(answer.header("x-fuseline-attempts") >= least);
        assert_eq!(answer.header("x-fuseline-fallback"), fallback);
        for name in [
            "x-fuseline-breaker",
            "x-fuseline-request-id",
            "x-fuseline-why",
        ] {
            assert!(!answer.header(name).is_empty(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_call_that_nobody_could_take_lists_whom_it_passed_over() {
    let text = targets(&["a", "b"])
        + "retries = 0\n[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\njitter = 0.0\ncooldown = \"20s\"\n";
    let scene = Scene::of([Reply::close(), Reply::close()], &text).await;
    assert_eq!(scene.call().await.status, 504);
    let answer = scene.call().await;
    assert_eq!(answer.status, 503);
    let error = &answer.json()["error"];
    let skipped = error["skipped"].as_array().unwrap();
    let names: Vec<_> = skipped.iter().map(|entry| &entry["target"]).collect();
    assert_eq!(names, ["a/m", "b/m"]);
    for entry in skipped {
        assert_eq!(entry["reason"], "open");
        assert!(
            (10_000..=20_000).contains(&entry["wait_ms"].as_u64().unwrap()),
            "{entry}"
        );
    }
    assert_eq!(error["attempts"], serde_json::json!([]));
    assert!(!String::from_utf8_lossy(&answer.body).contains("key-of"));
}
