//! The admin listener.

use bytes::Bytes;
use fuseline_core::{Policy, ScopeName};
use fuseline_mock::{Mock, Reply};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::support::{breaker, chat, gateway, get, open, openai, post, route, send, within};

/// The next thing that a feed says, as text.
async fn heard(feed: &mut Incoming) -> String {
    let frame = within(feed.frame()).await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

pub(crate) fn with(
    mut request: Request<Full<Bytes>>,
    name: &'static str,
    value: &str,
) -> Request<Full<Bytes>> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

#[tokio::test]
async fn health_metrics_and_breakers_are_served() {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    for (path, body) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answer = send(gateway.admin_addr(), get(path)).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, body.as_bytes())
        );
    }
    send(gateway.addr(), chat()).await;
    let view = breaker(&gateway, "a/m").await;
    assert_eq!(
        (
            view["scope"].as_str(),
            view["provider"].as_str(),
            view["part"].as_str()
        ),
        (Some("model"), Some("a"), Some("m"))
    );
    assert_eq!(
        (
            view["run"].as_u64(),
            view["last_failures"][0]["code"].as_u64()
        ),
        (Some(1), Some(503))
    );
    let page = send(gateway.admin_addr(), get("/metrics")).await;
    assert!(
        page.header("content-type")
            .starts_with("application/openmetrics-text")
    );
    assert!(page.body.ends_with(b"# EOF\n"));
    assert_eq!(
        send(gateway.admin_addr(), get("/nothing")).await.status,
        404
    );
}

#[tokio::test]
async fn a_token_guards_what_tells_something() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "admin_token = \"secret\"\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    for path in ["/breakers", "/breakers/a", "/metrics", "/events"] {
        assert_eq!(send(gateway.admin_addr(), get(path)).await.status, 401);
        for (token, status) in [("Bearer wrong", 401), ("Bearer secret", 200)] {
            let mut request = get(path);
            request
                .headers_mut()
                .insert("authorization", token.parse().unwrap());
            let expected = if path == "/breakers/a" && status == 200 {
                404
            } else {
                status
            };
            assert_eq!(open(gateway.admin_addr(), request).await.status(), expected);
        }
    }
    assert_eq!(
        send(gateway.admin_addr(), get("/healthz")).await.status,
        200
    );
}

#[tokio::test]
async fn report_144_a_wrong_token_and_a_missing_one_learn_the_same_and_nothing_else() {
    let gateway = gateway("admin_token = \"sesame-open\"\n").await;
    let described: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let mut told = std::collections::BTreeSet::new();
    let mut guarded = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"].is_array() {
                continue;
            }
            guarded += 1;
            let path = path.replace("{name}", "openai");
            let ask = || match method.as_str() {
                "get" => get(&path),
                _ => post(&path, ""),
            };
            let shown = [
                "",
                "Bearer",
                "Bearer sesame-opem",
                "Basic c2VzYW1l",
                "Bearer '\"<>{}",
            ];
            let wrong = shown.map(|shown| with(ask(), "authorization", shown));
            for request in std::iter::once(ask()).chain(wrong) {
                let answer = send(gateway.admin_addr(), request).await;
                assert_eq!(answer.status, 401, "{method} {path}");
                told.insert(answer.body);
            }
        }
    }
    assert_eq!((guarded, told.len()), (12, 1));
    let told = String::from_utf8(told.first().unwrap().to_vec()).unwrap();
    assert!(told.len() < 100 && !told.contains("sesame"), "{told}");
}

#[tokio::test]
async fn transitions_are_heard_as_they_happen() {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let feed = open(gateway.admin_addr(), get("/events")).await;
    assert_eq!(feed.headers()["content-type"], "text/event-stream");
    let mut feed = feed.into_body();
    assert_eq!(heard(&mut feed).await, ": listening\n\n");
    for _ in 0..5 {
        send(gateway.addr(), chat()).await;
    }
    let mut told = Vec::new();
    while told.len() < 2 {
        let event = heard(&mut feed).await;
        let data = event.strip_prefix("event: transition\ndata: ").unwrap();
        told.push(serde_json::from_str::<Value>(data.trim_end()).unwrap());
    }
    let opened = &told[1];
    assert_eq!(
        (
            &opened["breaker"],
            &opened["from"],
            &opened["to"],
            &opened["cause"]
        ),
        (
            &json!("a/m"),
            &json!("degraded"),
            &json!("open"),
            &json!("consecutive")
        )
    );
    assert!(humantime::parse_rfc3339(opened["at"].as_str().unwrap()).is_ok());
    assert!(opened["until_ms"].as_u64().unwrap() > 10_000);
}

#[tokio::test]
async fn a_listener_is_told_how_many_transitions_came_too_fast_for_it() {
    let gateway = gateway("").await;
    let mut feed = open(gateway.admin_addr(), get("/events")).await.into_body();
    assert_eq!(heard(&mut feed).await, ": listening\n\n");
    let (registry, policy) = (gateway.registry(), Policy::default());
    // All at once: the feed holds 256.
    for number in 0..300 {
        let name = ScopeName::model("openai", &format!("m{number}"));
        let breaker = registry.get_breaker(&name, &policy, registry.now());
        breaker.unwrap().force_open(None, registry.now());
    }
    let mut told = String::new();
    while told.matches("event: transition\n").count() < 256 {
        told.push_str(&heard(&mut feed).await);
    }
    assert!(
        told.starts_with("event: missed\ndata: {\"missed\":44}\n\n"),
        "{told}"
    );
}

#[tokio::test]
async fn listeners_are_counted_and_a_seat_is_free_again_when_one_leaves() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let mut feeds = Vec::new();
    for _ in 0..64 {
        feeds.push(open(gateway.admin_addr(), get("/events")).await);
    }
    assert!(feeds.iter().all(|feed| feed.status() == 200));
    let refused = send(gateway.admin_addr(), get("/events")).await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.json()["error"]
            .as_str()
            .unwrap()
            .starts_with("64 listen")
    );
    feeds.pop();
    crate::support::until(async || {
        open(gateway.admin_addr(), get("/events")).await.status() == 200
    })
    .await;
}

#[tokio::test]
async fn one_breaker_tells_its_history_and_takes_commands() {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let admin = gateway.admin_addr();
    assert_eq!(send(admin, get("/breakers/a%2Fm")).await.status, 404);
    for _ in 0..5 {
        send(gateway.addr(), chat()).await;
    }
    let shown = send(admin, get("/breakers/a%2Fm")).await;
    assert_eq!(shown.header("content-type"), "application/json");
    assert_eq!(shown.header("x-content-type-options"), "nosniff");
    let shown = shown.json();
    assert_eq!(
        (&shown["state"], &shown["note"]),
        (&json!("open"), &json!(null))
    );
    assert_eq!(shown["history"][1]["cause"], "consecutive");
    let command = r#"{"to":"closed","for":"90s","note":"n"}"#;
    let forced = send(admin, post("/breakers/a%2Fm/force", command)).await;
    let forced = (forced.status.as_u16(), forced.json());
    assert_eq!(forced.0, 200);
    assert_eq!(
        (&forced.1["state"], &forced.1["note"]),
        (&json!("forced_closed"), &json!("n"))
    );
    let left = forced.1["why"]["until_ms"].as_u64().unwrap();
    assert!((89_000..=90_000).contains(&left), "{left}");
    assert_eq!(
        send(gateway.addr(), chat()).await.status,
        503,
        "the provider's own"
    );
    let reset = send(admin, post("/breakers/a%2Fm/reset", "")).await.json();
    assert_eq!(
        (&reset["state"], &reset["run"]),
        (&json!("closed"), &json!(0))
    );
    let all = send(admin, post("/reset", "")).await.json();
    assert!(all["reset"].as_u64().unwrap() >= 1);
    for (command, status) in [
        ("", 400),
        (r#"{"to":"ajar"}"#, 400),
        (r#"{"to":"open","fro":"1s"}"#, 400),
        (r#"{"to":"open","for":"-1s"}"#, 400),
        (
            &format!(r#"{{"to":"open","note":"{}"}}"#, "n".repeat(501)),
            400,
        ),
        (&" ".repeat(20_000), 413),
    ] {
        let answer = send(admin, post("/breakers/a/force", command.to_owned())).await;
        assert_eq!(answer.status, status, "{command}");
    }
    assert_eq!(send(admin, get("/breakers/a%2Fm/force")).await.status, 405);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_command() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let admin = gateway.admin_addr();
    let foreign = with(post("/reset", ""), "origin", "https://evil.example");
    let rebound = with(get("/breakers"), "host", "evil.example:8081");
    for request in [foreign, rebound] {
        assert_eq!(send(admin, request).await.status, 403);
    }
    let own = with(post("/reset", ""), "origin", "http://gateway");
    assert_eq!(send(admin, own).await.status, 200);
}
