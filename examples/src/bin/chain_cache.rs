//! A chain whose last resort is what was answered before. The provider's address is the argument.

use std::time::Duration;

use fuseline::{Breaker, Cache, Chain, Policy};
use serde_json::{Value, json};

const TEN_MINUTES: Duration = Duration::from_secs(600);

#[tokio::main]
async fn main() {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());
    let chain = Chain::builder()
        .target(Breaker::new("large", Policy::default()), "gpt-5")
        .target(Breaker::new("small", Policy::default()), "gpt-5-nano")
        .cache(Cache::new(64 << 20, TEN_MINUTES, |_, answer: &String| {
            answer.len()
        }));

    // Whatever an answer depends on is in the key: here the user, and his question.
    for key in [("ann", "Why?"), ("ann", "Why?"), ("ben", "Why?")] {
        match chain.call(key, |model| ask(&base_url, model, key.1)).await {
            Ok(answer) if answer.age.is_some() => println!("{} (an old answer)", answer.value),
            Ok(answer) => println!("{}", answer.value),
            Err(error) => println!("We are busy, please try again: {error}"),
        }
    }
}

async fn ask(base_url: &str, model: &str, prompt: &str) -> Result<String, reqwest::Error> {
    let messages = json!([{"role": "user", "content": prompt}]);
    let answer = reqwest::Client::new()
        .post(format!("{base_url}/chat/completions"))
        .json(&json!({"model": model, "messages": messages}))
        .send()
        .await?
        .error_for_status()?;
    let answer: Value = answer.json().await?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    Ok(text.unwrap_or_default().to_owned())
}
