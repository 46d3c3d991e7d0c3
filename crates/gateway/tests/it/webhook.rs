//! Transitions posted to others.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fuseline_mock::{Mock, Reply};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{SOON, chat, gateway, get, openai, route, send, spawn, until, within};

/// Who gets the news: its answers in turn, the last one again and again, and what came.
#[derive(Clone)]
struct Receiver {
    url: String,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    async fn start(answers: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook/secret-path", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let seen = Arc::clone(&got);
        spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                let service = service_fn(move |request: Request<Incoming>| {
                    let seen = Arc::clone(&seen);
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await?.to_bytes();
                        let mut seen = seen.lock().unwrap();
                        let status = answers[seen.len().min(answers.len() - 1)];
                        seen.push((path, serde_json::from_slice(&body).unwrap()));
                        let mut answer = Response::new(Full::new(Bytes::new()));
                        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                        Ok::<_, hyper::Error>(answer)
                    }
                });
                let http = hyper::server::conn::http1::Builder::new();
                spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        got.iter().map(|(_, body)| body.clone()).collect()
    }

    async fn wait_for(&self, news: usize) -> Vec<Value> {
        until(async || self.got().len() >= news).await;
        self.got()
    }
}

#[tokio::test]
async fn an_opening_is_told_in_each_shape_and_what_was_not_asked_for_is_not() {
    let (plain, slack) = (Receiver::start(&[200]).await, Receiver::start(&[200]).await);
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let text = format!(
        "[[webhooks]]\nurl = \"{}\"\n[[webhooks]]\nurl = \"{}\"\nformat = \"slack\"\nstates = [\"degraded\", \"open\"]\n{}{}",
        plain.url,
        slack.url,
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    for _ in 0..5 {
        send(gateway.addr(), chat()).await;
    }
    let told = plain.wait_for(1).await;
    assert_eq!(told.len(), 1, "degraded is not asked for: {told:?}");
    assert_eq!(
        (
            &told[0]["event"],
            &told[0]["breaker"],
            &told[0]["from"],
            &told[0]["to"]
        ),
        (
            &json!("transition"),
            &json!("a/m"),
            &json!("degraded"),
            &json!("open")
        )
    );
    assert_eq!(plain.got.lock().unwrap()[0].0, "/hook/secret-path");
    let told = slack.wait_for(2).await;
    let degraded = told[0]["text"].as_str().unwrap();
    let start = ":large_yellow_circle: *a/m* is degraded (was closed): pressure";
    assert!(degraded.starts_with(start), "{degraded}");
    let opened = told[1]["text"].as_str().unwrap();
    let start = ":red_circle: *a/m* is open (was degraded): consecutive 5/5, overloaded";
    assert!(opened.starts_with(start), "{opened}");
}

#[tokio::test]
async fn what_may_pass_is_posted_again_and_a_refusal_is_not() {
    let (busy, strict) = (
        Receiver::start(&[503, 429, 200]).await,
        Receiver::start(&[404]).await,
    );
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let hook = |url: &str| {
        format!("[[webhooks]]\nurl = \"{url}\"\nstates = [\"forced_open\", \"closed\"]\n")
    };
    let (a, route) = (openai("a", &mock.url()), route(&["a"]));
    let gateway = gateway(&format!(
        "{}{}{a}{route}",
        hook(&busy.url),
        hook(&strict.url)
    ))
    .await;
    let admin = gateway.admin_addr();
    let force = crate::support::post("/breakers/a/force", r#"{"to":"open"}"#);
    assert_eq!(send(admin, force).await.status, 200);
    let told = busy.wait_for(3).await;
    assert!(told.iter().all(|news| *news == told[0]));
    let release = crate::support::post("/breakers/a/release", "");
    assert_eq!(send(admin, release).await.status, 200);
    assert_eq!(busy.wait_for(4).await[3]["to"], "closed");
    let told = strict.wait_for(2).await;
    assert_eq!(
        (&told[0]["to"], &told[1]["to"]),
        (&json!("forced_open"), &json!("closed"))
    );
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_nobody_up() {
    // It accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "[[webhooks]]\nurl = \"http://{}/\"\n{}{}",
        silent.local_addr().unwrap(),
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let (_connection, _) = {
        let reset = crate::support::post("/breakers/a/force", r#"{"to":"open"}"#);
        send(gateway.admin_addr(), reset).await;
        within(silent.accept()).await.unwrap()
    };
    for _ in 0..600 {
        let reset = crate::support::post("/breakers/a/reset", "");
        send(gateway.admin_addr(), reset).await;
    }
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    assert_eq!(send(gateway.admin_addr(), get("/readyz")).await.status, 200);
    tokio::time::timeout(SOON, gateway.shutdown())
        .await
        .unwrap();
}
