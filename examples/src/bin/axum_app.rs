//! A web application with a breaker before its provider. The provider's address is the first argument, where to listen
//! the second.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use fuseline::{Breaker, Error, Policy};
use http::StatusCode;
use http::header::RETRY_AFTER;
use tokio::net::TcpListener;

#[derive(Clone)]
struct App {
    openai: fuseline::reqwest::Client,
    base_url: String,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let breaker = Breaker::new("openai", Policy::default());
    let app = App {
        openai: fuseline::reqwest::Client::new(breaker, reqwest::Client::new()),
        base_url: argument("http://127.0.0.1:8090/v1"),
    };

    let routes = Router::new()
        .route("/chat", post(chat))
        .route("/readyz", get(ready))
        .with_state(app);
    let listener = TcpListener::bind(argument("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, routes).await
}

/// Hands a chat request on. While the provider is out, callers learn at once when to come back.
async fn chat(State(app): State<App>, body: String) -> Response {
    let url = app.base_url + "/chat/completions";
    let request = app.openai.inner().post(url).body(body);
    let answer = match app.openai.send(request).await {
        Ok(answer) => answer,
        Err(Error::Open(refused)) => {
            let seconds = refused.retry_after.as_millis().div_ceil(1_000);
            let wait = [(RETRY_AFTER, seconds.to_string())];
            return (StatusCode::SERVICE_UNAVAILABLE, wait, refused.to_string()).into_response();
        }
        Err(_) => return (StatusCode::BAD_GATEWAY, "no answer").into_response(),
    };
    let status = answer.status();
    match answer.bytes().await {
        Ok(whole) => (status, whole).into_response(),
        Err(_) => (StatusCode::BAD_GATEWAY, "half an answer").into_response(),
    }
}

/// Says how the provider is, without asking it.
async fn ready(State(app): State<App>) -> String {
    format!("openai: {}\n", app.openai.breaker().state())
}
