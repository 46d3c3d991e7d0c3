//! A streamed answer, collected: it is whole, with all arguments of its tool calls, or it is none. The address is the
//! first argument.

use fuseline::classify::{Collector, Dialect, Framing};
use fuseline::{Breaker, Completion, Policy};
use http_body_util::BodyDataStream;
use serde_json::json;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let breaker = Breaker::new("openai", Policy::default());
    let openai = fuseline::reqwest::Client::new(breaker, reqwest::Client::new());
    for _ in 0..7 {
        match ask(&openai, "Why?").await {
            Ok(answer) => println!("{}", answer.text),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}

async fn ask(openai: &fuseline::reqwest::Client, prompt: &str) -> Result<Completion, Failed> {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());
    let messages = json!([{"role": "user", "content": prompt}]);
    let request = openai
        .inner()
        .post(base_url + "/chat/completions")
        .json(&json!({"model": "gpt-5-mini", "stream": true, "messages": messages}));

    // The client watches the stream: a silence, a cut or an error in it ends it, and counts.
    let answer = openai.send(request).await?.error_for_status()?;
    let stream = BodyDataStream::new(reqwest::Body::from(answer));
    // Any other stream of bytes: `breaker.call_bytes(...)`, then `collect()`.
    let collector = Collector::new(Dialect::OpenAiChat, Framing::Sse);
    Ok(fuseline::collect(stream, collector).await?)
}
