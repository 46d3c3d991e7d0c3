//! A request of any method, path, query, headers and body to the admin routes: answered without a panic and without a secret,
//! and what is wrong with it is told as JSON. Written as in HTTP: a line, headers, an empty line, the body.
#![no_main]

use std::sync::{LazyLock, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

const SECRET: &[u8] = b"sk-canary";

static SERVER: LazyLock<(Runtime, Mutex<Router>)> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let entered = runtime.enter();
    let router = fuseline_gateway::admin_router().expect("a configuration without mistakes");
    drop(entered);
    (runtime, Mutex::new(router))
});

fuzz_target!(|input: &[u8]| {
    if is_told(input) {
        return;
    }
    let Some(request) = read(input) else { return };
    let (runtime, router) = &*SERVER;
    runtime.block_on(async {
        let mut router = router.lock().expect("no panic before").clone();
        let answered = router.call(request).await;
        check(answered.unwrap_or_else(|never| match never {})).await;
    });
});

fn is_told(text: &[u8]) -> bool {
    text.windows(SECRET.len()).any(|part| part == SECRET)
}

fn read(input: &[u8]) -> Option<Request<Body>> {
    let end = input.windows(2).position(|two| two == b"\n\n");
    let (head, body) = input.split_at(end.unwrap_or(input.len()));
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut words = lines.next()?.splitn(2, |byte| *byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(at);
        request = request.header(name, value[1..].trim_ascii());
    }
    let body = body.get(2..).unwrap_or_default();
    request.body(Body::from(body.to_vec())).ok()
}

async fn check(answer: Response) {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE);
    let kind = kind.map(|kind| kind.as_bytes().to_vec());
    assert!(!status.is_server_error(), "{status}");
    if kind.as_deref() == Some(b"text/event-stream") {
        return;
    }
    let body = to_bytes(answer.into_body(), usize::MAX).await;
    let body = body.expect("what is answered can be read");
    assert!(!is_told(&body));
    if status.is_client_error() && !body.is_empty() {
        assert_eq!(kind.as_deref(), Some(&b"application/json"[..]));
        let told: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(told["error"].is_string());
    }
}
