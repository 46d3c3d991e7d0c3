//! What the log says, and what it must not say.

use std::io;
use std::sync::{Arc, Mutex};

use fuseline_gateway::log::JsonLines;
use fuseline_mock::{Mock, Reply, Rule, Script};
use serde_json::Value;

use crate::support::{SOON, breaker, gateway, open, openai, post, route, send, stream, until};

/// Everything that was logged.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

/// A log as `serve` writes it.
pub(crate) fn json_log(lines: &Lines) -> impl tracing::Subscriber + Send + Sync + 'static {
    filtered_log(lines, "info")
}

/// The same, with the lines that these directives let pass.
pub(crate) fn filtered_log(
    lines: &Lines,
    filter: &str,
) -> impl tracing::Subscriber + Send + Sync + 'static {
    let writer = lines.clone();
    let log = tracing_subscriber::fmt()
        .event_format(JsonLines)
        .with_env_filter(filter);
    log.with_writer(move || writer.clone()).finish()
}

impl Lines {
    pub(crate) fn all(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap();
        bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    pub(crate) fn of(&self, message: &str) -> Vec<Value> {
        self.all()
            .into_iter()
            .filter(|line| line["message"] == message)
            .collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn one_line_a_call_one_a_transition_and_no_secret_at_any_level() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=trace"));

    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let base = format!("{}/v1?token=in-the-base", mock.url());
    let gateway = gateway(&format!("{}{}", openai("a", &base), route(&["a"]))).await;
    for _ in 0..6 {
        let mut request = post(
            "/v1/chat/completions?key=in-the-query",
            r#"{"model":"m","user":"in-the-body"}"#,
        );
        request
            .headers_mut()
            .insert("authorization", "Bearer of-the-caller".parse().unwrap());
        send(gateway.addr(), request).await;
    }
    let opens = |line: &Value| line["to"] == "open";
    until(async || lines.of("breaker").iter().any(opens)).await;

    let calls = lines.of("call");
    assert_eq!(calls.len(), 6);
    let (tried, refused) = (&calls[0], &calls[5]);
    assert!(tried["degraded"].is_null(), "{tried}");
    assert_eq!(
        (
            tried["status"].as_u64(),
            tried["kind"].as_str(),
            tried["attempts"].as_u64()
        ),
        (Some(503), Some("overloaded"), Some(1))
    );
    assert_eq!(
        (refused["kind"].as_str(), refused["breaker_state"].as_str()),
        (Some("local"), Some("open"))
    );
    let transitions = lines.of("breaker");
    let opened = transitions.iter().find(|line| opens(line)).unwrap();
    assert_eq!(
        (opened["breaker"].as_str(), opened["from"].as_str()),
        (Some("a/m"), Some("degraded"))
    );
    assert!(
        opened["why"]
            .as_str()
            .unwrap()
            .starts_with("consecutive 5/5"),
        "{opened}"
    );
    assert_eq!(tried["target"], "a/m");
    for line in lines.all() {
        let line = line.to_string();
        for secret in [
            "key-of-a",
            "of-the-caller",
            "in-the-query",
            "in-the-base",
            "in-the-body",
        ] {
            assert!(!line.contains(secret), "{line}");
        }
    }
}

#[tokio::test]
async fn report_131_an_address_at_which_nothing_is_found_is_logged_without_what_may_be_secret() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));
    let script = Script::always(Reply::status(404)).rule(Rule::model("there").reply(Reply::ok()));
    let mock = Mock::start(script).await.unwrap();
    let base = format!("{}/v4?key=in-the-base", mock.url());
    let gateway = gateway(&format!("{}{}", openai("a", &base), route(&["a"]))).await;
    for model in ["nowhere", "there"] {
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        let path = "/v1/chat/completions?x=in-the-query";
        send(gateway.addr(), post(path, body)).await;
    }
    let calls = lines.of("call");
    let url = format!("{}/v4/chat/completions", mock.url());
    assert_eq!(calls[0]["url"], url, "{calls:?}");
    assert_eq!(calls[1]["url"], Value::Null);
    let text = format!("{:?}", lines.all());
    assert!(!text.contains("in-the-"), "{text}");
    assert_eq!(breaker(&gateway, "a").await["run"].as_u64().unwrap_or(0), 0);
}

#[tokio::test]
async fn a_streams_line_says_how_it_ended_by_which_limit_and_what_it_cost() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));

    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let odd = "data: oops\n\n";
    let mock = Mock::start(Reply::ok().chunks([token, odd, token]).stall_after(2))
        .await
        .unwrap();
    let limits = "[timeouts]\nstall = \"200ms\"\n";
    let text = format!("{}{}{limits}", openai("a", &mock.url()), route(&["a"]));
    let gateway = gateway(&text).await;
    send(gateway.addr(), stream()).await;
    until(async || !lines.of("call").is_empty()).await;
    let line = lines.of("call").remove(0);
    assert_eq!(line["kind"], "stream_stall", "{line}");
    assert_eq!(line["stream"], "stream_stall");
    assert_eq!(
        (&line["input_tokens"], &line["output_tokens"]),
        (&3.into(), &2.into())
    );
    assert_eq!(line["left_out"], 1);
    assert!(line["first_token_ms"].is_u64());
    let why = line["why"].as_str().unwrap();
    assert!(why.contains("200ms (limit stall)"), "{why}");
    let broken = lines.of("a stream broke off").remove(0);
    assert_eq!(
        (&broken["level"], &broken["target"]),
        (&"WARN".into(), &"a/m".into())
    );
    assert_eq!(
        (&broken["ending"], &broken["events"]),
        (&"stream_stall".into(), &1.into())
    );
    assert_eq!(broken["request_id"], line["request_id"]);
    // The one token, and the event that tells of the failure.
    assert!(broken["bytes"].as_u64().unwrap() > token.len() as u64);
}

#[tokio::test]
async fn report_122_what_was_used_until_the_caller_left_is_logged() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let mock = Mock::start(Reply::ok().chunks([token, token]).stall_after(1))
        .await
        .unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    drop(open(gateway.addr(), stream()).await);
    until(async || !lines.of("call").is_empty()).await;
    let line = lines.of("call").remove(0);
    assert_eq!(
        (&line["kind"], &line["input_tokens"], &line["output_tokens"]),
        (&"cancelled".into(), &3.into(), &2.into()),
        "{line}"
    );
}

#[tokio::test]
async fn a_call_to_a_target_with_a_price_says_what_it_cost() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(json_log(&lines));

    let plain = r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"so"}}],"usage":{"prompt_tokens":1000,"completion_tokens":201}}"#;
    let last = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let script = Script::always(Reply::ok().body(plain))
        .rule(Rule::model("m").reply(Reply::ok().chunks([last])));
    let mock = Mock::start(script).await.unwrap();
    let (priced, unpriced) = (openai("a", &mock.url()), openai("b", &mock.url()));
    let routes = "[[routes]]\nmodel = \"free\"\ntargets = [{ provider = \"b\" }]\n\
                  [[routes]]\nmodel = \"*\"\ntargets = [{ provider = \"a\", price = { input = 2.5, output = 10 } }]\n";
    let gateway = gateway(&format!("{priced}{unpriced}{routes}")).await;
    for model in ["p", "free"] {
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        send(gateway.addr(), post("/v1/chat/completions", body)).await;
    }
    send(gateway.addr(), stream()).await;
    until(async || lines.of("call").len() == 3).await;
    let told = |line: &Value| {
        (
            line["input_tokens"].as_u64(),
            line["output_tokens"].as_u64(),
            line["cost"].as_f64(),
        )
    };
    let calls: Vec<_> = lines.of("call").iter().map(told).collect();
    assert_eq!(
        calls,
        [
            (Some(1000), Some(201), Some(0.00451)),
            (Some(1000), Some(201), None),
            (Some(3), Some(2), Some(0.0000275)),
        ]
    );
}

#[tokio::test]
async fn a_key_in_an_errors_body_reaches_the_caller_alone() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=trace"));
    let body = r#"{"error":{"code":403,"message":"Permission denied: Consumer 'api_key:AIzaSyA0123456789' has been suspended.","status":"PERMISSION_DENIED","details":[{"reason":"CONSUMER_SUSPENDED","metadata":{"consumer":"api_key:AIzaSyA0123456789"}}]}}"#;
    for failing in [Reply::status(403).body(body), Reply::ok().body(body)] {
        let mock = Mock::start(failing).await.unwrap();
        let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
        let answer = send(
            gateway.addr(),
            post("/v1/chat/completions", r#"{"model":"m"}"#),
        )
        .await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (403, body.as_bytes())
        );
        assert!(!answer.header("x-fuseline-why").is_empty());
        assert!(!format!("{:?}", answer.headers).contains("AIza"));
    }
    until(async || lines.of("call").len() == 2).await;
    for line in lines.all() {
        assert!(!line.to_string().contains("AIza"), "{line}");
    }
}

#[tokio::test]
async fn report_67_who_does_not_read_is_named_in_the_log_and_nobody_is_blamed() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=info"));
    let long = Reply::ok().text("x".repeat(4 << 20));
    let flood = Reply::ok().events(20_000);
    let script = Script::always(flood).rule(Rule::model("plain").reply(long));
    let mock = Mock::start(script).await.unwrap();
    let text = format!(
        "{}[timeouts]\nwrite_idle = \"1h\"\n{}[routes.timeouts]\nwrite_idle = \"200ms\"\n",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let unread = open(gateway.addr(), stream()).await;
    until(async || !lines.of("call").is_empty()).await;
    let call = &lines.of("call")[0];
    assert_eq!(
        (
            call["kind"].as_str(),
            call["why"].as_str(),
            call["status"].as_u64()
        ),
        (
            Some("client_slow"),
            Some("the caller took nothing for 200ms"),
            Some(200)
        )
    );
    mock.wait_for_left(1, SOON).await.unwrap();
    assert!(breaker(&gateway, "a/m").await.is_null());
    drop(unread);
    // A plain answer is the gateway's by then; its call is over.
    let plain = post("/v1/chat/completions", r#"{"model":"plain"}"#);
    let unread = open(gateway.addr(), plain).await;
    until(async || !lines.of("an answer was not taken").is_empty()).await;
    assert_eq!(lines.of("call")[1]["kind"], Value::Null);
    assert_eq!(
        lines.of("an answer was not taken")[0]["kind"],
        "client_slow"
    );
    drop(unread);
}

#[tokio::test]
async fn a_call_that_was_served_from_the_cache_says_so() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=info"));

    let script = Script::sequence([Reply::ok(), Reply::status(503)]);
    let mock = Mock::start(script).await.unwrap();
    let more = "on_exhausted = [\"cache\"]\n[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\n";
    let gateway = gateway(&format!(
        "{}{}{more}",
        openai("a", &mock.url()),
        route(&["a"])
    ))
    .await;
    for _ in 0..3 {
        let body = r#"{"model":"m","user":"in-the-body"}"#;
        let answer = send(gateway.addr(), post("/v1/chat/completions", body)).await;
        assert_eq!(answer.status, 200);
    }
    let calls = lines.of("call");
    let told: Vec<_> = calls
        .iter()
        .map(|line| {
            (
                line["degraded"].as_str(),
                line["attempts"].as_u64(),
                line["status"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (None, Some(1), Some(200)),
            (Some("cache"), Some(1), Some(200)),
            (Some("cache"), Some(0), Some(200)),
        ],
        "one that nobody was asked for has its line, too"
    );
    assert!(calls[2]["kind"].is_null(), "{calls:?}");
}

#[tokio::test]
async fn report_144_callers_without_the_right_token_are_told_of_together() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=info"));
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "client_tokens = [\"right\"]\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    for _ in 0..20 {
        let answer = send(gateway.addr(), crate::support::chat()).await;
        assert_eq!(answer.status, 401);
    }
    let told = lines.of("callers showed no client token, or a wrong one");
    assert_eq!((told.len(), told[0]["calls"].as_u64()), (1, Some(1)));
    assert_eq!(lines.of("call"), [Value::Null; 0]);
    assert_eq!(mock.connections(), 0);
}
