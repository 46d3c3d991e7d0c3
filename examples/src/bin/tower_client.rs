//! A layer for an HTTP client that is a tower service, here hyper's. The provider's address is the first argument.

use bytes::Bytes;
use fuseline::tower::BreakerLayer;
use fuseline::{Breaker, Policy};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());

    let breaker = Breaker::new("openai", Policy::default());
    let mut client = ServiceBuilder::new()
        .layer(BreakerLayer::new(breaker.clone()))
        // What stands below is guarded: put time limits here, and retries above.
        .service(Client::builder(TokioExecutor::new()).build_http());

    for _ in 0..7 {
        let request = http::Request::post(format!("{base_url}/chat/completions"));
        let request = request.body(Full::new(Bytes::from(r#"{"model": "gpt-5-mini"}"#)))?;
        match client.ready().await?.call(request).await {
            Ok(answer) => {
                let status = answer.status();
                let body = answer.into_body().collect().await?.to_bytes();
                println!("{status}, {} bytes", body.len());
            }
            Err(error) if error.is_open() => println!("not asked: {error}"),
            Err(error) => println!("asked in vain: {error}"),
        }
    }
    println!("the breaker is {}", breaker.state());
    Ok(())
}
