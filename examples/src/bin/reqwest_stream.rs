//! Streams through your own `reqwest::Client`: a stream that breaks off is a failure. The address is the first argument.

use std::time::Duration;

use fuseline::{Breaker, Policy};
use serde_json::json;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    // Your client, with your TLS, proxies, pools and limits. A stream wants a limit on silence, not on the whole.
    let http = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(Duration::from_secs(30))
        .build()?;
    let breaker = Breaker::new("openai", Policy::default());
    let openai = fuseline::reqwest::Client::new(breaker, http);

    for _ in 0..7 {
        match tell(&openai, "Tell me a story.").await {
            Ok(bytes) => println!("-- {bytes} bytes"),
            Err(error) => println!("-- {error}"),
        }
    }
    Ok(())
}

/// Prints what comes, as it comes. The stream is watched: its end marker settles the call, anything else ends it with an
/// error; leaving earlier says nothing about the provider.
async fn tell(openai: &fuseline::reqwest::Client, prompt: &str) -> Result<usize, Failed> {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());
    let messages = json!([{"role": "user", "content": prompt}]);
    let request = openai
        .inner()
        .post(base_url + "/chat/completions")
        .json(&json!({"model": "gpt-5-mini", "stream": true, "messages": messages}));

    // A real `reqwest::Response`. A 503 is counted by its status, a 400 is not, and a long `retry-after` is kept.
    let mut answer = openai.send(request).await?.error_for_status()?;
    let mut bytes = 0;
    while let Some(chunk) = answer.chunk().await? {
        bytes += chunk.len();
        print!("{}", String::from_utf8_lossy(&chunk));
    }
    Ok(bytes)
}
