//! Streams under the guard: what callers get of them, what breakers are told, and where they fall over.
//!
//! The limits that the reports name are shortened here; what is asserted is which of them ends a stream.

mod endings;
mod silences;

use std::time::Duration;

use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio::time::Instant;

use crate::support::{
    Answer, breaker, gateway, open, post, provider, route, send, stream, until, within,
};

const AT_ONCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(40);
const QUICK: &str = "[timeouts]\nfirst_token = \"400ms\"\nstall = \"400ms\"\nidle = \"400ms\"\n";
const FIVE: &str = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 5 }]\njitter = 0.0\n";

/// One provider or two of a dialect, behind a gateway.
struct Stage {
    a: Mock,
    b: Option<Mock>,
    gateway: Gateway,
}

impl Stage {
    async fn of(protocol: &str, a: Reply, b: Option<Reply>, more: &str) -> Self {
        let a = Mock::start(a).await.unwrap();
        let mut text = provider("a", protocol, &a.url());
        let mut names = vec!["a"];
        let b = match b {
            Some(reply) => Some(Mock::start(reply).await.unwrap()),
            None => None,
        };
        if let Some(b) = &b {
            text += &provider("b", protocol, &b.url());
            names.push("b");
        }
        let gateway = gateway(&format!("{text}{}{more}", route(&names))).await;
        Self { a, b, gateway }
    }

    async fn alone(a: Reply, more: &str) -> Self {
        Self::of("openai", a, None, more).await
    }

    async fn chat(&self) -> Answer {
        send(self.gateway.addr(), stream()).await
    }

    async fn kind_counts(&self, kind: &str) -> bool {
        let view = breaker(&self.gateway, "a").await;
        let of_model = breaker(&self.gateway, "a/m").await;
        view["kinds"][kind] == 1 || of_model["kinds"][kind] == 1
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

fn chunk(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
}

fn token() -> String {
    chunk("{\"content\":\"so \"}")
}

fn finish() -> String {
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned()
}

fn messages(model: &str) -> Request<Full<Bytes>> {
    post(
        "/v1/messages",
        format!("{{\"model\":\"{model}\",\"stream\":true,\"messages\":[],\"max_tokens\":9}}"),
    )
}

fn responses() -> Request<Full<Bytes>> {
    post(
        "/v1/responses",
        r#"{"model":"m","stream":true,"input":"x"}"#,
    )
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n";
const DELTA: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"so \"}}\n\n";
const OVERLOADED: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";

#[tokio::test]
async fn a_stream_that_is_held_back_falls_over_without_a_trace() {
    let begun = |events: usize| {
        Reply::ok()
            .events(60)
            .gap(Duration::from_millis(2))
            .cut_after(events)
    };
    let pings = std::iter::repeat_n("event: ping\ndata: {\"type\":\"ping\"}\n\n", 60);
    let delta = std::iter::repeat_n(DELTA, 20);
    let failing = std::iter::once(START).chain(delta).chain([OVERLOADED]);
    for (name, reply) in [
        ("529", Reply::status(529)),
        (
            "overloaded as first event",
            Reply::ok().chunks([OVERLOADED]),
        ),
        ("error after 20", Reply::ok().chunks(failing)),
        ("cut after 40", begun(40)),
        ("silence after 20", Reply::ok().events(60).stall_after(20)),
        (
            "pings and nothing useful",
            Reply::ok().chunks(pings).gap(STEP),
        ),
    ] {
        let held = "hold_back = \"2s\"\n";
        let spare = Reply::ok().text("all from the spare");
        let stage = Stage::of("anthropic", reply, Some(spare), &format!("{held}{QUICK}")).await;
        let answer = send(stage.gateway.addr(), messages("m")).await;
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.header("x-fuseline-target"), "b/m", "{name}");
        let told = text(&answer);
        assert_eq!(
            told.matches("event: message_start").count(),
            1,
            "{name}: {told}"
        );
        assert!(
            told.contains("spare") && told.contains("event: message_stop"),
            "{name}: {told}"
        );
        assert!(!told.contains("event: error"), "{name}: {told}");
    }
}

#[tokio::test]
async fn what_is_held_back_goes_out_when_the_budget_ends() {
    let reply = Reply::ok().events(60).gap(STEP);
    let stage = Stage::alone(reply, "hold_back = \"30s\"\nbudget = \"400ms\"\n").await;
    let answer = open(stage.gateway.addr(), stream()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(stage.a.in_flight(), 1, "the provider is still at work");
    let told = within(answer.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    assert!(told.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn an_event_that_is_no_json_is_left_out_of_text_and_fatal_in_a_tool_call() {
    let odd = "data: <html>oops</html>\n\n".to_owned();
    let chunks = [token(), odd.clone(), token(), finish()];
    let stage = Stage::alone(Reply::ok().chunks(chunks), "").await;
    assert_eq!(
        text(&stage.chat().await),
        [token(), token(), finish()].concat()
    );

    let call =
        chunk(r#"{"tool_calls":[{"index":0,"id":"t","function":{"name":"rm","arguments":"{"}}]}"#);
    let stage = Stage::alone(Reply::ok().chunks([call, odd, finish()]), "").await;
    let told = text(&stage.chat().await);
    assert!(
        told.contains("\"code\":\"stream_malformed\"") && !told.contains("html"),
        "{told}"
    );
}

#[tokio::test]
async fn an_sdks_read_timeout_shortens_and_never_lengthens() {
    for (said, falls_over) in [
        ("0.2", true),
        ("9000", true),
        ("nonsense", true),
        ("0", true),
    ] {
        let stage = Stage::of("openai", Reply::stall(), Some(Reply::ok()), QUICK).await;
        let mut request = stream();
        request
            .headers_mut()
            .insert("x-stainless-read-timeout", said.parse().unwrap());
        let began = Instant::now();
        let answer = send(stage.gateway.addr(), request).await;
        let took = began.elapsed();
        assert_eq!(
            answer.header("x-fuseline-target") == "b/m",
            falls_over,
            "{said}"
        );
        let expected = if said == "0.2" { 200 } else { 400 };
        assert!(
            took >= Duration::from_millis(expected - 10),
            "{said}: {took:?}"
        );
        let why = answer.header("x-fuseline-why");
        assert!(
            why.contains(&format!("within {expected}ms")),
            "{said}: {why}"
        );
    }
}

#[tokio::test]
async fn impatient_callers_open_nobodys_breaker() {
    let silences = [
        Reply::stall(),
        Reply::ok().chunks([": head\n\n"]).stall_after(1),
        Reply::ok().events(9).stall_after(2),
    ];
    for (at, silent) in silences.into_iter().enumerate() {
        for (limits, opens) in [("", false), ("cancel_counts_after = \"100ms\"\n", true)] {
            let a = Mock::start(silent.clone()).await.unwrap();
            let a_name = provider("a", "openai", &a.url());
            let breaker = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 2 }]\n";
            let text = format!("{limits}{a_name}{}{breaker}", route(&["a"]));
            let gateway = gateway(&text).await;
            for _ in 0..3 {
                let mut request = stream();
                let said = "0.2".parse().unwrap();
                request
                    .headers_mut()
                    .insert("x-stainless-read-timeout", said);
                send(gateway.addr(), request).await;
            }
            let asked = if opens { 2 } else { 3 };
            assert_eq!(a.hits(), asked, "{at} {limits}");
        }
    }
}

#[tokio::test]
async fn heartbeats_go_to_those_who_asked_once_the_stream_is_committed() {
    let silent = Reply::ok().events(3).stall_after(2);
    let limits = "[timeouts]\nstall = \"900ms\"\nidle = \"900ms\"\n";
    for (more, beats) in [("", 0), ("[heartbeats]\nanthropic = \"200ms\"\n", 4)] {
        let stage = Stage::of(
            "anthropic",
            silent.clone(),
            None,
            &format!("{limits}{more}"),
        )
        .await;
        let told = text(&send(stage.gateway.addr(), messages("m")).await);
        let pings = told
            .matches("event: ping\ndata: {\"type\": \"ping\"}\n\n")
            .count();
        assert!(pings <= beats && pings * 2 >= beats, "{told}");
        assert!(
            told.contains("stream_stall"),
            "heartbeats keep nothing alive: {told}"
        );
    }
}

#[tokio::test]
async fn streams_are_asked_for_uncoded() {
    let stage = Stage::alone(Reply::ok(), "").await;
    for (request, expected) in [(stream(), "identity"), (crate::support::chat(), "gzip, br")] {
        let mut request = request;
        request
            .headers_mut()
            .insert("accept-encoding", "gzip, br".parse().unwrap());
        assert_eq!(send(stage.gateway.addr(), request).await.status, 200);
        let seen = stage.a.requests();
        assert_eq!(
            seen.last().unwrap().header("accept-encoding"),
            Some(expected)
        );
    }
}
