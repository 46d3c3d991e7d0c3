//! How other gateways failed, and what is seen here instead. Numbers are those of the field reports; what the core
//! alone decides is in its own tests.

use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::support::{
    CHAT, Program, breaker, chat, gateway, get, openai, route, send, spawn, until,
};

/// Opens at once, rests for `cooldown`, closes after one good probe.
fn touchy(cooldown: &str) -> String {
    format!(
        "[breaker]\ntrip = [{{ rule = \"consecutive\", failures = 1 }}]\ncooldown = \"{cooldown}\"\njitter = 0.0\n\
         backoff = 1.0\nsuccesses_to_close = 1\n"
    )
}

async fn state(gateway: &Gateway, name: &str) -> String {
    breaker(gateway, name).await["state"]
        .as_str()
        .unwrap_or("none")
        .to_owned()
}

async fn due(gateway: &Gateway, name: &str) {
    until(|| async {
        breaker(gateway, name).await["retry_after_ms"] == 0
            || state(gateway, name).await == "half_open"
    })
    .await;
}

#[tokio::test]
async fn report_2_a_probe_answered_404_or_cut_never_keeps_its_slot() {
    let primary = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(&format!(
        "{}{}{}",
        openai("a", &primary.url()),
        route(&["a"]),
        touchy("100ms")
    ))
    .await;
    send(gateway.addr(), chat()).await;
    assert_eq!(state(&gateway, "a/m").await, "open");
    // Run 1: a 404 says nothing about health; the very next call is a probe again.
    primary.set(Reply::status(404)).await.unwrap();
    due(&gateway, "a/m").await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 404);
    assert_eq!(state(&gateway, "a/m").await, "half_open");
    // Run 2: the body is cut in the middle.
    primary.set(Reply::ok().cut_after(1)).await.unwrap();
    assert_eq!(send(gateway.addr(), chat()).await.status, 504);
    assert_eq!(state(&gateway, "a/m").await, "open");
    assert_eq!(primary.hits(), 3);
    primary.set(Reply::ok()).await.unwrap();
    due(&gateway, "a/m").await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    assert_eq!(state(&gateway, "a/m").await, "closed");
}

#[tokio::test]
async fn report_20_invented_models_share_a_bounded_table_and_the_open_one_stays() {
    let rules = Rule::model("broken").reply(Reply::status(503));
    let primary = Mock::start(Script::always(Reply::ok()).rule(rules))
        .await
        .unwrap();
    let text = format!(
        "max_breakers = 20\n{}{}{}",
        openai("a", &primary.url()),
        route(&["a"]),
        touchy("60s")
    );
    let gateway = gateway(&text).await;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let url = format!("http://{}{CHAT}", gateway.addr());
    assert_eq!(call(&client, &url, "broken").await, 503);
    for invented in 0..300 {
        assert_eq!(
            call(&client, &url, &format!("invented-{invented}")).await,
            200
        );
    }
    let list = send(gateway.admin_addr(), get("/breakers")).await.json();
    assert!(list.as_array().unwrap().len() <= 20);
    assert_eq!(state(&gateway, "a/broken").await, "open");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "100,000 calls: part of the long run"]
async fn report_20_a_hundred_thousand_invented_models_cost_less_than_20_mb() {
    let rules = Rule::model("broken").reply(Reply::status(503));
    let primary = Mock::start(Script::always(Reply::ok()).rule(rules))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    let text = format!(
        "{}{}{}",
        openai("a", &primary.url()),
        route(&["a"]),
        touchy("1h")
    );
    std::fs::write(&file, text).unwrap();
    let program = Program::serve(file.to_str().unwrap());
    let client = Client::builder(TokioExecutor::new()).build_http();
    let url = format!("http://{}{CHAT}", program.listen);
    for warm_up in 0..2_000 {
        call(&client, &url, &format!("warm-up-{warm_up}")).await;
    }
    assert_eq!(call(&client, &url, "broken").await, 503);
    let before = program.resident_kib();
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (client, url) = (client.clone(), url.clone());
            spawn(async move {
                for invented in 0..100_000 / 16 {
                    assert_eq!(
                        call(&client, &url, &format!("invented-{caller}-{invented}")).await,
                        200
                    );
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let grown = program.resident_kib().saturating_sub(before);
    assert!(grown < 20 * 1024, "{grown} KiB more");
    let list = send(program.admin.parse().unwrap(), get("/breakers"))
        .await
        .json();
    let all = list.as_array().unwrap();
    assert!(all.len() <= 500);
    assert!(
        all.iter()
            .any(|breaker| breaker["name"] == "a/broken" && breaker["state"] == "open")
    );
}

type Caller = Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>;

/// A call on a kept connection; gives the status.
async fn call(client: &Caller, url: &str, model: &str) -> u16 {
    let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
    let request = Request::post(url)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)));
    let response = client.request(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    status
}
