//! What is left when every target is out: `wait`, further targets and routes, in the order written.

use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Rule, Script};
use tokio::time::Instant;

use crate::support::{
    Answer, CHAT, SOON, breaker, chat, gateway, openai, post, send, spawn, stream, until,
};

/// Open after one failure, for this long.
fn opens_for(cooldown: &str) -> String {
    format!(
        "[breaker]\ncooldown = \"{cooldown}\"\njitter = 0.0\ntrip = [{{ rule = \"consecutive\", failures = 1 }}]\n"
    )
}

/// One provider, and a route with this in it.
async fn alone(provider: &Mock, route: &str, more: &str) -> Gateway {
    gateway(&format!(
        "{}[[routes]]\nmodel = \"m\"\nretries = 0\ntargets = [{{ provider = \"a\" }}]\n{route}{more}",
        openai("a", &provider.url())
    ))
    .await
}

async fn mock(script: impl Into<Script>) -> Mock {
    Mock::start(script).await.unwrap()
}

async fn call(gateway: &Gateway) -> Answer {
    send(gateway.addr(), chat()).await
}

fn small_is_well() -> Script {
    Script::from(Reply::status(503))
        .rule(Rule::model("small").reply(Reply::ok().text("from the small")))
}

#[tokio::test]
async fn a_wait_ends_with_the_recovery_and_the_call_is_served() {
    let provider = mock(Script::sequence([Reply::status(503), Reply::ok()])).await;
    let gateway = alone(
        &provider,
        "on_exhausted = [\"wait\"]\n",
        &opens_for("400ms"),
    )
    .await;
    assert_eq!(
        call(&gateway).await.status,
        503,
        "a target that has failed is not asked twice"
    );
    let began = Instant::now();
    let answer = call(&gateway).await;
    assert_eq!(answer.status, 200);
    assert!(
        began.elapsed() >= Duration::from_millis(200),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(answer.header("x-fuseline-attempts"), "1");
    assert_eq!(
        answer.header("x-fuseline-degraded"),
        "",
        "it is what the caller asked for"
    );
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("waits for the soonest recovery")
    );
    assert_eq!(provider.hits(), 2);
}

#[tokio::test]
async fn a_crowd_that_waits_is_served_after_one_probe() {
    let provider = mock(Script::sequence([
        Reply::status(503),
        Reply::ok().delay(Duration::from_millis(150)),
        Reply::ok(),
    ]))
    .await;
    let breaker = opens_for("300ms") + "successes_to_close = 1\n";
    let gateway = alone(&provider, "on_exhausted = [\"wait\"]\n", &breaker).await;
    call(&gateway).await;
    let addr = gateway.addr();
    let crowd: Vec<_> = (0..20).map(|_| spawn(send(addr, chat()))).collect();
    for caller in crowd {
        assert_eq!(caller.await.unwrap().status, 200);
    }
    assert_eq!(provider.hits(), 1 + 20);
}

#[tokio::test]
async fn a_recovery_beyond_max_wait_is_not_waited_for() {
    let provider = mock(Reply::status(503)).await;
    let route = "on_exhausted = [\"wait\"]\nmax_wait = \"5s\"\n";
    let gateway = alone(&provider, route, &opens_for("12s")).await;
    call(&gateway).await;
    let began = Instant::now();
    let answer = call(&gateway).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"]["code"], "circuit_open");
    assert_eq!(answer.header("retry-after"), "12");
    assert_eq!(provider.hits(), 1);
}

#[tokio::test]
async fn who_has_waited_in_vain_is_told_the_wait_of_now() {
    let provider = mock(Reply::status(503)).await;
    let route = "on_exhausted = [\"wait\"]\nmax_wait = \"1s\"\nbudget = \"700ms\"\n";
    let more = opens_for("400ms") + "backoff = 1.0\n";
    let gateway = alone(&provider, route, &more).await;
    call(&gateway).await;
    // The probe that ends its wait is another's, and is not answered while this one is there.
    provider.set(Reply::stall()).await.unwrap();
    let first = spawn(send(gateway.addr(), chat()));
    provider.wait_for_hits(2, SOON).await.unwrap();
    let answer = call(&gateway).await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.header("retry-after-ms"),
        "1000",
        "{:?}",
        answer.headers
    );
    assert_eq!(first.await.unwrap().status, 504);
}

#[tokio::test]
async fn a_smaller_model_answers_under_its_own_breaker_and_is_marked() {
    let provider = mock(small_is_well()).await;
    let gateway = alone(
        &provider,
        "on_exhausted = [\"a/small\"]\n",
        &opens_for("12s"),
    )
    .await;
    for (attempts, hits) in [("2", 2), ("1", 3)] {
        let answer = call(&gateway).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-fuseline-target"), "a/small");
        assert_eq!(answer.header("x-fuseline-attempts"), attempts);
        assert_eq!(answer.header("x-fuseline-degraded"), "target");
        assert_eq!(answer.header("x-fuseline-fallback"), "true");
        assert_eq!(provider.hits(), hits);
    }
    assert_eq!(breaker(&gateway, "a/m").await["state"], "open");
    assert_eq!(breaker(&gateway, "a/small").await["state"], "closed");
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(answer.header("x-fuseline-target"), "a/small");
    assert!(answer.body.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_healthy_call_never_gets_the_smaller_model() {
    let provider = mock(Reply::ok()).await;
    let gateway = alone(&provider, "on_exhausted = [\"a/small\"]\n", "").await;
    let answer = call(&gateway).await;
    assert_eq!(answer.header("x-fuseline-target"), "a/m");
    assert_eq!(answer.header("x-fuseline-degraded"), "");
    assert_eq!(provider.hits_for("small"), 0);
}

#[tokio::test]
async fn a_route_brings_its_targets_and_its_own_last_resort() {
    let provider = mock(
        Script::from(Reply::status(503))
            .rule(Rule::model("tiny").reply(Reply::ok().text("from the tiny"))),
    )
    .await;
    let more = "[[routes]]\nmodel = \"small\"\ntargets = [{ provider = \"a\", model = \"small\" }]\non_exhausted = [\"b/tiny\"]\n";
    let gateway = alone(
        &provider,
        "on_exhausted = [\"small\", \"a/never\"]\n",
        &format!("{more}{}{}", openai("b", &provider.url()), opens_for("12s")),
    )
    .await;
    let answer = call(&gateway).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "b/tiny")
    );
    assert_eq!(answer.header("x-fuseline-attempts"), "3");
    let asked: Vec<_> = ["m", "small", "tiny", "never"]
        .map(|model| provider.hits_for(model))
        .into();
    assert_eq!(asked, [1, 1, 1, 0]);
}

#[tokio::test]
async fn attempts_have_one_bound_with_the_last_resort_in_it() {
    let provider = mock(Reply::status(503)).await;
    let route = "max_attempts = 2\non_exhausted = [\"a/small\", \"a/tiny\"]\n";
    let gateway = alone(&provider, route, &opens_for("12s")).await;
    let answer = call(&gateway).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-should-retry"), "false");
    assert_eq!(
        (provider.hits_for("small"), provider.hits_for("tiny")),
        (1, 0)
    );
}

#[tokio::test]
async fn report_82_a_call_that_may_run_at_two_targets_goes_to_no_third() {
    let provider = mock(Reply::reset()).await;
    let route = "on_exhausted = [\"a/small\", \"a/tiny\"]\n";
    let gateway = alone(&provider, route, "").await;
    let answer = call(&gateway).await;
    assert_eq!(answer.status, 504);
    assert_eq!((provider.hits_for("m"), provider.hits_for("small")), (1, 1));
    assert_eq!(provider.hits_for("tiny"), 0);
}

#[tokio::test]
async fn a_request_at_fault_is_returned_as_it_came() {
    let provider = mock(Reply::status(400)).await;
    let route = "on_exhausted = [\"cache\", \"wait\", \"a/small\"]\n";
    let gateway = alone(&provider, route, "").await;
    assert_eq!(call(&gateway).await.status, 400);
    assert_eq!(provider.hits(), 1);
}

#[tokio::test]
async fn who_wants_no_fallback_waits_at_most() {
    let provider = mock(small_is_well()).await;
    let route = "on_exhausted = [\"a/small\", \"wait\"]\nmax_wait = \"1s\"\n";
    let gateway = alone(&provider, route, &opens_for("300ms")).await;
    let strict = || {
        let mut request = chat();
        let off = "off".parse().unwrap();
        request.headers_mut().insert("x-fuseline-fallback", off);
        request
    };
    assert_eq!(send(gateway.addr(), strict()).await.status, 503);
    provider.set(Reply::ok()).await.unwrap();
    let answer = send(gateway.addr(), strict()).await;
    assert_eq!(answer.header("x-fuseline-target"), "a/m");
    assert_eq!(provider.hits_for("small"), 0);
}

#[tokio::test]
async fn a_caller_who_leaves_while_he_waits_costs_nobody_anything() {
    let provider = mock(Script::sequence([Reply::status(503), Reply::ok()])).await;
    let gateway = alone(
        &provider,
        "on_exhausted = [\"wait\"]\n",
        &opens_for("400ms"),
    )
    .await;
    call(&gateway).await;
    let waiting = spawn(send(gateway.addr(), chat()));
    until(async || breaker(&gateway, "a/m").await["rejected"]["open"] == 1).await;
    waiting.abort();
    until(async || breaker(&gateway, "a/m").await["retry_after_ms"] == 0).await;
    assert_eq!(provider.hits(), 1);
    assert_eq!(breaker(&gateway, "a/m").await["live_probes"], 0);
}

#[tokio::test]
async fn bodies_beyond_the_replay_memory_are_sent_once_and_the_reason_is_told() {
    let provider = mock(Reply::status(503)).await;
    let text = format!(
        "replay_memory = \"100B\"\n{}{}[[routes]]\nmodel = \"m\"\nretries = 0\ntargets = [{{ provider = \"a\" }}, {{ provider = \"b\" }}]\n",
        openai("a", &provider.url()),
        openai("b", &provider.url())
    );
    let gateway = gateway(&text).await;
    let small = call(&gateway).await;
    assert_eq!(small.header("x-fuseline-attempts"), "2");
    let body = format!("{{\"model\":\"m\",\"messages\":[\"{}\"]}}", "x".repeat(100));
    let large = send(gateway.addr(), post(CHAT, body)).await;
    assert_eq!(large.header("x-fuseline-attempts"), "1");
    assert!(
        large.header("x-fuseline-why").contains("replay_memory"),
        "{:?}",
        large.headers
    );
}

#[tokio::test]
async fn the_replay_memory_is_for_all_calls_together_and_is_given_back() {
    let stalled = mock(Reply::stall()).await;
    let failing = mock(Reply::status(503)).await;
    let body = |model: &str| {
        format!(
            "{{\"model\":\"{model}\",\"messages\":[\"{}\"]}}",
            "x".repeat(60)
        )
    };
    let text = format!(
        "replay_memory = \"150B\"\n{}{}{}[[routes]]\nmodel = \"s\"\ntargets = [{{ provider = \"s\" }}]\n[[routes]]\nmodel = \"m\"\nretries = 0\ntargets = [{{ provider = \"a\" }}, {{ provider = \"b\" }}]\n",
        openai("s", &stalled.url()),
        openai("a", &failing.url()),
        openai("b", &failing.url())
    );
    let gateway = gateway(&text).await;
    let holds = spawn(send(gateway.addr(), post(CHAT, body("s"))));
    stalled.wait_for_hits(1, SOON).await.unwrap();
    let attempts = async || {
        let answer = send(gateway.addr(), post(CHAT, body("m"))).await;
        answer.header("x-fuseline-attempts").to_owned()
    };
    assert_eq!(attempts().await, "1");
    holds.abort();
    until(async || attempts().await == "2").await;
}

#[tokio::test]
async fn the_guides_route_does_what_it_shows() {
    let guide = include_str!("../../../../docs/guide/when-all-is-out.md");
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let answering = Rule::model("gpt-5-nano").sequence([Reply::ok(), Reply::status(503)]);
    let primary = mock(Script::from(Reply::status(503)).rule(answering)).await;
    let spare = mock(Script::from(Reply::ok())).await;
    let quick = "max_wait = \"300ms\"\nretries = 0\n";
    let text = format!(
        "{}{}{}[breaker]\ntrip = [{{ rule = \"consecutive\", failures = 2 }}]\n",
        openai("primary", &primary.url()),
        openai("spare", &spare.url()),
        shown.replace("max_wait = \"10s\"\n", quick)
    );
    assert!(text.contains(quick));
    let gateway = gateway(&text).await;
    let ask = async || {
        let answer = send(gateway.addr(), post(CHAT, r#"{"model":"gpt-5"}"#)).await;
        let target = answer.header("x-fuseline-target").to_owned();
        (answer.header("x-fuseline-degraded").to_owned(), target)
    };
    let said = |degraded: &str, target: &str| (degraded.to_owned(), target.to_owned());
    assert_eq!(ask().await, said("", "spare/llama-3.3-70b-versatile"));
    spare.set(Reply::status(503)).await.unwrap();
    assert_eq!(ask().await, said("target", "primary/gpt-5-nano"));
    assert_eq!(ask().await, said("cache", "none"));
}
