//! A chain with fallback: a second provider answers while the first is out. Their addresses are the two arguments.

use std::time::Duration;

use fuseline::{Breaker, Chain, Kind, Outcome, Policy};
use serde_json::{Value, json};

#[derive(Clone)]
struct Target {
    base_url: String,
    model: &'static str,
}

#[tokio::main]
async fn main() {
    let mut urls = std::env::args().skip(1);
    let mut target = |model| Target {
        base_url: urls
            .next()
            .unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned()),
        model,
    };
    let (large, spare) = (target("gpt-5"), target("llama-3.3-70b"));

    let chain = Chain::builder()
        .target(Breaker::new("openai", Policy::default()), large)
        .target(Breaker::new("groq", Policy::default()), spare)
        .with_classifier(judge);

    for _ in 0..7 {
        let answer = chain.call(|target| ask(target, "Why is the sky blue?"));
        match answer.await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("We are busy, please try again: {error}"),
        }
    }
}

async fn ask(target: Target, prompt: &str) -> Result<String, reqwest::Error> {
    let messages = json!([{"role": "user", "content": prompt}]);
    let answer = reqwest::Client::new()
        .post(target.base_url + "/chat/completions")
        .json(&json!({"model": target.model, "messages": messages}))
        .send()
        .await?
        .error_for_status()?;
    let answer: Value = answer.json().await?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    Ok(text.map_or_else(String::new, |text| format!("{}: {text}", target.model)))
}

/// What a result says about the provider. A failure goes on to the next target; a request that is at fault does not.
fn judge(result: &Result<String, reqwest::Error>, took: Duration) -> Outcome {
    let error = match result {
        Ok(text) if text.is_empty() => return Outcome::failure(Kind::EmptyResponse),
        Ok(_) => return Outcome::success(took),
        Err(error) => error,
    };
    Outcome::failure(match error.status().map(|status| status.as_u16()) {
        Some(429) => Kind::RateLimit,
        Some(400..=499) => Kind::BadRequest,
        Some(_) => Kind::ServerError,
        None if error.is_timeout() => Kind::Timeout,
        None => Kind::Network,
    })
}
