//! What an answer means decides where a call goes: bodies are read, successes looked into, rate limits waited for.

use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Rule, Script};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::support::{
    Answer, CHAT, SOON, breaker, chat, gateway, open, openai, post, route, send, spawn, stream,
    until, within,
};

/// Opens at the first failure, and for long.
const TOUCHY: &str = "[breaker]\ncooldown = \"60s\"\njitter = 0.0\ntrip = [{ rule = \"consecutive\", failures = 1 }]\n";

struct Pair {
    a: Mock,
    b: Mock,
    gateway: Gateway,
}

/// `a` before `b`, which is well.
async fn pair(a: impl Into<Script>, breaker: &str) -> Pair {
    let (a, b) = (
        Mock::start(a).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let providers = openai("a", &a.url()) + &openai("b", &b.url());
    let gateway = gateway(&format!("{providers}{}{breaker}", route(&["a", "b"]))).await;
    Pair { a, b, gateway }
}

async fn alone(a: &Mock, retries: u32, rest: &str) -> Gateway {
    let route = route(&["a"]).replace("retries = 0", &format!("retries = {retries}"));
    gateway(&format!("{}{route}{rest}", openai("a", &a.url()))).await
}

async fn call(gateway: &Gateway) -> Answer {
    send(gateway.addr(), chat()).await
}

async fn state(gateway: &Gateway, name: &str) -> String {
    breaker(gateway, name).await["state"]
        .as_str()
        .unwrap_or("none")
        .to_owned()
}

fn ok(body: &str) -> Reply {
    Reply::ok().body(body.to_owned())
}

#[tokio::test]
async fn report_22_overload_and_unlisted_statuses_fall_over_and_open() {
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    for (status, kind) in [
        (529, "overloaded"),
        (520, "overloaded"),
        (599, "overloaded"),
    ] {
        let failing = Reply::status(status).body(overloaded);
        let Pair { a, b, gateway } = pair(failing, TOUCHY).await;
        let answer = call(&gateway).await;
        assert_eq!((answer.status.as_u16(), a.hits(), b.hits()), (200, 1, 1));
        let why = answer.header("x-fuseline-why");
        assert!(why.contains(kind), "{status}: {why}");
        assert_eq!(state(&gateway, "a/m").await, "open", "{status}");
    }
}

#[tokio::test]
async fn report_24_spent_quota_puts_its_key_aside_and_a_rate_limit_does_not() {
    let spent =
        r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}"#;
    let script =
        Script::always(Reply::ok()).rule(Rule::key("one").reply(Reply::status(429).body(spent)));
    let a = Mock::start(script).await.unwrap();
    let keys = openai("a", &a.url()).replace("\"key-of-a\"", "[\"one\", \"two\"]");
    let text = format!(
        "{keys}{}",
        route(&["a"]).replace("retries = 0", "retries = 3")
    );
    let gateway = gateway(&text).await;
    for _ in 0..3 {
        assert_eq!(call(&gateway).await.status, 200);
    }
    let with = |key: &str| {
        let requests = a.requests();
        let is_with = |header: Option<&str>| header == Some(&format!("Bearer {key}"));
        requests
            .iter()
            .filter(|request| is_with(request.header("authorization")))
            .count()
    };
    assert_eq!((with("one"), with("two")), (1, 3));
    assert_eq!(state(&gateway, "a").await, "closed");
    assert_eq!(breaker(&gateway, "a").await["run"], 0);
}

#[tokio::test]
async fn report_25_one_callers_mistakes_arrive_as_they_came_and_open_nothing() {
    let long = r#"{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    let script =
        Script::always(Reply::ok()).rule(Rule::model("long").reply(Reply::status(400).body(long)));
    let a = Mock::start(script).await.unwrap();
    let gateway = alone(&a, 1, TOUCHY).await;
    for _ in 0..20 {
        let request = post(CHAT, r#"{"model":"long"}"#);
        let answer = send(gateway.addr(), request).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (400, long.as_bytes())
        );
        assert_eq!(call(&gateway).await.status, 200);
    }
    assert_eq!(
        breaker(&gateway, "a/long").await["state"]
            .as_str()
            .unwrap_or("closed"),
        "closed"
    );
    assert_eq!(state(&gateway, "a").await, "closed");
}

#[tokio::test]
async fn report_28_an_error_in_a_200_falls_over_and_alone_gets_its_own_status() {
    let body = r#"{"error":{"code":429,"message":"x"}}"#;
    let Pair { a, b, gateway } = pair(ok(body), TOUCHY).await;
    assert_eq!(call(&gateway).await.header("x-fuseline-target"), "b/m");
    assert_eq!((a.hits(), b.hits()), (1, 1));
    let gateway = alone(&a, 0, TOUCHY).await;
    let answer = call(&gateway).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (429, body.as_bytes())
    );
    assert!(answer.header("x-fuseline-why").contains("rate_limit"));
}

#[tokio::test]
async fn report_31_a_200_with_nothing_to_use_falls_over_and_counts() {
    for body in [
        "",
        " \n",
        r#"{"choices":[]}"#,
        r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":0}}"#,
        "<!DOCTYPE html><html><body>Sign in to the network</body></html>",
    ] {
        let Pair { a, b, gateway } = pair(ok(body), TOUCHY).await;
        let answer = call(&gateway).await;
        assert_eq!(answer.header("x-fuseline-target"), "b/m", "{body}");
        assert_eq!((a.hits(), b.hits()), (1, 1), "{body}");
        assert_eq!(call(&gateway).await.header("x-fuseline-attempts"), "1");
        assert_eq!(a.hits(), 1, "{body}: it has opened");
    }
}

#[tokio::test]
async fn what_nobody_knows_and_what_says_little_is_a_success() {
    for body in [
        r#"{"text":"x"}"#,
        "plain text",
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#,
        r#"{"data":[{"embedding":[0.5]}]}"#,
    ] {
        let Pair { a, b, gateway } = pair(ok(body), TOUCHY).await;
        let answer = call(&gateway).await;
        assert_eq!(&answer.body[..], body.as_bytes());
        assert_eq!((a.hits(), b.hits()), (1, 0), "{body}");
    }
}

#[tokio::test]
async fn a_coded_body_is_judged_by_its_status() {
    // The bytes are no gzip, and one of them looks like a page's beginning.
    let coded = |status| {
        Reply::status(status)
            .header("content-encoding", "gzip")
            .body("<\0\0")
    };
    let Pair { a, b, gateway } = pair(coded(200), TOUCHY).await;
    let answer = call(&gateway).await;
    assert_eq!(
        (&answer.body[..], a.hits(), b.hits()),
        (&b"<\0\0"[..], 1, 0)
    );
    a.set(coded(500)).await.unwrap();
    assert_eq!(call(&gateway).await.header("x-fuseline-target"), "b/m");
}

#[tokio::test]
async fn a_long_error_is_judged_by_its_beginning_and_arrives_whole() {
    let body = format!(
        r#"{{"error":{{"type":"insufficient_quota","message":"{}"}}}}"#,
        "x".repeat(200_000)
    );
    let a = Mock::start(Reply::status(400).body(body.clone()))
        .await
        .unwrap();
    let gateway = alone(&a, 1, "").await;
    let answer = call(&gateway).await;
    assert_eq!(
        (answer.status.as_u16(), answer.body.len()),
        (400, body.len())
    );
    assert!(answer.body == body.as_bytes());
    assert!(answer.header("x-fuseline-why").contains("quota_exhausted"));
    assert_eq!(call(&gateway).await.json()["error"]["code"], "circuit_open");
    assert_eq!(a.hits(), 1);
}

#[tokio::test]
async fn a_failing_head_of_events_is_a_failure_with_its_body() {
    let spent = "event: error\ndata: {\"error\":{\"code\":\"insufficient_quota\"}}\n\n";
    let failing = Reply::status(429)
        .header("content-type", "text/event-stream")
        .body(spent);
    let Pair { a, b, gateway } = pair(failing, TOUCHY).await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!((answer.status.as_u16(), a.hits(), b.hits()), (200, 1, 1));
}

#[tokio::test]
async fn rules_are_chosen_by_name_where_the_address_tells_nothing() {
    // To Groq alone a 498 is a lack of capacity.
    let a = Mock::start(Reply::status(498).body("{}")).await.unwrap();
    for (rules, kind) in [("", "bad_request"), ("rules = \"groq\"\n", "overloaded")] {
        let text = format!("{}{rules}{}", openai("a", &a.url()), route(&["a"]));
        let answer = call(&gateway(&text).await).await;
        let why = answer.header("x-fuseline-why").to_owned();
        assert!(why.contains(kind), "{rules}: {why}");
    }
}

#[tokio::test]
async fn report_33_leaving_a_stream_counts_for_nothing() {
    let a = Mock::start(Reply::ok().events(100).gap(Duration::from_millis(20)))
        .await
        .unwrap();
    let gateway = alone(&a, 0, TOUCHY).await;
    for _ in 0..10 {
        let mut answer = open(gateway.addr(), stream()).await;
        for _ in 0..2 {
            within(answer.body_mut().frame()).await.unwrap().unwrap();
        }
    }
    until(async || a.left() == 10).await;
    a.set(Reply::ok()).await.unwrap();
    assert_eq!(call(&gateway).await.status, 200);
    assert_eq!(breaker(&gateway, "a/m").await["run"], 0);
    assert_eq!(state(&gateway, "a/m").await, "closed");
}

#[tokio::test]
async fn a_caller_who_leaves_after_long_silence_has_met_a_timeout() {
    for (limit, expected) in [("1ms", "open"), ("1m", "none")] {
        let a = Mock::start(Reply::stall()).await.unwrap();
        let gateway = {
            let text = format!("{}{}{TOUCHY}", openai("a", &a.url()), route(&["a"]));
            gateway(&format!("cancel_counts_after = \"{limit}\"\n{text}")).await
        };
        let left = spawn(send(gateway.addr(), chat()));
        a.wait_for_hits(1, SOON).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        left.abort();
        until(async || a.left() == 1).await;
        until(async || state(&gateway, "a/m").await == expected).await;
    }
}

#[tokio::test]
async fn report_36_a_wait_of_a_day_is_passed_on_and_not_obeyed() {
    let day = Reply::status(429).retry_after(86_400);
    let a = Mock::start(day.clone()).await.unwrap();
    let gateway = alone(&a, 3, "").await;
    let began = Instant::now();
    let answer = call(&gateway).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("retry-after")),
        (429, "86400")
    );
    assert_eq!(call(&gateway).await.status, 429);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(a.hits(), 1);

    let Pair { a, b, gateway } = pair(day, "").await;
    for _ in 0..3 {
        assert_eq!(call(&gateway).await.header("x-fuseline-target"), "b/m");
    }
    assert_eq!((a.hits(), b.hits()), (1, 3));
    let wait = breaker(&gateway, "a#0").await["retry_after_ms"].as_u64();
    assert!(wait.is_some_and(|wait| wait > 60_000), "{wait:?}");
}

#[tokio::test]
async fn report_39_a_hint_in_milliseconds_is_waited_for() {
    let soon = Reply::status(429).header("retry-after-ms", "150");
    let a = Mock::start(Script::sequence([soon.clone(), soon, Reply::ok()]))
        .await
        .unwrap();
    let gateway = alone(&a, 5, TOUCHY).await;
    let began = Instant::now();
    let answer = call(&gateway).await;
    assert_eq!((answer.status.as_u16(), a.hits()), (200, 3));
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(state(&gateway, "a").await, "closed");
}

#[tokio::test]
async fn report_40_a_wrong_name_and_a_rate_limit_arrive_as_sent_and_open_nothing() {
    let script = Script::always(Reply::status(429).header("retry-after-ms", "50"))
        .rule(Rule::model("typo").reply(Reply::status(404)));
    let a = Mock::start(script).await.unwrap();
    let gateway = alone(&a, 0, TOUCHY).await;
    for _ in 0..30 {
        let request = post(CHAT, r#"{"model":"typo"}"#);
        assert_eq!(send(gateway.addr(), request).await.status, 404);
    }
    for _ in 0..3 {
        assert_eq!(call(&gateway).await.status, 429);
    }
    assert_eq!(a.hits(), 33, "the wait of one is sat out by the next");
    for name in ["a", "a#0"] {
        assert_eq!(state(&gateway, name).await, "closed", "{name}");
    }
}

#[tokio::test]
async fn report_42_a_proxys_408_is_tried_again() {
    let timeout = Reply::status(408).body(r#"{"error":{"code":"request_timeout"}}"#);
    let a = Mock::start(Script::sequence([timeout, Reply::ok()]))
        .await
        .unwrap();
    let gateway = alone(&a, 1, "").await;
    let answer = call(&gateway).await;
    assert_eq!((answer.status.as_u16(), a.hits()), (200, 2));
}

#[tokio::test]
async fn a_call_that_meets_a_held_key_waits_for_it_or_goes_elsewhere() {
    // The hint stands in the body alone.
    let busy = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.4s"}]}}"#;
    let script = || Script::sequence([Reply::status(429).body(busy), Reply::ok()]);
    let a = Mock::start(script()).await.unwrap();
    let gateway = alone(&a, 0, "").await;
    assert_eq!(call(&gateway).await.status, 429);
    let began = Instant::now();
    let answer = call(&gateway).await;
    assert_eq!((answer.status.as_u16(), a.hits()), (200, 2));
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(answer.header("x-fuseline-why").contains("held"));

    let Pair { a, b, gateway } = pair(script(), "").await;
    for _ in 0..2 {
        assert_eq!(call(&gateway).await.header("x-fuseline-target"), "b/m");
    }
    assert_eq!((a.hits(), b.hits()), (1, 2));
}

#[tokio::test]
async fn a_hold_beyond_max_wait_is_refused_with_its_wait() {
    let limited = Reply::status(429).retry_after(2);
    let a = Mock::start(limited).await.unwrap();
    let text = format!(
        "{}{}max_wait = \"1s\"\n[breaker]\ncooldown = \"1s\"\njitter = 0.0\n",
        openai("a", &a.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    assert_eq!(call(&gateway).await.status, 429);
    let answer = call(&gateway).await;
    assert_eq!((answer.status.as_u16(), a.hits()), (429, 1));
    assert_eq!(answer.json()["error"]["code"], "circuit_open");
    assert_eq!(answer.header("retry-after"), "2");
}

#[tokio::test]
async fn spent_quota_rests_its_key_until_the_reset_that_is_stated_within_the_cap() {
    let spent = r#"{"error":{"code":"insufficient_quota","message":"x"}}"#;
    let bare = Reply::status(429).body(spent);
    for (reply, least, most) in [
        (bare.clone(), 590, 660),
        (bare.clone().retry_after(1_800), 1_790, 1_980),
        (bare.retry_after(864_000), 3_590, 3_960),
    ] {
        let a = Mock::start(reply).await.unwrap();
        let gateway = alone(&a, 3, "").await;
        assert_eq!(call(&gateway).await.status, 429);
        let wait = breaker(&gateway, "a#0").await["retry_after_ms"].as_u64();
        let seconds = wait.unwrap_or_default() / 1_000;
        assert!((least..=most).contains(&seconds), "{seconds} s");
        assert_eq!(call(&gateway).await.header("x-fuseline-attempts"), "0");
        assert_eq!(
            (a.hits(), state(&gateway, "a").await.as_str()),
            (1, "closed")
        );
    }
}

#[tokio::test]
async fn rules_of_ones_own_fail_a_200_at_the_providers_that_go_by_them() {
    let shed = r#"{"choices":[{"message":{"content":"Busy."}}],"x_shed":"true"}"#;
    let (a, b) = (
        Mock::start(ok(shed)).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let own = "[[classify.rules]]\nid = \"shed\"\nproviders = [\"house\"]\n\
               when = { status = [200], field = { \"/x_shed\" = \"true\" } }\nthen = { kind = \"overloaded\" }\n";
    for (rules, fallback) in [("rules = \"house\"\n", 1), ("", 0)] {
        let (a_hits, b_hits) = (a.hits(), b.hits());
        let providers = openai("a", &a.url()) + rules + &openai("b", &b.url());
        let gateway = gateway(&format!("{providers}{}{own}", route(&["a", "b"]))).await;
        let answer = call(&gateway).await;
        assert_eq!(answer.status, 200);
        let hits = (a.hits() - a_hits, b.hits() - b_hits);
        assert_eq!(hits, (1, fallback), "{}", answer.header("x-fuseline-why"));
        assert_eq!(
            answer.header("x-fuseline-why").contains("own/shed"),
            fallback == 1
        );
    }
}
