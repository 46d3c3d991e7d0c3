//! Liveness and readiness: they ask no provider, and do not wait for one.

use std::time::Duration;

use fuseline_mock::{Mock, Reply, Script};
use tokio::time::Instant;

use crate::support::{breaker, chat, gateway, get, openai, route, send, spawn, until};

const POLLS: usize = 50;

/// Polls both, and gives what the quickest of each took; the machine may be busy, the gateway may not be waiting.
async fn polled(admin: std::net::SocketAddr) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..POLLS {
        for path in ["/healthz", "/readyz"] {
            let began = Instant::now();
            assert_eq!(send(admin, get(path)).await.status, 200, "{path}");
            fastest = fastest.min(began.elapsed());
        }
    }
    fastest
}

#[tokio::test]
async fn report_128_an_outage_of_everything_leaves_the_gateway_alive_and_ready() {
    let (a, b) = (
        Mock::start(Script::refuse()).await.unwrap(),
        Mock::start(Reply::status(503)).await.unwrap(),
    );
    let text = format!(
        "fleet = \"redis://127.0.0.1:9\"\n[breaker]\ntrip = [{{ rule = \"consecutive\", failures = 1 }}]\n{}{}{}",
        openai("a", &a.url()),
        openai("b", &b.url()),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    until(async || {
        send(gateway.addr(), chat())
            .await
            .header("x-fuseline-attempts")
            == "0"
    })
    .await;
    assert!(polled(gateway.admin_addr()).await < Duration::from_millis(50));
    for name in ["a", "b/m"] {
        assert_eq!(breaker(&gateway, name).await["state"], "open", "{name}");
    }
}

#[tokio::test]
async fn report_129_health_costs_nothing_and_answers_while_all_places_are_taken() {
    let mock = Mock::start(Reply::stall()).await.unwrap();
    let text = format!(
        "[listener]\nmax_calls = 8\nmax_connections = 8\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let addr = gateway.addr();
    let busy: Vec<_> = (0..8).map(|_| spawn(send(addr, chat()))).collect();
    mock.wait_for_hits(8, crate::support::SOON).await.unwrap();
    assert!(polled(gateway.admin_addr()).await < Duration::from_millis(50));
    assert_eq!(mock.hits(), 8, "no poll went to the provider");
    for call in busy {
        call.abort();
    }
}
