//! Another configuration while calls go on: what changes, what stays, and what a bad file does not do.

mod program;
mod stays;

use std::io::Write as _;
use std::time::Duration;

use fuseline_gateway::config::{Finding, Overrides, Severity, Sources};
use fuseline_gateway::{Gateway, ReloadError, Reloaded};
use fuseline_mock::{Mock, Reply, Script};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::admin::with;
use crate::support::{
    Answer, breaker, chat, get, open, openai, post, route, send, spawn, until, within,
};

pub(crate) const HEAD: &str =
    "listen = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\nstate = \"off\"\n";

/// A gateway, and the file that it reads anew.
pub(crate) struct Reloadable {
    pub(crate) gateway: Gateway,
    file: NamedTempFile,
}

impl Reloadable {
    pub(crate) async fn start(text: &str) -> Self {
        let mut file = NamedTempFile::new().unwrap();
        write!(file, "{HEAD}{text}").unwrap();
        let path = file.path().to_owned();
        let overrides = Overrides::default();
        let sources = move |act: &dyn Fn(Sources<'_>) -> _| {
            act(Sources {
                file: Some(&path),
                overrides: &overrides,
                env: &|_| None,
            })
        };
        let config = sources(&|sources| sources.load()).config.unwrap();
        let read = move |in_force: &_| sources(&|sources| sources.load_after(in_force));
        let gateway = Gateway::start_reloadable(config, read).await.unwrap();
        Self { gateway, file }
    }

    /// Puts another text into the file, and lets it be read.
    pub(crate) async fn reload(&self, text: &str) -> Result<Reloaded, ReloadError> {
        self.reload_whole(&format!("{HEAD}{text}")).await
    }

    pub(crate) async fn reload_whole(&self, text: &str) -> Result<Reloaded, ReloadError> {
        std::fs::write(self.file.path(), text).unwrap();
        within(self.gateway.reload()).await
    }

    /// The only mistake for which a text is refused.
    pub(crate) async fn mistake(&self, text: &str) -> Finding {
        let Err(ReloadError::Mistakes(findings)) = self.reload(text).await else {
            panic!("not refused: {text}");
        };
        let is_mistake = |finding: &Finding| finding.severity == Severity::Mistake;
        let mut mistakes: Vec<_> = findings.into_iter().filter(is_mistake).collect();
        assert_eq!(mistakes.len(), 1, "{mistakes:#?}");
        mistakes.remove(0)
    }

    pub(crate) async fn breaker(&self, name: &str) -> Value {
        breaker(&self.gateway, name).await
    }

    pub(crate) async fn call(&self, model: &str) -> Answer {
        let body = json!({"model": model, "messages": []}).to_string();
        send(self.gateway.addr(), post(crate::support::CHAT, body)).await
    }

    pub(crate) async fn page(&self) -> String {
        let page = send(self.gateway.admin_addr(), get("/metrics")).await;
        String::from_utf8(page.body.to_vec()).unwrap()
    }
}

/// A provider whose model `bad` fails, and whose streams go on when they are told to.
pub(crate) struct Held {
    pub(crate) url: String,
    go_on: watch::Sender<bool>,
}

const BEGIN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                     data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one \"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two\"}}]}\n\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                   data: [DONE]\n\n";
const BAD: &str =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

impl Held {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (go_on, told) = watch::channel(false);
        spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                spawn(serve(stream, told.clone()));
            }
        });
        Self { url, go_on }
    }

    pub(crate) fn go_on(&self) {
        self.go_on.send_replace(true);
    }
}

async fn serve(mut stream: TcpStream, mut told: watch::Receiver<bool>) {
    let mut request = Vec::new();
    while !String::from_utf8_lossy(&request).contains("\"messages\":[]") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    if String::from_utf8_lossy(&request).contains("\"bad\"") {
        return drop(stream.write_all(BAD.as_bytes()).await);
    }
    drop(stream.write_all(BEGIN.as_bytes()).await);
    drop(told.wait_for(|go_on| *go_on).await);
    drop(stream.write_all(END.as_bytes()).await);
}

/// Two providers with a route each, on the way to `bad` and to everything else.
fn two(held: &str, spare: &str) -> String {
    let bad = route(&["a"]).replace('*', "bad");
    let long = route(&["a"]).replace('*', "long");
    format!(
        "{}{}{bad}{long}{}",
        openai("a", held),
        openai("b", spare),
        route(&["b"])
    )
}

#[tokio::test]
async fn report_130_a_bad_file_changes_nothing_and_a_good_one_only_what_it_says() {
    let (held, spare) = (Held::start().await, Mock::start(Reply::ok()).await.unwrap());
    let text = two(&held.url, &spare.url());
    let reloadable = Reloadable::start(&text).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let body = r#"{"model":"long","stream":true,"messages":[]}"#;
        let request = post(crate::support::CHAT, body);
        streams.push(open(reloadable.gateway.addr(), request).await);
    }
    for _ in 0..5 {
        assert_eq!(reloadable.call("bad").await.status, 503);
    }
    let opened = reloadable.breaker("a/bad").await;
    assert_eq!(opened["state"], "open");
    let generation = &opened["generation"];
    // The end of the cooldown, seen from its beginning.
    let length = |breaker: &Value| {
        let part = |key: &str| breaker["why"][key].as_u64().unwrap();
        part("ms_ago") + part("until_ms")
    };

    let unknown = text.replacen("retries = 0", "retries = 0\non_exhausted = [\"nobody\"]", 1);
    let gone = text.replacen("\"key-of-a\"", "{ env = \"GONE\" }", 1);
    let routes = text.find("[[routes]]").unwrap();
    for (bad, key) in [
        (text.replacen("[[routes]]", "[[routes]", 1), None),
        (unknown, Some("routes[0].on_exhausted[0]")),
        (gone, Some("providers.a.api_key.env")),
        (text[..routes].to_owned(), Some("routes")),
    ] {
        let mistake = reloadable.mistake(&bad).await;
        assert_eq!(mistake.key.as_deref(), key, "{mistake}");
        let file = reloadable.file.path().display().to_string();
        assert_eq!(mistake.file, Some(file));
        let still = reloadable.breaker("a/bad").await;
        assert_eq!(
            (&still["state"], &still["generation"]),
            (&json!("open"), generation)
        );
        assert_eq!(reloadable.call("m").await.status, 200, "the old one serves");
    }

    let other = text.replacen("[[routes]]", "[timeouts]\nstall = \"31s\"\n[[routes]]", 1);
    let changed = reloadable.reload(&other).await.unwrap().changed;
    assert_eq!(changed, ["timeouts.stall"]);
    let still = reloadable.breaker("a/bad").await;
    assert_eq!(
        (&still["state"], &still["generation"]),
        (&json!("open"), generation)
    );
    assert!(
        length(&still).abs_diff(length(&opened)) <= 1,
        "{still}\n{opened}"
    );
    assert_eq!(
        reloadable.call("bad").await.header("x-fuseline-attempts"),
        "0"
    );

    let without = format!("{}{}", openai("b", &spare.url()), route(&["b"]));
    let changed = reloadable.reload(&without).await.unwrap().changed;
    assert!(
        changed.contains(&"providers.a.base_url".to_owned()),
        "{changed:?}"
    );
    for gone in ["a", "a/bad", "a/long", "a#0"] {
        assert!(reloadable.breaker(gone).await.is_null(), "{gone}");
    }
    let page = reloadable.page().await;
    assert!(!page.contains("provider=\"a\""), "{page}");
    assert!(
        page.contains("config_reloads_total{outcome=\"refused\"} 4"),
        "{page}"
    );
    assert!(
        page.contains("config_reloads_total{outcome=\"applied\"} 2"),
        "{page}"
    );

    held.go_on();
    for stream in streams {
        let body = within(stream.into_body().collect()).await.unwrap();
        let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        assert!(
            body.contains("two") && body.ends_with("data: [DONE]\n\n"),
            "{body}"
        );
    }
    assert!(!reloadable.page().await.contains("provider=\"a\""));
    until(async || reloadable.breaker("a/long").await.is_null()).await;
}

#[tokio::test]
async fn new_calls_go_where_the_new_file_says_and_none_fails_meanwhile() {
    let (one, other) = (
        Mock::start(Reply::ok().text("one")).await.unwrap(),
        Mock::start(Reply::ok().text("other")).await.unwrap(),
    );
    let texts = [&one, &other].map(|mock| format!("{}{}", openai("a", &mock.url()), route(&["a"])));
    let reloadable = Reloadable::start(&texts[0]).await;
    let addr = reloadable.gateway.addr();
    let (stop, stopped) = watch::channel(false);
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let stopped = stopped.clone();
            spawn(async move {
                let mut calls = 0;
                while !*stopped.borrow() {
                    let answer = send(addr, chat()).await;
                    assert_eq!(answer.status, 200, "{answer:?}");
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    for at in 1..=10 {
        reloadable.reload(&texts[at % 2]).await.unwrap();
        let answer = String::from_utf8(reloadable.call("m").await.body.to_vec()).unwrap();
        let text = ["\"one\"", "\"other\""][at % 2];
        assert!(answer.contains(text), "{answer}");
    }
    stop.send_replace(true);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    assert_eq!(reloadable.breaker("a/m").await["state"], "closed");
}

#[tokio::test]
async fn settings_of_a_breaker_change_and_what_it_has_counted_stays() {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let text = |failures: u32| {
        format!(
            "[breaker]\ntrip = [{{ rule = \"consecutive\", failures = {failures} }}]\n{}{}",
            openai("a", &mock.url()),
            route(&["a"])
        )
    };
    let reloadable = Reloadable::start(&text(5)).await;
    for _ in 0..2 {
        reloadable.call("m").await;
    }
    let before = reloadable.breaker("a/m").await;
    let changed = reloadable.reload(&text(3)).await.unwrap().changed;
    assert_eq!(changed, ["breaker.trip[0].failures"]);
    let after = reloadable.breaker("a/m").await;
    assert_eq!(
        (&after["run"], &after["generation"]),
        (&json!(2), &before["generation"])
    );
    assert_eq!(after["rules"][0]["threshold"], 3.0);
    reloadable.call("m").await;
    assert_eq!(reloadable.breaker("a/m").await["state"], "open");
    assert_eq!(reloadable.reload(&text(3)).await.unwrap().changed, [""; 0]);
}

#[tokio::test]
async fn another_key_in_the_place_of_one_begins_anew() {
    let spent =
        r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"spent"}}"#;
    let rules = fuseline_mock::Rule::key("one").reply(Reply::status(429).body(spent));
    let mock = Mock::start(Script::always(Reply::ok()).rule(rules));
    let mock = mock.await.unwrap();
    let text = |keys: &str| openai("a", &mock.url()).replace("\"key-of-a\"", keys) + &route(&["a"]);
    let reloadable = Reloadable::start(&text("\"one\"")).await;
    assert_eq!(reloadable.call("m").await.status, 429);
    assert_eq!(reloadable.breaker("a#0").await["state"], "open");
    // The same key in the same place keeps its breaker.
    reloadable
        .reload(&text("[\"one\", \"three\"]"))
        .await
        .unwrap();
    assert_eq!(reloadable.breaker("a#0").await["state"], "open");
    let changed = reloadable.reload(&text("\"two\"")).await.unwrap().changed;
    assert_eq!(
        changed,
        [
            "providers.a.api_key",
            "providers.a.api_key[0]",
            "providers.a.api_key[1]"
        ]
    );
    assert!(reloadable.breaker("a#0").await.is_null());
    assert_eq!(reloadable.call("m").await.status, 200);
}

#[tokio::test]
async fn tokens_change_at_once() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = |token: &str| {
        format!(
            "client_tokens = \"c-{token}\"\nadmin_token = \"a-{token}\"\n{}{}",
            openai("a", &mock.url()),
            route(&["a"])
        )
    };
    let reloadable = Reloadable::start(&text("old")).await;
    let statuses = async |token: &str| {
        let bearer = |of: &str| format!("Bearer {of}-{token}");
        let call = with(chat(), "authorization", &bearer("c"));
        let list = with(get("/breakers"), "authorization", &bearer("a"));
        let call = send(reloadable.gateway.addr(), call).await.status;
        let list = send(reloadable.gateway.admin_addr(), list).await.status;
        (call.as_u16(), list.as_u16())
    };
    assert_eq!(statuses("old").await, (200, 200));
    reloadable.reload(&text("new")).await.unwrap();
    assert_eq!(statuses("old").await, (401, 401));
    assert_eq!(statuses("new").await, (200, 200));
}

#[tokio::test]
async fn a_target_that_leaves_while_it_is_called_does_not_come_back() {
    let held = Held::start().await;
    let spare = Mock::start(Reply::ok()).await.unwrap();
    let reloadable = Reloadable::start(&two(&held.url, &spare.url())).await;
    let request = post(
        crate::support::CHAT,
        r#"{"model":"long","stream":true,"messages":[]}"#,
    );
    let stream = open(reloadable.gateway.addr(), request).await;
    let without = format!("{}{}", openai("b", &spare.url()), route(&["b"]));
    reloadable.reload(&without).await.unwrap();
    held.go_on();
    within(stream.into_body().collect()).await.unwrap();
    // Its end may have made a breaker: only for a moment.
    until(async || {
        let list = send(reloadable.gateway.admin_addr(), get("/breakers"))
            .await
            .json();
        list.as_array()
            .unwrap()
            .iter()
            .all(|breaker| breaker["provider"] == "b")
    })
    .await;
    tokio::time::timeout(Duration::from_secs(1), reloadable.gateway.shutdown())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_breaker_that_an_earlier_call_makes_gets_the_new_settings() {
    let (held, spare) = (Held::start().await, Mock::start(Reply::ok()).await.unwrap());
    let text = two(&held.url, &spare.url());
    let reloadable = Reloadable::start(&text).await;
    let request = post(
        crate::support::CHAT,
        r#"{"model":"long","stream":true,"messages":[]}"#,
    );
    let stream = open(reloadable.gateway.addr(), request).await;
    let stricter = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 2 }]\n";
    reloadable
        .reload(&format!("{stricter}{text}"))
        .await
        .unwrap();
    held.go_on();
    within(stream.into_body().collect()).await.unwrap();
    until(async || reloadable.breaker("a/long").await["rules"][0]["threshold"] == 2.0).await;
}

#[tokio::test]
async fn connections_and_good_answers_stay_and_receivers_of_news_change() {
    let mock = Mock::start(Script::sequence([
        Reply::ok().text("kept"),
        Reply::status(503),
    ]));
    let mock = mock.await.unwrap();
    let news = Mock::start(Reply::ok()).await.unwrap();
    let with_cache =
        route(&["a"]).replace("retries = 0", "retries = 0\non_exhausted = [\"cache\"]");
    let text = format!("{}{with_cache}", openai("a", &mock.url()));
    let reloadable = Reloadable::start(&text).await;
    assert_eq!(reloadable.call("m").await.status, 200);
    let hook = format!("[[webhooks]]\nurl = \"{}\"\n", news.url());
    let before = route(&["a"]).replace('*', "other");
    let other = format!("{hook}{}{before}{with_cache}", openai("a", &mock.url()));
    let changed = reloadable.reload(&other).await.unwrap().changed;
    assert!(
        changed.contains(&"webhooks[0].url".to_owned()),
        "{changed:?}"
    );
    for _ in 0..5 {
        let answer = reloadable.call("m").await;
        assert_eq!(answer.header("x-fuseline-degraded"), "cache");
        assert!(String::from_utf8_lossy(&answer.body).contains("kept"));
    }
    assert_eq!(
        (mock.hits(), mock.connections()),
        (6, 1),
        "one connection for all of them"
    );
    news.wait_for_hits(1, crate::support::SOON).await.unwrap();
    reloadable.reload(&text).await.unwrap();
    send(reloadable.gateway.admin_addr(), post("/reset", "")).await;
    assert_eq!(
        reloadable.call("m").await.header("x-fuseline-degraded"),
        "cache"
    );
}
