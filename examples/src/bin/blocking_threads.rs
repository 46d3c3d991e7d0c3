//! Threads without async, sharing one breaker. The provider's address is the first argument.

use std::thread;

use fuseline::{Breaker, Error, Policy};
use serde_json::{Value, json};

fn main() {
    let openai = Breaker::new("openai", Policy::default());

    thread::scope(|threads| {
        for worker in 1..=4 {
            let openai = &openai;
            threads.spawn(move || {
                for _ in 0..4 {
                    match openai.call_blocking(|| ask("Why is the sky blue?")) {
                        Ok(answer) => println!("{worker}: {answer}"),
                        Err(Error::Open(refused)) => println!("{worker}: not asked: {refused}"),
                        Err(error) => println!("{worker}: asked in vain: {error}"),
                    }
                }
            });
        }
    });
    println!("the breaker is {}", openai.state());
}

/// A blocking call as you have it today.
fn ask(prompt: &str) -> Result<String, reqwest::Error> {
    let base_url = std::env::args().nth(1);
    let base_url = base_url.unwrap_or_else(|| "http://127.0.0.1:8090/v1".to_owned());
    let answer = reqwest::blocking::Client::new()
        .post(base_url + "/chat/completions")
        .json(&json!({"model": "gpt-5-mini", "messages": [{"role": "user", "content": prompt}]}))
        .send()?
        .error_for_status()?;
    let answer: Value = answer.json()?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    Ok(text.unwrap_or_default().to_owned())
}
