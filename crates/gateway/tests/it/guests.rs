//! What callers and providers may not make the gateway do: dial elsewhere, follow, carry keys about, or tell of itself.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Recorded, Reply};
use http::Request;
use serde_json::{Value, json};

use crate::raw::answer;
use crate::support::{
    CHAT, chat, gateway, get, openai, post, provider, route, send, stream, within,
};

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

async fn last(mock: &Mock) -> Recorded {
    within(mock.wait_for_hits(1, crate::support::SOON))
        .await
        .unwrap();
    mock.requests().pop().unwrap()
}

#[tokio::test]
async fn report_137_callers_do_not_choose_whom_the_gateway_dials() {
    let (mock, canary) = (
        Mock::start(Reply::ok()).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let gateway = in_front_of(&mock).await;
    let port = canary.addr().port();
    let hosts = [
        format!("127.0.0.1:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f000001:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost.:{port}"),
        format!("127.0.0.1:{}@127.0.0.1:{port}", mock.addr().port()),
    ];
    let mut sent = 0;
    for host in &hosts {
        let body = format!(
            "{{\"model\":\"m\",\"api_base\":\"http://{host}\",\"base_url\":\"https://{host}\",\"url\":\"file:///etc/passwd\"}}"
        );
        for head in [
            format!("POST http://{host}{CHAT} HTTP/1.1\r\nhost: {host}"),
            format!("POST https://{host}{CHAT} HTTP/1.1\r\nhost: g"),
            format!("POST {CHAT} HTTP/1.1\r\nhost: {host}\r\nforwarded: host={host}"),
            format!(
                "POST {CHAT} HTTP/1.1\r\nhost: g\r\nx-forwarded-host: {host}\r\nx-custom-host: http://{host}\r\n\
                 x-portkey-custom-host: http://{host}\r\nx-fuseline-base-url: http://{host}\r\nx-real-ip: {host}"
            ),
            format!("POST {CHAT}?base_url=http://{host} HTTP/1.1\r\nhost: g"),
            format!("CONNECT {host} HTTP/1.1\r\nhost: {host}"),
            format!("POST file:///etc/passwd HTTP/1.1\r\nhost: {host}"),
        ] {
            let length = body.len();
            let request =
                format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            let status = answer(gateway.addr(), request).await.status.as_u16();
            assert!(matches!(status, 200 | 400 | 404 | 501), "{status}: {head}");
            sent += u64::from(status == 200);
        }
    }
    assert!(
        sent >= 18,
        "what can be served is served where it belongs: {sent}"
    );
    assert_eq!((mock.hits_at(CHAT), canary.connections()), (sent, 0));
}

#[tokio::test]
async fn report_140_a_fallback_sees_its_own_key_and_address_alone() {
    let (a, b) = (
        Mock::start(Reply::status(503)).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let text = format!(
        "{}{}{}",
        openai("a", &a.url()),
        openai("b", &format!("{}/v1", b.url())),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    let body = r#"{"model":"m","messages":[]}"#;
    let mut request = post(&format!("{CHAT}?x=1&access_token=of-the-caller"), body);
    for name in [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "ocp-apim-subscription-key",
        "cookie",
    ] {
        let value = "Bearer of-the-caller".parse().unwrap();
        request.headers_mut().insert(name, value);
    }
    let answer = send(gateway.addr(), request).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "b/m")
    );
    assert_eq!(
        (
            answer.header("x-fuseline-attempts"),
            answer.header("x-fuseline-fallback")
        ),
        ("2", "true")
    );
    let seen = last(&b).await;
    assert_eq!(seen.header("authorization"), Some("Bearer key-of-b"));
    assert_eq!(seen.header("host"), Some(b.addr().to_string().as_str()));
    let all = format!("{} {:?}", seen.target, seen.headers);
    assert!(
        !all.contains("key-of-a") && !all.contains("of-the-caller"),
        "{all}"
    );
}

#[tokio::test]
async fn report_140_a_target_without_a_key_of_its_own_borrows_none() {
    let a = Mock::start(Reply::status(503)).await.unwrap();
    let b = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "{}[providers.b]\nprotocol = \"openai\"\nbase_url = \"{}\"\nauth = \"caller\"\n{}",
        openai("a", &format!("{}/v1?key=key-of-a", a.url())),
        b.url(),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    let seen = last(&b).await;
    let all = format!("{} {:?}", seen.target, seen.headers);
    assert!(!all.contains("key-of-a"), "{all}");
    assert_eq!(seen.header("authorization"), None);
}

#[tokio::test]
async fn report_141_redirects_are_not_followed() {
    let canary = Mock::start(Reply::ok()).await.unwrap();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let mut hits = 0;
    for status in [301, 302, 303, 307, 308] {
        for to in [
            format!("{}{CHAT}", canary.url()),
            format!("//{}{CHAT}", canary.addr()),
            format!("{}{CHAT}", mock.url()),
            CHAT.to_owned(),
        ] {
            let reply = Reply::status(status).header("location", &to).body("moved");
            mock.set(reply).await.unwrap();
            let mut request = post(&format!("{CHAT}?key=of-the-caller"), r#"{"model":"m"}"#);
            for name in ["authorization", "x-api-key", "api-key"] {
                let key = "Bearer of-the-caller".parse().unwrap();
                request.headers_mut().insert(name, key);
            }
            let answer = send(gateway.addr(), request).await;
            assert_eq!(answer.status, 502, "{status} to {to}");
            assert_eq!(answer.json()["error"]["code"], "redirect");
            assert!(!answer.headers.contains_key("location"));
            assert_eq!(answer.header("x-should-retry"), "false");
            let text = format!(
                "{:?} {}",
                answer.headers,
                String::from_utf8_lossy(&answer.body)
            );
            assert!(!text.contains(&canary.addr().to_string()), "{text}");
            hits += 1;
            assert_eq!(
                (mock.hits(), canary.connections()),
                (hits, 0),
                "{status} to {to}"
            );
        }
        // Its breaker is not what this is about.
        let reset = post("/reset", "");
        assert_eq!(send(gateway.admin_addr(), reset).await.status, 200);
    }
}

#[tokio::test]
async fn report_144_a_wrong_token_and_none_get_the_same_few_words_on_every_path() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "client_tokens = [\"right-token-0123456789\"]\n{}{}{}",
        openai("a", &mock.url()),
        provider("b", "anthropic", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let shown = [
        "",
        "Bearer ",
        "Bearer wrong",
        "Bearer right-token-012345678",
        "Bearer right-token-0123456789x",
        "Basic x",
        "Bearer \\\"<b>",
    ];
    for path in [
        CHAT,
        "/v1/messages",
        "/v1beta/models/m:generateContent",
        "/v1/models",
        "/v1/files/x",
        "/nowhere",
    ] {
        let mut answers = Vec::new();
        for token in shown {
            for name in ["authorization", "x-api-key", "x-goog-api-key"] {
                let mut request = post(path, r#"{"model":"m"}"#);
                if !token.is_empty() {
                    let token = token.parse().unwrap();
                    request.headers_mut().insert(name, token);
                }
                let answer = send(gateway.addr(), request).await;
                assert_eq!(answer.status, 401, "{path} {token}");
                assert_eq!(answer.header("content-type"), "application/json");
                let text = format!(
                    "{:?} {}",
                    answer.headers,
                    String::from_utf8_lossy(&answer.body)
                );
                assert!(
                    answer.body.len() < 300 && !text.contains("right-token"),
                    "{text}"
                );
                assert!(
                    !text.contains("wrong") && !text.contains(env!("CARGO_PKG_VERSION")),
                    "{text}"
                );
                answers.push(answer.body);
            }
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{path}");
    }
    assert_eq!(mock.connections(), 0);
}

/// What a provider sends, and what of it is the caller's to see.
#[tokio::test]
async fn report_132_every_kind_of_answer_keeps_its_end_to_end_headers() {
    let stop = r#"data: {"choices":[{"index":0,"delta":{"content":"so"},"finish_reason":"stop"}]}"#;
    for (status, kind, body) in [
        (
            200,
            "application/json",
            r#"{"choices":[{"finish_reason":"stop","message":{"content":"so"}}]}"#.to_owned(),
        ),
        (
            200,
            "text/event-stream",
            format!("{stop}\n\ndata: [DONE]\n\n"),
        ),
        (
            429,
            "application/json",
            r#"{"error":{"type":"rate_limit_exceeded"}}"#.to_owned(),
        ),
        (400, "text/html", "no".to_owned()),
    ] {
        let raw = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nrequest-id: req_1\r\nx-request-id: req_2\r\n\
             anthropic-ratelimit-tokens-remaining: 7\r\nx-ratelimit-limit-requests: 8\r\nretry-after: 3600\r\n\
             openai-processing-ms: 9\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nconnection: x-secret\r\nx-secret: 1\r\n\
             proxy-authenticate: Basic\r\nconnection: close\r\n\r\n{body}"
        );
        let mock = Mock::start(Reply::raw(raw)).await.unwrap();
        let gateway = in_front_of(&mock).await;
        let request: fn() -> Request<_> = if kind == "text/event-stream" {
            stream
        } else {
            chat
        };
        let answer = send(gateway.addr(), request()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (status, body.as_bytes())
        );
        for (name, value) in [
            ("content-type", kind),
            ("request-id", "req_1"),
            ("x-request-id", "req_2"),
            ("anthropic-ratelimit-tokens-remaining", "7"),
            ("x-ratelimit-limit-requests", "8"),
            ("retry-after", "3600"),
            ("openai-processing-ms", "9"),
        ] {
            assert_eq!(answer.header(name), value, "{status} {kind}");
        }
        let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        for gone in ["x-secret", "proxy-authenticate"] {
            assert!(!answer.headers.contains_key(gone), "{gone}");
        }
    }
}

/// A breaker that opens at once, for so long.
fn touchy(cooldown: &str) -> String {
    format!(
        "[breaker]\ntrip = [{{ rule = \"consecutive\", failures = 1 }}]\ncooldown = \"{cooldown}\"\njitter = 0.0\n"
    )
}

#[tokio::test]
async fn report_152_a_rejection_says_when_to_come_back_or_that_it_is_of_no_use() {
    for (cooldown, worth_it) in [("7300ms", "true"), ("60s", "false")] {
        let mock = Mock::start(Reply::status(500)).await.unwrap();
        let text = format!(
            "{}{}{}",
            openai("a", &mock.url()),
            route(&["a"]),
            touchy(cooldown)
        );
        let gateway = gateway(&text).await;
        assert_eq!(send(gateway.addr(), chat()).await.status, 500);
        for request in [chat(), stream()] {
            let answer = send(gateway.addr(), request).await;
            assert_eq!(answer.status, 503);
            let millis: u64 = answer.header("retry-after-ms").parse().unwrap();
            let seconds: u64 = answer.header("retry-after").parse().unwrap();
            assert_eq!(seconds, millis.div_ceil(1_000));
            let most = if worth_it == "true" { 7_300 } else { 60_000 };
            assert!((1..=most).contains(&millis), "{millis}");
            assert_eq!(answer.header("x-should-retry"), worth_it);
        }
        assert_eq!(mock.hits(), 1);
    }
}

#[tokio::test]
async fn report_152_a_spent_quota_is_not_to_be_asked_again() {
    let spent =
        r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"spent"}}"#;
    let mock = Mock::start(Reply::status(429).body(spent)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    // The first is the provider's own word, the second the gateway's, whose key rests.
    for code in ["insufficient_quota", "circuit_open"] {
        let answer = send(gateway.addr(), chat()).await;
        assert_eq!((answer.status.as_u16(), mock.hits()), (429, 1));
        assert_eq!(answer.json()["error"]["code"], code);
        assert_eq!(answer.header("x-should-retry"), "false");
    }
}

#[tokio::test]
async fn report_153_what_was_repeated_to_the_end_is_not_to_be_repeated_again() {
    let reply = Reply::status(529)
        .header("x-should-retry", "true")
        .header("retry-after-ms", "1");
    for retries in [0, 2] {
        let mock = Mock::start(reply.clone()).await.unwrap();
        let route = route(&["a"]).replace("retries = 0", &format!("retries = {retries}"));
        let gateway = gateway(&format!("{}{route}", openai("a", &mock.url()))).await;
        let answer = send(gateway.addr(), chat()).await;
        assert_eq!((answer.status.as_u16(), mock.hits()), (529, retries + 1));
        // Where nothing was repeated, the provider's own word stands.
        let said = if retries == 0 { "true" } else { "false" };
        assert_eq!(answer.header("x-should-retry"), said);
        let health: Value = send(gateway.admin_addr(), get("/breakers")).await.json();
        assert_ne!(health, json!([]));
    }
}
