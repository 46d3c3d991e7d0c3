//! Calls that wait in the queue: stored before they are acknowledged, sent in order under the breaker, fetched by their
//! caller and by nobody else.

mod crashes;
mod keeping;
mod room;
mod shared;

use std::path::Path;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Script};
use http::header::AUTHORIZATION;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;

use crate::support::{Answer, CHAT, config_with, get, openai, post, send, until};

/// Open after one failure, and soon probed.
const TOUCHY: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\ncooldown = \"200ms\"\nbackoff = 1.0\njitter = 0.0\nsuccesses_to_close = 1\n";
/// Open for longer than a test lasts.
const DEAD: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\ncooldown = \"1h\"\nmax_cooldown = \"1h\"\n";

/// One provider, and a route that queues.
fn one(mock: &Mock) -> String {
    format!(
        "{}[[routes]]\nmodel = \"*\"\nretries = 0\ntargets = [{{ provider = \"a\" }}]\non_exhausted = [\"queue\"]\n",
        openai("a", &mock.url())
    )
}

async fn gateway(folder: &Path, text: &str) -> Gateway {
    let state = folder.join("fuseline.db");
    let config = config_with(state.to_str().unwrap(), text);
    Gateway::start(config).await.unwrap()
}

/// A folder, a provider that is down, and a gateway before it.
async fn outage(more: &str) -> (tempfile::TempDir, Mock, Gateway) {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(folder.path(), &format!("{}{more}", one(&mock))).await;
    (folder, mock, gateway)
}

fn ask(name: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{name}"}}]}}"#)
}

/// Somebody's call.
fn call(who: &str, name: &str) -> Request<Full<bytes::Bytes>> {
    let mut request = post(CHAT, ask(name));
    let shown = format!("Bearer {who}").parse().unwrap();
    request.headers_mut().insert(AUTHORIZATION, shown);
    request
}

/// Queues somebody's call, and gives back where its answer will be.
async fn queue(gateway: &Gateway, who: &str, name: &str) -> String {
    let answer = send(gateway.addr(), call(who, name)).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.header("location").to_owned()
}

async fn on(method: Method, gateway: &Gateway, who: &str, place: &str) -> Answer {
    let mut request = get(place);
    *request.method_mut() = method;
    let shown = format!("Bearer {who}").parse().unwrap();
    request.headers_mut().insert(AUTHORIZATION, shown);
    send(gateway.addr(), request).await
}

async fn fetch(gateway: &Gateway, who: &str, place: &str) -> Answer {
    on(Method::GET, gateway, who, place).await
}

/// Fetches until there is an answer.
async fn answer(gateway: &Gateway, who: &str, place: &str) -> Answer {
    until(async || fetch(gateway, who, place).await.status != 202).await;
    fetch(gateway, who, place).await
}

/// The questions of the requests that a provider got, in order.
fn asked(mock: &Mock) -> Vec<String> {
    let requests = mock.requests();
    let question = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    requests
        .iter()
        .map(|request| question(&request.body))
        .collect()
}

/// A number on the metrics page.
async fn metric(gateway: &Gateway, name: &str) -> u64 {
    let page = send(gateway.admin_addr(), get("/metrics")).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let name = format!("{name} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name}: {page}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn calls_of_an_outage_are_answered_in_order_once_it_is_over() {
    let (_folder, mock, gateway) = outage(TOUCHY).await;
    let first = send(gateway.addr(), call("me", "one")).await;
    assert_eq!(first.status, 202);
    assert_eq!(first.header("x-fuseline-degraded"), "queue");
    assert_eq!(first.header("x-fuseline-attempts"), "1");
    let body = first.json();
    let place = body["url"].as_str().unwrap().to_owned();
    assert_eq!(place, first.header("location"));
    assert_eq!(
        place,
        format!("/fuseline/queue/{}", body["id"].as_str().unwrap())
    );
    assert!(first.header("x-fuseline-why").contains("queued as q-"));
    let mut places = vec![place];
    for name in ["two", "three", "four"] {
        places.push(queue(&gateway, "me", name).await);
    }
    let waits = fetch(&gateway, "me", &places[3]).await;
    assert_eq!(
        (waits.status.as_u16(), waits.header("retry-after")),
        (202, "2")
    );
    assert_eq!(waits.header("x-fuseline-queue"), "queued");
    assert_eq!(waits.json()["ahead"], 3, "{waits:?}");
    assert_eq!(metric(&gateway, "queue_queued_total").await, 4);

    mock.set(Reply::ok().text("here you are")).await.unwrap();
    for place in &places {
        let answer = answer(&gateway, "me", place).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = &answer.json()["choices"][0]["message"]["content"];
        assert_eq!(text, "here you are");
        assert_eq!(answer.header("x-fuseline-queue"), "done");
        assert_eq!(answer.header("x-fuseline-target"), "a/m");
        assert_eq!(answer.header("content-type"), "application/json");
    }
    let asked = asked(&mock);
    let last = &asked[asked.len() - 4..];
    assert_eq!(last, ["one", "two", "three", "four"]);
    for (request, place) in mock.requests()[asked.len() - 4..].iter().zip(&places) {
        let id = place.rsplit('/').next();
        assert_eq!(request.header("idempotency-key"), id);
        assert_eq!(request.header("authorization"), Some("Bearer key-of-a"));
    }
    assert_eq!(metric(&gateway, "queue_sent_total").await, 4);
    until(async || metric(&gateway, "queue_waiting").await == 0).await;
}

#[tokio::test]
async fn only_the_tenant_that_queued_a_call_can_read_or_remove_it() {
    let (_folder, mock, gateway) = outage(TOUCHY).await;
    let place = queue(&gateway, "me", "mine").await;
    let other = queue(&gateway, "another", "another's").await;
    for (who, place) in [("another", &place), ("me", &other), ("", &place)] {
        let answer = fetch(&gateway, who, place).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.json()["error"]["code"], "not_found");
        let removed = on(Method::DELETE, &gateway, who, place).await;
        assert_eq!(removed.status, 404);
    }
    let unknown = "/fuseline/queue/q-00000000000000000000000000000000";
    let nothing = fetch(&gateway, "me", unknown).await;
    let foreign = fetch(&gateway, "another", &place).await;
    assert_eq!(nothing.body, foreign.body, "it tells nothing");
    mock.set(Reply::ok()).await.unwrap();
    assert_eq!(answer(&gateway, "me", &place).await.status, 200);
    assert_eq!(fetch(&gateway, "another", &place).await.status, 404);
    let bare = send(gateway.addr(), get(&place)).await;
    assert_eq!(bare.status, 404);
    let removed = on(Method::DELETE, &gateway, "me", &place).await;
    assert_eq!(
        (removed.status.as_u16(), &removed.json()["status"]),
        (200, &"removed".into())
    );
    assert_eq!(fetch(&gateway, "me", &place).await.status, 404);
}

#[tokio::test]
async fn a_removed_call_is_not_sent() {
    let (_folder, mock, gateway) = outage(DEAD).await;
    queue(&gateway, "me", "one").await;
    let place = queue(&gateway, "me", "two").await;
    let removed = on(Method::DELETE, &gateway, "me", &place).await;
    assert_eq!(removed.status, 200);
    let last = queue(&gateway, "me", "three").await;
    mock.set(Reply::ok()).await.unwrap();
    for breaker in gateway.registry().breakers() {
        breaker.reset(gateway.registry().now());
    }
    assert_eq!(answer(&gateway, "me", &last).await.status, 200);
    assert_eq!(asked(&mock)[1..], ["one", "three"]);
}

#[tokio::test]
async fn a_stream_is_collected_and_given_out_as_it_came() {
    let (_folder, mock, gateway) = outage(TOUCHY).await;
    let body = r#"{"model":"m","stream":true,"messages":[]}"#;
    let queued = send(gateway.addr(), post(CHAT, body)).await;
    assert_eq!(queued.status, 202);
    assert_eq!(queued.header("content-type"), "application/json");
    // The first sending breaks off in the middle, and is repeated: its caller has seen nothing of it.
    let replies = [
        Reply::ok().events(9).cut_after(3),
        Reply::ok().text("a b c"),
    ];
    mock.set(Script::sequence(replies)).await.unwrap();
    let place = queued.header("location").to_owned();
    let request = || get(&place);
    until(async || send(gateway.addr(), request()).await.status != 202).await;
    let answer = send(gateway.addr(), request()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        "text/event-stream; charset=utf-8"
    );
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(!text.contains("error"), "{text}");
}

#[tokio::test]
async fn a_queue_that_is_full_refuses_and_says_so() {
    let more = format!("{DEAD}[queue]\nmax_calls = 2\n");
    let (_folder, _mock, gateway) = outage(&more).await;
    queue(&gateway, "me", "one").await;
    queue(&gateway, "me", "two").await;
    let refused = send(gateway.addr(), call("me", "three")).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["code"], "circuit_open");
    let why = refused.header("x-fuseline-why");
    assert!(why.contains("not queued, the queue is full"), "{why}");
    assert_eq!(metric(&gateway, "queue_refused_total").await, 1);
    until(async || metric(&gateway, "queue_waiting").await == 2).await;
}

#[tokio::test]
async fn what_is_too_long_is_not_queued_and_a_long_answer_is_an_error() {
    let more = format!("{TOUCHY}[queue]\nmax_entry = \"1KiB\"\n");
    let (_folder, mock, gateway) = outage(&more).await;
    let refused = send(gateway.addr(), call("me", &"x".repeat(2_000))).await;
    assert_eq!(refused.status, 503);
    let why = refused.header("x-fuseline-why");
    assert!(
        why.contains("not queued, longer than queue.max_entry"),
        "{why}"
    );
    let place = queue(&gateway, "me", "short").await;
    mock.set(Reply::ok().text("y".repeat(2_000))).await.unwrap();
    let answer = answer(&gateway, "me", &place).await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.json()["error"]["code"], "result_too_long");
}

#[tokio::test]
async fn a_call_that_waits_for_too_long_expires_and_is_forgotten() {
    let more = format!("{DEAD}[queue]\nexpires = \"150ms\"\nttl = \"400ms\"\n");
    let (_folder, mock, gateway) = outage(&more).await;
    let place = queue(&gateway, "me", "one").await;
    let answer = answer(&gateway, "me", &place).await;
    assert_eq!(answer.status, 410);
    assert_eq!(answer.json()["error"]["code"], "queue_expired");
    until(async || metric(&gateway, "queue_expired_total").await == 1).await;
    until(async || fetch(&gateway, "me", &place).await.status == 404).await;
    until(async || metric(&gateway, "queue_bytes").await == 0).await;
    assert_eq!(mock.hits(), 1);
}

#[tokio::test]
async fn a_result_is_forgotten_after_its_ttl() {
    let more = format!("{TOUCHY}[queue]\nttl = \"500ms\"\n");
    let (_folder, mock, gateway) = outage(&more).await;
    let place = queue(&gateway, "me", "one").await;
    mock.set(Reply::ok()).await.unwrap();
    let answer = answer(&gateway, "me", &place).await;
    assert_eq!(answer.status, 200);
    until(async || fetch(&gateway, "me", &place).await.status == 404).await;
}

#[tokio::test]
async fn what_is_the_callers_to_mend_is_his_result() {
    let (_folder, mock, gateway) = outage(TOUCHY).await;
    let place = queue(&gateway, "me", "one").await;
    let next = queue(&gateway, "me", "two").await;
    let replies = [Reply::status(400), Reply::ok()];
    mock.set(Script::sequence(replies)).await.unwrap();
    assert_eq!(answer(&gateway, "me", &place).await.status, 400);
    assert_eq!(answer(&gateway, "me", &next).await.status, 200);
}

#[tokio::test]
async fn a_call_that_fails_while_its_circuit_is_closed_has_so_many_attempts() {
    let calm =
        "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 100 }]\n[queue]\nattempts = 2\n";
    let (_folder, mock, gateway) = outage(calm).await;
    let place = queue(&gateway, "me", "one").await;
    let answer = answer(&gateway, "me", &place).await;
    assert_eq!(answer.status, 503, "its last answer");
    assert_eq!(answer.header("x-fuseline-queue"), "done");
    assert_eq!(metric(&gateway, "queue_failed_total").await, 1);
    assert_eq!(mock.hits(), 1 + 2);
}

#[tokio::test]
async fn a_call_by_the_same_name_is_queued_once() {
    let (_folder, _mock, gateway) = outage(DEAD).await;
    let named = |who| {
        let mut request = call(who, "one");
        let name = "my-own-name".parse().unwrap();
        request.headers_mut().insert("idempotency-key", name);
        request
    };
    let place = async |who| {
        let answer = send(gateway.addr(), named(who)).await;
        assert_eq!(answer.status, 202);
        answer.header("location").to_owned()
    };
    let first = place("me").await;
    assert_eq!(place("me").await, first, "an SDK repeats it");
    assert_ne!(place("another").await, first);
    assert_eq!(metric(&gateway, "queue_queued_total").await, 2);
}

#[tokio::test]
async fn whoever_wants_no_fallback_is_not_queued() {
    let (_folder, _mock, gateway) = outage(DEAD).await;
    let mut request = call("me", "one");
    let off = "off".parse().unwrap();
    request.headers_mut().insert("x-fuseline-fallback", off);
    assert_eq!(send(gateway.addr(), request).await.status, 503);
    assert_eq!(metric(&gateway, "queue_queued_total").await, 0);
}

#[tokio::test]
async fn queued_calls_go_to_targets_with_a_key_of_the_gateways_own_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let spare = Mock::start(Reply::status(503)).await.unwrap();
    let callers = openai("b", &spare.url()).replace("api_key = \"key-of-b\"", "auth = \"caller\"");
    let text = one(&mock).replace(
        "{ provider = \"a\" }",
        "{ provider = \"b\" }, { provider = \"a\" }",
    );
    let gateway = gateway(folder.path(), &format!("{callers}{text}{TOUCHY}")).await;
    let place = queue(&gateway, "me", "one").await;
    spare.set(Reply::ok()).await.unwrap();
    mock.set(Reply::ok()).await.unwrap();
    let answer = answer(&gateway, "me", &place).await;
    assert_eq!(answer.header("x-fuseline-target"), "a/m");
    assert_eq!(spare.hits(), 1, "the caller's own call");
}

#[tokio::test]
async fn the_guides_route_queues_and_the_answer_is_fetched() {
    let guide = include_str!("../../../../docs/guide/when-all-is-out.md");
    let (_, rest) = guide.rsplit_once("```toml\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let text = format!("{}{shown}{TOUCHY}", openai("primary", &mock.url()));
    let gateway = gateway(folder.path(), &text).await;
    let queued = send(gateway.addr(), post(CHAT, r#"{"model":"batch-1"}"#)).await;
    assert_eq!(queued.status, 202);
    let place = queued.header("location").to_owned();
    mock.set(Reply::ok()).await.unwrap();
    until(async || send(gateway.addr(), get(&place)).await.status == 200).await;
    assert_eq!(
        mock.requests().last().unwrap().model.as_deref(),
        Some("gpt-5")
    );
}

#[tokio::test]
async fn report_82_what_may_be_running_at_two_targets_is_not_queued() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (
        Mock::start(Reply::stall()).await,
        Mock::start(Reply::stall()).await,
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    let text = one(&first).replace(
        "{ provider = \"a\" }",
        "{ provider = \"a\" }, { provider = \"b\" }",
    );
    let text = format!(
        "{}{text}[timeouts]\nanswer = \"150ms\"\n",
        openai("b", &second.url())
    );
    let gateway = gateway(folder.path(), &text).await;
    let answer = send(gateway.addr(), call("me", "one")).await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert!(
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("unknown outcome")
    );
    assert_eq!((first.hits(), second.hits()), (1, 1));
    assert_eq!(metric(&gateway, "queue_queued_total").await, 0);
}
