//! Rules for failures of some kinds, and requests that are too long for a model.

use fuseline_mock::{Mock, Reply};
use http_body_util::Full;

use super::{Scene, again, by, targets};
use crate::support::{Answer, CHAT, chat, gateway, openai, post, send};

fn too_long() -> Reply {
    Reply::status(400).error_code("context_length_exceeded")
}

/// A call of about so many tokens.
async fn call_of(scene: &Scene, tokens: usize) -> Answer {
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"{}"}}]}}"#,
        "abc ".repeat(tokens)
    );
    send(scene.gateway.addr(), post(CHAT, body)).await
}

#[tokio::test]
async fn next_goes_on_where_the_table_would_return() {
    let text = targets(&["a", "b"]) + "on.not_found = \"next\"\n";
    let scene = Scene::of([Reply::status(404), Reply::ok()], &text).await;
    assert_eq!(by(&scene.call().await), "b/m");
    scene.mocks[0].set(Reply::status(422)).await.unwrap();
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (422, vec![2, 1]));
}

#[tokio::test]
async fn return_gives_the_answer_as_it_came() {
    let text = targets(&["a", "b"]) + "on.server_error = \"return\"\nretries = 3\n";
    let reply = again(500).body("{\"theirs\" : 1}");
    let scene = Scene::of([reply, Reply::ok()], &text).await;
    let answer = scene.call().await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (500, &b"{\"theirs\" : 1}"[..])
    );
    assert_eq!(scene.hits(), [1, 0]);
}

#[tokio::test]
async fn a_target_of_a_rule_is_asked_after_its_kind_alone() {
    let text = targets(&["a", "b"]) + "retries = 0\non.content_policy = \"c/lenient\"\n";
    let filtered = Reply::status(400).error_code("content_filter");
    let scene = Scene::of([filtered, Reply::ok(), Reply::ok()], &text).await;
    let answer = scene.call().await;
    assert_eq!(
        (by(&answer), answer.header("x-fuseline-fallback")),
        ("c/lenient", "true")
    );
    assert_eq!(
        scene.mocks[2].requests()[0].model.as_deref(),
        Some("lenient")
    );
    scene.mocks[0].set(Reply::status(500)).await.unwrap();
    assert_eq!(by(&scene.call().await), "b/m");
    scene.mocks[1].set(Reply::status(500)).await.unwrap();
    assert_eq!(scene.call().await.status, 500);
    assert_eq!(scene.hits(), [3, 2, 1]);
}

#[tokio::test]
async fn a_rule_can_lead_to_another_route_and_a_caller_can_decline() {
    let text = targets(&["a"])
        + "retries = 0\non.overloaded = \"small\"\n[[routes]]\nmodel = \"small\"\n"
        + &targets(&["b model = \"s\"", "c"]);
    let scene = Scene::of([Reply::status(529), Reply::status(500), Reply::ok()], &text).await;
    assert_eq!(by(&scene.call().await), "c/m");
    assert_eq!(scene.hits(), [1, 1, 1]);
    let mut request = chat();
    let headers = request.headers_mut();
    headers.insert("x-fuseline-fallback", "off".parse().unwrap());
    assert_eq!(send(scene.gateway.addr(), request).await.status, 529);
    assert_eq!(scene.hits(), [2, 1, 1]);
}

#[tokio::test]
async fn a_request_that_was_too_long_goes_to_a_larger_context() {
    let text = targets(&["a context = 8000", "b context = 8000", "c context = 100000"])
        + "on.context_length = \"bigger\"\n";
    let scene = Scene::of([too_long(), Reply::ok(), Reply::ok()], &text).await;
    assert_eq!(by(&scene.call().await), "c/m");
    assert_eq!(scene.hits(), [1, 0, 1]);
    scene.mocks[2].set(too_long()).await.unwrap();
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (400, vec![2, 0, 2]));
}

#[tokio::test]
async fn a_smaller_model_is_asked_only_where_the_request_fits() {
    let text = targets(&["a", "b context = 1000", "c"]) + "retries = 0\n";
    let scene = Scene::of([Reply::status(500), Reply::ok(), Reply::ok()], &text).await;
    assert_eq!(by(&call_of(&scene, 500).await), "b/m");
    let answer = call_of(&scene, 3_000).await;
    assert_eq!(by(&answer), "c/m");
    let why = answer.header("x-fuseline-why");
    assert!(
        why.contains("b/m: about 30") && why.contains("do not fit into 1000"),
        "{why}"
    );
    assert_eq!(scene.hits(), [2, 1, 1]);
}

#[tokio::test]
async fn what_fits_nowhere_is_for_the_providers_to_refuse() {
    let text = targets(&["a"]) + "[[models]]\nmatch = \"m\"\ncontext = 10\n";
    let scene = Scene::of([too_long()], &text).await;
    let answer = call_of(&scene, 3_000).await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (400, vec![1]));
}

#[tokio::test]
async fn an_answers_limit_counts_towards_the_context() {
    let text = targets(&["a context = 1000", "b"]);
    let scene = Scene::of([Reply::ok(), Reply::ok()], &text).await;
    let body = r#"{"model":"m","max_tokens":990,"messages":[{"role":"user","content":"Hi"}]}"#;
    let answer = send(scene.gateway.addr(), post(CHAT, body)).await;
    assert_eq!(by(&answer), "b/m");
}

#[tokio::test]
async fn rules_of_one_route_are_not_anothers() {
    let (a, b) = (
        Mock::start(Reply::status(404)).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let text = format!(
        "{}{}[[routes]]\nmodel = \"one\"\non.not_found = \"next\"\n{}[[routes]]\nmodel = \"two\"\n{}",
        openai("a", &a.url()),
        openai("b", &b.url()),
        targets(&["a", "b"]),
        targets(&["a", "b"]),
    );
    let gateway = gateway(&text).await;
    for (model, status) in [("one", 200), ("two", 404)] {
        let mut request = chat();
        *request.body_mut() = Full::new(format!(r#"{{"model":"{model}"}}"#).into());
        assert_eq!(
            send(gateway.addr(), request).await.status,
            status,
            "{model}"
        );
    }
}
