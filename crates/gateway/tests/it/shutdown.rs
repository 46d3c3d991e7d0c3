//! Draining and stopping.

mod program;

use std::time::Duration;

use fuseline_gateway::StartError;
use fuseline_mock::{Mock, Reply};
use http_body_util::BodyExt as _;
use tokio::net::TcpStream;

use crate::support::{
    SOON, config, gateway, get, open, openai, post, route, send, spawn, stream, until, within,
};

#[tokio::test]
async fn a_drain_lets_streams_finish_and_takes_nothing_new() {
    let mock = Mock::start(Reply::ok().events(5).gap(Duration::from_millis(100)))
        .await
        .unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let (addr, admin) = (gateway.addr(), gateway.admin_addr());
    let answer = open(addr, stream()).await;
    let idle = TcpStream::connect(addr).await.unwrap();
    let drained = spawn(gateway.shutdown());
    until(async || send(admin, get("/readyz")).await.status == 503).await;
    until(async || TcpStream::connect(addr).await.is_err()).await;
    let body = within(answer.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    within(drained).await.unwrap();
    drop(idle);
    until(async || TcpStream::connect(admin).await.is_err()).await;
}

#[tokio::test]
async fn what_outlasts_the_drain_is_told_so() {
    let mock = Mock::start(Reply::ok().events(5).stall_after(2))
        .await
        .unwrap();
    let gateway = gateway(&format!(
        "drain = \"100ms\"\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    ))
    .await;
    let answer = open(gateway.addr(), stream()).await;
    let unanswered = post("/v1/files", "{}");
    mock.set(Reply::stall()).await.unwrap();
    let waiting = spawn(send(gateway.addr(), unanswered));
    mock.wait_for_hits(2, SOON).await.unwrap();
    within(gateway.shutdown()).await;
    let told = within(answer.into_body().collect()).await.unwrap();
    let told = String::from_utf8(told.to_bytes().to_vec()).unwrap();
    let (_, last) = told.trim_end().rsplit_once("data: ").unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["error"]["code"], "shutting_down", "{told}");
    let refused = waiting.await.unwrap();
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["code"], "shutting_down");
    assert_eq!(refused.header("retry-after"), "1");
    mock.wait_for_left(2, SOON).await.unwrap();
}

#[tokio::test]
async fn dropping_the_gateway_cuts_at_once() {
    let mock = Mock::start(Reply::stall()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let addr = gateway.addr();
    let call = spawn(async move { TcpStream::connect(addr).await });
    let _caller = call.await.unwrap().unwrap();
    drop(gateway);
    until(async || TcpStream::connect(addr).await.is_err()).await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_named_with_its_key() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&format!(
        "{}{}",
        openai("a", "http://127.0.0.1:9"),
        route(&["a"])
    ));
    config.admin_listen = taken.local_addr().unwrap();
    let error = fuseline_gateway::Gateway::start(config).await.unwrap_err();
    assert!(matches!(
        error,
        StartError::Listen {
            key: "admin_listen",
            ..
        }
    ));
    assert!(
        error.to_string().contains("choose another address"),
        "{error}"
    );
}
