//! Quick start: one breaker around one async call. The provider's address is the first argument.

use fuseline::{Breaker, Error, Policy};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    // One for each provider, next to its client. Clones are handles on the same breaker.
    let openai = Breaker::new("openai", Policy::default());

    for _ in 0..7 {
        match openai.call(ask("Why is the sky blue?")).await {
            Ok(answer) => println!("{answer}"),
            Err(Error::Open(refused)) => println!("not asked: {refused}"),
            Err(error) => println!("asked in vain: {error}"),
        }
    }
}

/// A call as you have it today. Here every error counts; `chain.rs` tells the caller's own mistakes apart.
async fn ask(prompt: &str) -> Result<String, reqwest::Error> {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());
    let answer = reqwest::Client::new()
        .post(base_url + "/chat/completions")
        .json(&json!({"model": "gpt-5-mini", "messages": [{"role": "user", "content": prompt}]}))
        .send()
        .await?
        .error_for_status()?;
    let answer: Value = answer.json().await?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    Ok(text.unwrap_or_default().to_owned())
}
