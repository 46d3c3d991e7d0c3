//! The last good answers: what is kept, for whom, how long, and how it is given out.

mod canaries;

use std::time::Duration;

use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use crate::support::{
    Answer, CHAT, chat, config, gateway, open, openai, post, provider, send, stream, until,
};

const ROUTE: &str = "[[routes]]\nmodel = \"*\"\nretries = 0\ntargets = [{ provider = \"a\" }]\non_exhausted = [\"cache\"]\n";

async fn pair(reply: Reply, protocol: &str, more: &str) -> (Mock, Gateway) {
    let mock = Mock::start(reply).await.unwrap();
    let provider = provider("a", protocol, &mock.url());
    let gateway = gateway(&format!("{provider}{ROUTE}{more}")).await;
    (mock, gateway)
}

/// A good answer, and then what the same request gets once the provider is out.
async fn kept(
    mock: &Mock,
    gateway: &Gateway,
    good: Request<Full<Bytes>>,
    then: Request<Full<Bytes>>,
) -> [Answer; 2] {
    let good = send(gateway.addr(), good).await;
    assert_eq!(good.status, 200);
    mock.set(Reply::status(503)).await.unwrap();
    [good, send(gateway.addr(), then).await]
}

fn as_caller(key: &'static str, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let value = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

#[tokio::test]
async fn the_last_good_answer_is_given_out_byte_for_byte_and_marked() {
    let reply = Reply::ok()
        .text("Because.")
        .header("set-cookie", "session=1");
    let (mock, gateway) = pair(reply, "openai", "").await;
    let [good, answer] = kept(&mock, &gateway, chat(), chat()).await;
    assert_eq!(good.header("x-fuseline-degraded"), "");
    assert_eq!(good.header("age"), "");
    assert_eq!((answer.status.as_u16(), &answer.body), (200, &good.body));
    assert_eq!(answer.header("content-type"), good.header("content-type"));
    assert_eq!(answer.header("x-fuseline-degraded"), "cache");
    assert_eq!(answer.header("age"), "0");
    assert_eq!(answer.header("x-fuseline-target"), "none");
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("answered from the cache, 0 s old")
    );
    assert_eq!(good.header("set-cookie"), "session=1");
    assert_eq!(
        answer.header("set-cookie"),
        "",
        "only what describes the body is kept"
    );
    assert_eq!(mock.hits(), 2, "the provider was asked first");
}

#[tokio::test]
async fn a_newer_answer_takes_the_place_of_the_older_one() {
    let (mock, gateway) = pair(Reply::ok().text("old"), "openai", "").await;
    send(gateway.addr(), chat()).await;
    mock.set(Reply::ok().text("new")).await.unwrap();
    let [good, answer] = kept(&mock, &gateway, chat(), chat()).await;
    assert_eq!(answer.body, good.body);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "new");
}

#[tokio::test]
async fn without_a_route_that_asks_for_it_nothing_is_kept() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let route = ROUTE.replace("\"cache\"", "");
    let gateway = gateway(&format!("{}{route}", openai("a", &mock.url()))).await;
    let [_, answer] = kept(&mock, &gateway, chat(), chat()).await;
    assert_eq!(answer.status, 503);
}

#[tokio::test]
async fn a_stream_is_replayed_as_it_came_to_who_asks_for_one() {
    for (protocol, request) in [
        ("openai", stream as fn() -> Request<Full<Bytes>>),
        ("anthropic", messages_stream),
    ] {
        let (mock, gateway) = pair(Reply::ok().text("a b c"), protocol, "").await;
        let [good, answer] = kept(&mock, &gateway, request(), request()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body),
            (200, &good.body),
            "{protocol}"
        );
        assert_eq!(answer.header("content-type"), good.header("content-type"));
        assert_eq!(answer.header("x-fuseline-degraded"), "cache");
        assert_eq!(answer.header("x-accel-buffering"), "no");
    }
}

fn messages(more: &str) -> Request<Full<Bytes>> {
    let body = format!("{{\"model\":\"m\",\"messages\":[],\"max_tokens\":9{more}}}");
    post("/v1/messages", body)
}

fn messages_stream() -> Request<Full<Bytes>> {
    messages(",\"stream\":true")
}

#[tokio::test]
async fn a_plain_answer_becomes_one_clean_stream() {
    let (mock, gateway) = pair(Reply::ok().text("Because."), "openai", "").await;
    let [good, answer] = kept(&mock, &gateway, chat(), stream()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("x-fuseline-degraded"), "cache");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let first: Value =
        serde_json::from_str(text.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(first["id"], good.json()["id"]);
    assert_eq!(first["choices"][0]["delta"]["content"], "Because.");
    assert!(text.ends_with("data: [DONE]\n\n"));

    let (mock, gateway) = pair(Reply::ok().text("Because."), "anthropic", "").await;
    let [_, answer] = kept(&mock, &gateway, messages(""), messages_stream()).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.contains("\"text\":\"Because.\""), "{text}");
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

#[tokio::test]
async fn a_stream_is_no_plain_answer() {
    let (mock, gateway) = pair(Reply::ok(), "openai", "").await;
    let [_, answer] = kept(&mock, &gateway, stream(), chat()).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("nothing in the cache")
    );
}

#[tokio::test]
async fn errors_and_cut_streams_are_not_kept() {
    let error_in_200 = Reply::ok().body(r#"{"error":{"message":"x","code":"server_error"}}"#);
    let silent = "[timeouts]\nstall = \"200ms\"\nidle = \"200ms\"\n";
    for (name, reply, request) in [
        (
            "429",
            Reply::status(429),
            chat as fn() -> Request<Full<Bytes>>,
        ),
        ("400", Reply::status(400), chat),
        ("an error inside a 200", error_in_200, chat),
        ("an empty answer", Reply::ok().body(""), chat),
        ("a cut stream", Reply::ok().events(5).cut_after(3), stream),
        (
            "a reset stream",
            Reply::ok().events(5).reset_after(3),
            stream,
        ),
        (
            "a silent stream",
            Reply::ok().events(5).stall_after(3),
            stream,
        ),
    ] {
        let (mock, gateway) = pair(reply, "openai", silent).await;
        let (_, body) = open(gateway.addr(), request()).await.into_parts();
        drop(body.collect().await);
        mock.set(Reply::status(503)).await.unwrap();
        let answer = send(gateway.addr(), request()).await;
        assert_eq!(answer.status, 503, "{name}");
        assert_eq!(answer.header("x-fuseline-degraded"), "", "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_its_caller_leaves_is_not_kept() {
    let reply = Reply::ok().events(50).gap(Duration::from_millis(20));
    let (mock, gateway) = pair(reply, "openai", "").await;
    let mut response = open(gateway.addr(), stream()).await;
    response.frame().await.unwrap().unwrap();
    drop(response);
    until(async || mock.in_flight() == 0).await;
    mock.set(Reply::status(503)).await.unwrap();
    assert_eq!(send(gateway.addr(), stream()).await.status, 503);
}

#[tokio::test]
async fn collecting_does_not_hold_a_stream_up() {
    let reply = Reply::ok().events(3).gap(Duration::from_millis(300));
    let (_mock, gateway) = pair(reply, "openai", "").await;
    let began = tokio::time::Instant::now();
    let mut response = open(gateway.addr(), stream()).await;
    response.frame().await.unwrap().unwrap();
    assert!(
        began.elapsed() < Duration::from_millis(600),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn what_is_too_long_or_too_old_is_not_given_out() {
    let long = Reply::ok().text("x".repeat(5_000));
    for request in [chat as fn() -> Request<Full<Bytes>>, stream] {
        let (mock, gateway) = pair(long.clone(), "openai", "[cache]\nmax_entry = \"4KiB\"\n").await;
        let [_, answer] = kept(&mock, &gateway, request(), request()).await;
        assert_eq!(answer.status, 503);
    }
    let (mock, gateway) = pair(Reply::ok(), "openai", "[cache]\nttl = \"50ms\"\n").await;
    send(gateway.addr(), chat()).await;
    mock.set(Reply::status(503)).await.unwrap();
    until(async || send(gateway.addr(), chat()).await.status == 503).await;
}

#[tokio::test]
async fn the_oldest_answers_leave_when_the_room_is_full() {
    let text = "x".repeat(2_000);
    let (mock, gateway) = pair(
        Reply::ok().text(text),
        "openai",
        "[cache]\nmax_bytes = \"8KiB\"\nmax_entry = \"4KiB\"\n",
    )
    .await;
    let numbered = |number: u32| post(CHAT, format!("{{\"model\":\"m\",\"n\":{number}}}"));
    for number in 0..9 {
        send(gateway.addr(), numbered(number)).await;
    }
    mock.set(Reply::status(503)).await.unwrap();
    let mut served = Vec::new();
    for number in 0..9 {
        let answer = send(gateway.addr(), numbered(number)).await;
        served.push(answer.status == 200);
    }
    assert!(!served[0] && served[8], "{served:?}");
    let count = served.iter().filter(|served| **served).count();
    assert!((2..=4).contains(&count), "{served:?}");
    assert!(served.is_sorted(), "the newest stay: {served:?}");
}

#[tokio::test]
async fn two_tenants_never_share_an_answer() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let tokens = "client_tokens = [\"one\", \"two\"]\n";
    let gateway = gateway(&format!("{tokens}{}{ROUTE}", openai("a", &mock.url()))).await;
    let one = || as_caller("one", chat());
    let [_, answer] = kept(&mock, &gateway, one(), as_caller("two", chat())).await;
    assert_eq!(
        answer.status, 503,
        "both use the gateway's key, and are two"
    );
    assert_eq!(
        send(gateway.addr(), one())
            .await
            .header("x-fuseline-degraded"),
        "cache"
    );
}

#[tokio::test]
async fn an_open_circuit_leads_to_the_cache_without_a_call() {
    let more = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\n";
    let (mock, gateway) = pair(Reply::ok(), "openai", more).await;
    kept(&mock, &gateway, chat(), chat()).await;
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(answer.header("x-fuseline-degraded"), "cache");
    assert_eq!(answer.header("x-fuseline-attempts"), "0");
    assert_eq!(mock.hits(), 2);
}

#[tokio::test]
async fn coded_answers_go_to_who_takes_their_coding() {
    let gzip = "1f8b0800000000000003"; // never read: the answer is no JSON without its coding
    let reply = Reply::ok()
        .body(gzip)
        .header("content-encoding", "x-unknown");
    let (mock, gateway) = pair(reply, "openai", "").await;
    let taking = |coding: &'static str| {
        let mut request = chat();
        let value = coding.parse().unwrap();
        request.headers_mut().insert("accept-encoding", value);
        request
    };
    let good = send(gateway.addr(), taking("x-unknown")).await;
    assert_eq!(good.status, 200);
    mock.set(Reply::status(503)).await.unwrap();
    let answer = send(gateway.addr(), taking("x-unknown")).await;
    assert_eq!(
        (&answer.body, answer.header("content-encoding")),
        (&good.body, "x-unknown")
    );
    assert_eq!(send(gateway.addr(), taking("identity")).await.status, 503);
}

#[test]
fn the_cache_has_bounds_unless_others_are_written() {
    let cache = config("").cache;
    assert_eq!((cache.max_bytes, cache.max_entry), (64 << 20, 1 << 20));
    assert_eq!(cache.ttl, Duration::from_secs(600));
}
