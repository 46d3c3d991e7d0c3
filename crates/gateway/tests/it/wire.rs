//! Requests and answers that are legal, rare, and easily passed on wrongly; and some that are not legal.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{
    CHAT, breaker, chat, gateway, get, open, openai, post, provider, route, send, within,
};

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

#[tokio::test]
async fn report_145_an_answer_with_both_framing_headers_is_passed_on_whole() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n\
                  10\r\n0123456789abcdef\r\n0\r\n\r\n";
    let mock = Mock::start(Reply::raw(answer)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for request in [chat(), get("/v1/files/x")] {
        let answer = send(gateway.addr(), request).await;
        assert_eq!(&answer.body[..], b"0123456789abcdef");
    }
}

#[tokio::test]
async fn report_145_a_request_with_both_framing_headers_is_one_request() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for framing in [
        "content-length: 13\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 13",
    ] {
        let mut caller = TcpStream::connect(gateway.addr()).await.unwrap();
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: g\r\n{framing}\r\n\r\n\
             0\r\n\r\nGET /admin HTTP/1.1\r\nhost: g\r\n\r\n"
        );
        caller.write_all(request.as_bytes()).await.unwrap();
        let mut answers = String::new();
        within(caller.read_to_string(&mut answers)).await.unwrap();
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    }
    let seen = mock.requests();
    assert_eq!(seen.len(), 2);
    for request in seen {
        assert_eq!(request.target, CHAT);
        assert_eq!(request.header("transfer-encoding"), None);
        assert_eq!(request.header("content-length"), Some("0"));
    }
}

#[tokio::test]
async fn an_upload_of_nothing_says_so() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for request in [post("/v1/batches/b/cancel", ""), get("/v1/batches/b")] {
        send(gateway.addr(), request).await;
    }
    let lengths: Vec<_> = mock
        .requests()
        .iter()
        .map(|seen| seen.header("content-length").map(str::to_owned))
        .collect();
    assert_eq!(lengths, [Some("0".to_owned()), None]);
}

#[tokio::test]
async fn what_has_not_changed_is_nobodys_fault() {
    let mock = Mock::start(Reply::status(304)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for _ in 0..8 {
        let answer = send(gateway.addr(), get("/v1/files/x")).await;
        assert_eq!(answer.status, 304);
        assert_eq!(answer.header("x-fuseline-why"), "answered at first try");
    }
    assert_eq!(breaker(&gateway, "a/-").await["run"], 0);
}

#[tokio::test]
async fn a_base_url_that_ends_in_a_slash_still_hits_its_path() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for path in ["//v1/chat/completions", "/v1//chat/completions"] {
        let answer = send(gateway.addr(), post(path, r#"{"model":"m"}"#)).await;
        assert_eq!(answer.header("x-fuseline-target"), "a/m");
    }
    assert_eq!(mock.hits_at(CHAT), 2);
}

#[tokio::test]
async fn nothing_leaves_the_path_of_a_base_url_or_asks_for_the_key_back() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let base = format!("{}/models/v1", mock.url());
    let gateway = gateway(&format!("{}{}", openai("a", &base), route(&["a"]))).await;
    for path in ["/v1/../../admin", "/v1/%2e%2e/%2E%2e/admin"] {
        let answer = send(gateway.addr(), get(path)).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.json()["error"]["code"], "not_found");
    }
    let request = |method, path| {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "gateway")
            .body(Full::default())
            .unwrap()
    };
    let options = send(gateway.addr(), request(Method::OPTIONS, "*")).await;
    assert_eq!(options.status, 404);
    let trace = send(gateway.addr(), request(Method::TRACE, CHAT)).await;
    assert_eq!(trace.status, 405);
    assert_eq!(trace.json()["error"]["code"], "method_not_allowed");
    assert_eq!(mock.connections(), 0);
}

#[tokio::test]
async fn a_reason_that_the_provider_gave_is_passed_on() {
    let answer = "HTTP/1.1 529 Site is overloaded\r\ncontent-length: 2\r\n\r\nno";
    let mock = Mock::start(Reply::raw(answer)).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let answer = open(gateway.addr(), chat()).await;
    let reason = answer.extensions().get::<hyper::ext::ReasonPhrase>();
    assert_eq!(reason.unwrap().as_bytes(), b"Site is overloaded");
    assert_eq!(
        within(answer.collect()).await.unwrap().to_bytes(),
        "no".as_bytes()
    );
}

#[tokio::test]
async fn anthropics_sdk_is_known_by_its_version_on_paths_that_two_dialects_share() {
    let (a, b) = (
        Mock::start(Reply::ok()).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let gateway = gateway(&format!(
        "{}{}{}[[routes]]\nmodel = \"claude\"\ntargets = [{{ provider = \"b\" }}]\n",
        openai("a", &a.url()),
        provider("b", "anthropic", &b.url()),
        route(&["a"]),
    ))
    .await;
    let versioned = |mut request: Request<_>| {
        let version = "2023-06-01".parse().unwrap();
        request.headers_mut().insert("anthropic-version", version);
        request
    };
    send(gateway.addr(), versioned(get("/v1/models/claude"))).await;
    assert_eq!((a.hits(), b.hits_at("/v1/models/claude")), (0, 1));
    // An OpenAI SDK with a header too many.
    send(gateway.addr(), versioned(chat())).await;
    assert_eq!((a.hits_at(CHAT), b.hits()), (1, 1));
}

#[tokio::test]
async fn a_head_up_to_32_kib_is_read_and_one_beyond_64_is_not() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for (length, status) in [(30 << 10, 200), (70 << 10, 431)] {
        let mut request = chat();
        let long = "x".repeat(length).parse().unwrap();
        request.headers_mut().insert("x-long", long);
        assert_eq!(send(gateway.addr(), request).await.status, status);
    }
    assert_eq!(mock.requests()[0].header("x-long").unwrap().len(), 30 << 10);
}
