//! The admin listener.

use fuseline_mock::{Mock, Reply};

use crate::support::{breaker, chat, gateway, get, openai, route, send};

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
    for path in ["/breakers", "/metrics"] {
        assert_eq!(send(gateway.admin_addr(), get(path)).await.status, 401);
        for (token, status) in [("Bearer wrong", 401), ("Bearer secret", 200)] {
            let mut request = get(path);
            request
                .headers_mut()
                .insert("authorization", token.parse().unwrap());
            assert_eq!(send(gateway.admin_addr(), request).await.status, status);
        }
    }
    assert_eq!(
        send(gateway.admin_addr(), get("/healthz")).await.status,
        200
    );
}
