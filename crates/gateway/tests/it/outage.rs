//! Our own network is down: that is told, and no circuit stays open for it longer than one cooldown.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Script};

use crate::support::{breaker, chat, gateway, openai, route, send, until};

/// A failed probe would rest a provider for half a minute.
const GROWING: &str = "[breaker]\ncooldown = \"300ms\"\njitter = 0.0\nbackoff = 100.0\nsuccesses_to_close = 1\n\
     trip = [{ rule = \"consecutive\", failures = 2 }]\n";
const OURS: &str = "all providers fail at once";

async fn retry_after(gateway: &Gateway, name: &str) -> u64 {
    let view = breaker(gateway, name).await;
    view["retry_after_ms"].as_u64().unwrap_or_default()
}

#[tokio::test]
async fn an_outage_of_our_own_is_told_and_over_within_one_cooldown() {
    let a = Mock::start(Script::refuse()).await.unwrap();
    let b = Mock::start(Script::refuse()).await.unwrap();
    let providers = openai("a", &a.url()) + &openai("b", &b.url());
    let gateway = gateway(&format!("{providers}{}{GROWING}", route(&["a", "b"]))).await;
    for _ in 0..3 {
        let answer = send(gateway.addr(), chat()).await;
        assert!(answer.header("x-fuseline-why").contains(OURS));
    }
    let refused = send(gateway.addr(), chat()).await;
    assert_eq!(refused.json()["error"]["code"], "circuit_open");
    assert!(
        refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains(OURS)
    );
    for _ in 0..3 {
        until(async || {
            retry_after(&gateway, "a").await == 0 && retry_after(&gateway, "b").await == 0
        })
        .await;
        // A probe of each, which nobody answers.
        assert_eq!(send(gateway.addr(), chat()).await.status, 504);
    }
    for name in ["a", "b"] {
        assert!(retry_after(&gateway, name).await <= 300, "{name}");
    }
    a.set(Reply::ok()).await.unwrap();
    b.set(Reply::ok()).await.unwrap();
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "a/m")
    );
    assert!(!answer.header("x-fuseline-why").contains(OURS));
    assert_eq!(breaker(&gateway, "a").await["state"], "closed");
}

#[tokio::test]
async fn where_one_provider_answers_the_other_is_at_fault() {
    let a = Mock::start(Script::refuse()).await.unwrap();
    let b = Mock::start(Reply::ok()).await.unwrap();
    let providers = openai("a", &a.url()) + &openai("b", &b.url());
    let gateway = gateway(&format!("{providers}{}{GROWING}", route(&["a", "b"]))).await;
    for _ in 0..2 {
        assert!(
            !send(gateway.addr(), chat())
                .await
                .header("x-fuseline-why")
                .contains(OURS)
        );
    }
    until(async || retry_after(&gateway, "a").await == 0).await;
    send(gateway.addr(), chat()).await;
    assert!(retry_after(&gateway, "a").await > 20_000, "a failed probe");
}
