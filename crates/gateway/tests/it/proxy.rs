//! What crosses the gateway, and what does not.

use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Recorded, Reply};
use http::Request;
use http_body_util::Full;
use serde_json::json;

use crate::support::{
    Answer, CHAT, chat, config, gateway, get, openai, post, provider, route, send, within,
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
async fn a_request_arrives_byte_for_byte_but_for_its_credential() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let body = "{ \"messages\" : [ {\"content\":\"\\u00e9 \u{20ac}\"} ],\r\n\"model\":\t\"m\" , \"unknown\": 1e400 }\n";
    let mut request = post("/v1/chat/completions?a=%20b&c=d%2Fe&c=2", body);
    for (name, value) in [
        ("authorization", "Bearer of-the-caller"),
        ("x-api-key", "of-the-caller"),
        ("anthropic-beta", "one"),
        ("anthropic-beta", "two"),
        ("x-stainless-retry-count", "0"),
        ("x-fuseline-budget-ms", "1000"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("te", "trailers"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    assert_eq!(send(gateway.addr(), request).await.status, 200);
    let seen = last(&mock).await;
    assert_eq!(seen.target, "/v1/chat/completions?a=%20b&c=d%2Fe&c=2");
    assert_eq!(seen.body, body);
    assert_eq!(seen.header("authorization"), Some("Bearer key-of-a"));
    assert_eq!(seen.header("host"), Some(mock.addr().to_string().as_str()));
    assert_eq!(seen.header("x-stainless-retry-count"), Some("0"));
    let betas: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-beta")
        .map(|(_, value)| &value[..])
        .collect();
    assert_eq!(betas, [&b"one"[..], b"two"]);
    for gone in [
        "x-api-key",
        "x-fuseline-budget-ms",
        "connection",
        "x-hop",
        "te",
        "transfer-encoding",
    ] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
}

#[tokio::test]
async fn report_132_an_answer_arrives_with_all_its_end_to_end_headers() {
    let raw = "HTTP/1.1 200 OK\r\nconnection: close, x-secret\r\nx-secret: 1\r\nkeep-alive: timeout=5\r\n\
        set-cookie: a=1; Path=/\r\nset-cookie: b=2\r\nrequest-id: req_1\r\nx-ratelimit-remaining-tokens: 7\r\n\
        x-fuseline-degraded: theirs\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{ \"a\" : 1}";
    let mock = Mock::start(Reply::raw(raw)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(&answer.body[..], b"{ \"a\" : 1}");
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1; Path=/", "b=2"]);
    assert_eq!(answer.header("request-id"), "req_1");
    assert_eq!(answer.header("x-ratelimit-remaining-tokens"), "7");
    assert_eq!(answer.header("x-fuseline-degraded"), "theirs");
    assert_eq!(answer.header("x-fuseline-target"), "a/m");
    assert_eq!(answer.header("x-fuseline-attempts"), "1");
    assert_eq!(answer.header("x-fuseline-breaker"), "closed");
    assert_eq!(answer.header("x-fuseline-fallback"), "false");
    assert!(answer.header("x-fuseline-request-id").starts_with("fl-"));
    for gone in ["x-secret", "keep-alive", "connection"] {
        assert!(!answer.headers.contains_key(gone), "{gone}");
    }
}

#[tokio::test]
async fn the_model_is_rewritten_where_a_target_says_so_and_nothing_else_is() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "{}[[routes]]\nmodel = \"large\"\ntargets = [{{ provider = \"a\", model = \"small \\\"2\\\"\" }}]\n",
        openai("a", &mock.url())
    );
    let gateway = gateway(&text).await;
    let body = r#"{"model" :"other","messages":[{"model":"large"}], "mod\u0065l": "large" }"#;
    assert_eq!(send(gateway.addr(), post(CHAT, body)).await.status, 200);
    let expected =
        r#"{"model" :"small \"2\"","messages":[{"model":"large"}], "mod\u0065l": "small \"2\"" }"#;
    assert_eq!(last(&mock).await.body, expected);
}

#[tokio::test]
async fn report_131_every_form_of_base_url_hits_its_path_once_over_the_wire() {
    for (base, expected) in [
        ("", "/v1/chat/completions?x=1"),
        ("/", "/v1/chat/completions?x=1"),
        ("/v1", "/v1/chat/completions?x=1"),
        ("/v1/", "/v1/chat/completions?x=1"),
        ("/v4", "/v4/chat/completions?x=1"),
        (
            "/openai/deployments/d?api-version=9",
            "/openai/deployments/d/chat/completions?api-version=9&x=1",
        ),
    ] {
        let mock = Mock::start(Reply::ok()).await.unwrap();
        let text = format!(
            "{}{}",
            openai("a", &format!("{}{base}", mock.url())),
            route(&["a"])
        );
        let gateway = gateway(&text).await;
        send(
            gateway.addr(),
            post("/v1/chat/completions?x=1", r#"{"model":"m"}"#),
        )
        .await;
        assert_eq!(last(&mock).await.target, expected, "{base}");
    }
}

#[tokio::test]
async fn a_caller_s_key_goes_on_only_where_the_target_takes_it() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "[providers.a]\nprotocol = \"openai\"\nbase_url = \"{}\"\nauth = \"caller\"\n{}",
        mock.url(),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let mut request = chat();
    request
        .headers_mut()
        .insert("authorization", "Bearer of-the-caller".parse().unwrap());
    send(gateway.addr(), request).await;
    assert_eq!(
        last(&mock).await.header("authorization"),
        Some("Bearer of-the-caller")
    );
    let list = send(gateway.admin_addr(), get("/breakers")).await;
    assert!(!String::from_utf8_lossy(&list.body).contains("of-the-caller"));
}

#[tokio::test]
async fn client_tokens_are_asked_for_and_stay_here() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "client_tokens = [\"right\"]\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let with = |name: &'static str, value: &'static str| {
        let mut request = chat();
        request.headers_mut().insert(name, value.parse().unwrap());
        send(gateway.addr(), request)
    };
    let (missing, wrong) = (
        send(gateway.addr(), chat()).await,
        with("authorization", "Bearer wrong").await,
    );
    assert_eq!((missing.status.as_u16(), wrong.status.as_u16()), (401, 401));
    assert_eq!(missing.body, wrong.body);
    assert_eq!(mock.hits(), 0);
    assert_eq!(send(gateway.addr(), get("/v1/models")).await.status, 401);
    assert_eq!(send(gateway.addr(), get("/")).await.status, 200);
    assert_eq!(with("authorization", "Bearer right").await.status, 200);
    assert_eq!(with("x-api-key", "right").await.status, 200);
    for seen in mock.requests() {
        assert!(!format!("{:?}", seen.headers).contains("right"));
    }
}

#[tokio::test]
async fn refusals_come_in_the_callers_dialect() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "max_body = \"1KiB\"\n{}[[routes]]\nmodel = \"m\"\ntargets = [{{ provider = \"a\" }}]\n",
        openai("a", &mock.url())
    );
    let gateway = gateway(&text).await;
    let ask = |request| send(gateway.addr(), request);
    let unknown = ask(post(CHAT, r#"{"model":"x"}"#)).await;
    assert_eq!(
        (
            unknown.status.as_u16(),
            unknown.json()["error"]["code"].as_str()
        ),
        (404, Some("model_not_found"))
    );
    let long = ask(post(CHAT, vec![b' '; 5_000])).await;
    assert_eq!(
        (long.status.as_u16(), long.json()["error"]["code"].as_str()),
        (413, Some("request_too_large"))
    );
    let other = ask(post("/v1/messages", r#"{"model":"m"}"#)).await;
    assert_eq!(
        (other.status.as_u16(), other.json()["type"].as_str()),
        (400, Some("error"))
    );
    assert_eq!(other.json()["error"]["type"], "invalid_request_error");
    let long = ask(post("/v1/messages", vec![b' '; 5_000])).await;
    assert_eq!(
        (long.status.as_u16(), long.json()["error"]["type"].as_str()),
        (413, Some("request_too_large"))
    );
    let gemini = ask(post("/v1beta/models/m:generateContent", "{}")).await;
    assert_eq!(
        (
            gemini.status.as_u16(),
            gemini.json()["error"]["status"].as_str()
        ),
        (400, Some("INVALID_ARGUMENT"))
    );
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn upgrades_are_declined_and_an_offer_of_http2_is_ignored() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for (path, place) in [
        ("/v1/realtime", "/error/code"),
        ("/v1/messages", "/error/type"),
        ("/v1beta/x", "/error/status"),
    ] {
        let request = Request::get(path)
            .header("host", "g")
            .header("connection", "upgrade")
            .header("upgrade", "websocket");
        let answer = send(
            gateway.addr(),
            request.body(Full::<Bytes>::default()).unwrap(),
        )
        .await;
        assert_eq!(answer.status, 501);
        assert!(answer.json().pointer(place).is_some(), "{path}");
    }
    assert_eq!(mock.hits(), 0);
    let mut request = chat();
    request
        .headers_mut()
        .insert("upgrade", "h2c".parse().unwrap());
    assert_eq!(send(gateway.addr(), request).await.status, 200);
    assert_eq!(last(&mock).await.header("upgrade"), None);
}

#[tokio::test]
async fn a_not_modified_is_passed_on_and_a_switch_of_protocols_is_no_answer() {
    let mock = Mock::start(Reply::status(304)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    assert_eq!(send(gateway.addr(), get("/v1/files/x")).await.status, 304);
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    mock.set(Reply::raw(switch)).await.unwrap();
    let answer = send(gateway.addr(), chat()).await;
    assert_eq!(answer.status, 504);
    assert_eq!(
        answer.header("x-fuseline-why"),
        "a/m: server_error (status 101)"
    );
}

#[tokio::test]
async fn what_the_gateway_says_itself_says_why() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let why = async |request| {
        send(gateway.addr(), request)
            .await
            .header("x-fuseline-why")
            .to_owned()
    };
    assert_eq!(why(chat()).await, "answered at first try");
    assert_eq!(why(get("/")).await, "answered by the gateway");
    assert_eq!(
        why(post("/v1/messages", r#"{"model":"m"}"#)).await,
        "wrong_dialect"
    );
}

#[tokio::test]
async fn the_gateway_answers_for_itself_and_lists_its_routes() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "{}{}[[routes]]\nmodel = \"gpt-*\"\ntargets = [{{ provider = \"a\" }}]\n\
         [[routes]]\nmodel = \"claude\"\ntargets = [{{ provider = \"b\" }}]\n",
        openai("a", &mock.url()),
        provider("b", "anthropic", &mock.url()),
    );
    let gateway = gateway(&text).await;
    assert_eq!(
        send(gateway.addr(), get("/")).await.json()["name"],
        "fuseline"
    );
    let list = send(gateway.addr(), get("/v1/models")).await.json();
    assert_eq!(
        list["data"],
        json!([{"id": "gpt-*", "object": "model", "created": 0, "owned_by": "fuseline"}])
    );
    let mut request = get("/v1/models");
    request
        .headers_mut()
        .insert("anthropic-version", "2023-06-01".parse().unwrap());
    assert_eq!(
        send(gateway.addr(), request).await.json()["data"][0]["id"],
        "claude"
    );
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn what_is_no_create_call_goes_to_the_first_target_of_its_dialect_alone() {
    let (a, b, c) = (
        Mock::start(Reply::status(503).body("out")).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
        Mock::start(Reply::ok().body("counted")).await.unwrap(),
    );
    let text = format!(
        "{}{}{}{}[[routes]]\nmodel = \"claude\"\ntargets = [{{ provider = \"c\" }}]\n",
        openai("a", &a.url()),
        openai("b", &b.url()),
        provider("c", "anthropic", &c.url()),
        route(&["a", "b"]),
    );
    let gateway = gateway(&text).await;
    let files = send(gateway.addr(), get("/v1/files?limit=2")).await;
    assert_eq!(
        (files.status.as_u16(), &files.body[..], a.hits(), b.hits()),
        (503, &b"out"[..], 1, 0)
    );
    let count = send(
        gateway.addr(),
        post("/v1/messages/count_tokens", r#"{"model":"claude"}"#),
    )
    .await;
    assert_eq!(&count.body[..], b"counted");
    assert_eq!(last(&c).await.header("x-api-key"), Some("key-of-c"));
}

#[tokio::test]
async fn without_routes_each_provider_stands_under_its_name_with_the_callers_key() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let caller = |name: &str, protocol: &str, path: &str| {
        let base = format!("{}{path}", mock.url());
        format!(
            "[providers.{name}]\nprotocol = \"{protocol}\"\nbase_url = \"{base}\"\nauth = \"caller\"\n"
        )
    };
    let text = caller("groq", "openai", "/openai/v1")
        + &caller("anthropic", "anthropic", "")
        + &route(&["groq"]);
    let mut config = config(&text);
    config.routes.clear();
    config.pass_through = true;
    let gateway = Gateway::start(config).await.unwrap();
    let ask = async |path: &str| -> Answer {
        let mut request = post(path, r#"{"model":"m"}"#);
        request
            .headers_mut()
            .insert("authorization", "Bearer mine".parse().unwrap());
        send(gateway.addr(), request).await
    };
    for (path, expected) in [
        ("/groq/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/groq/chat/completions", "/openai/v1/chat/completions"),
        (
            "/groq/openai/v1/chat/completions",
            "/openai/v1/chat/completions",
        ),
        ("/anthropic/v1/messages", "/v1/messages"),
    ] {
        assert_eq!(ask(path).await.status, 200, "{path}");
        let seen = mock.requests().pop().unwrap();
        assert_eq!(
            (seen.target.as_str(), seen.header("authorization")),
            (expected, Some("Bearer mine"))
        );
    }
    assert_eq!(ask("/v1/chat/completions").await.status, 404);
    assert_eq!(ask("/nobody/v1/chat/completions").await.status, 404);
}
