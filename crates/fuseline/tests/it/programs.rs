//! The public API reviewed by use: five programs as people write them, each at most 20 lines of ours.

use std::sync::{LazyLock, RwLock};
use std::time::Duration;

use fuseline::{
    Breaker, CircuitOpen, Classify, Error, Kind, Outcome, Policy, PolicySpec, Registry,
    RegistryError, State, TripRule,
};

type Failed = Box<dyn std::error::Error>;

#[test]
fn an_options_object_with_a_preset_by_one_word() -> Result<(), Failed> {
    let options = PolicySpec {
        preset: Some("vernllm".parse()?),
        cooldown: Some(Duration::from_secs(20)),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new("openai", Policy::new(&options)?);

    for _ in 0..5 {
        let _ = breaker.call_blocking(|| Err::<(), _>("503"));
    }
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(breaker.policy().cooldown(), Duration::from_secs(20));
    Ok(())
}

#[test]
fn the_same_options_read_from_a_configuration() -> Result<(), Failed> {
    let options: PolicySpec = serde_json::from_str(
        r#"{
            "preset": "llmtest-rate",
            "cooldown": "20s",
            "trip": [{"rule": "rate", "threshold": 0.5, "window": "30s", "min_calls": 4}],
            "kinds": {"rate_limit": {"count": false}}
        }"#,
    )?;
    let breaker = Breaker::new("openai", Policy::new(&options)?);

    for _ in 0..4 {
        breaker.try_acquire()?.failure(Kind::RateLimit);
    }
    assert_eq!(breaker.state(), State::Closed, "they do not count");
    for _ in 0..4 {
        breaker.try_acquire()?.failure(Kind::Timeout);
    }
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(breaker.policy().cooldown(), Duration::from_secs(20));
    Ok(())
}

#[test]
fn a_rate_rule_and_an_own_classifier() -> Result<(), Failed> {
    let rate = TripRule::Rate {
        threshold: 0.5,
        window: Duration::from_secs(30),
        min_calls: 4,
    };
    let options = PolicySpec {
        trip: Some(vec![rate]),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new("openai", Policy::new(&options)?).with_classifier(
        |answer: &Result<String, u16>, took: Duration| match answer {
            Ok(text) if text.is_empty() => Outcome::failure(Kind::EmptyResponse),
            Err(400..=499) => Outcome::Neutral,
            Err(_) => Outcome::failure(Kind::ServerError),
            Ok(_) => Outcome::success(took),
        },
    );

    let empty = || Ok(String::new());
    for answer in [Err(404), Ok("hi".into()), Ok("ho".into()), Err(500)] {
        let _ = breaker.call_blocking(|| answer);
        assert_eq!(breaker.breaker().state(), State::Closed);
    }
    let _ = breaker.call_blocking(empty);
    assert_eq!(breaker.breaker().state(), State::Open, "2 of 4");
    Ok(())
}

#[test]
fn a_named_factory_with_live_options() -> Result<(), Failed> {
    struct Factory {
        registry: Registry,
        options: RwLock<Policy>,
    }
    impl Factory {
        fn breaker(&self, name: &str) -> Result<Breaker, RegistryError> {
            let options = self.options.read().unwrap().clone();
            self.registry.get_breaker(name, &options)
        }
        fn set(&self, options: Policy) {
            self.registry.reconfigure_all(&options);
            *self.options.write().unwrap() = options;
        }
    }

    let factory = Factory {
        registry: Registry::default(),
        options: RwLock::default(),
    };
    let held = factory.breaker("openai")?;
    factory.set(Policy::new(&PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures: 1 }]),
        ..PolicySpec::default()
    })?);
    let _ = factory
        .breaker("openai")?
        .call_blocking(|| Err::<(), _>("503"));
    assert_eq!(
        held.state(),
        State::Open,
        "the options live, the breaker is the same"
    );
    Ok(())
}

#[test]
fn one_singleton_for_each_of_several_providers() {
    static OPENAI: LazyLock<Breaker> = LazyLock::new(|| Breaker::new("openai", Policy::default()));
    static ANTHROPIC: LazyLock<Breaker> =
        LazyLock::new(|| Breaker::new("anthropic", Policy::default()));

    OPENAI.force_open(None);
    assert!(OPENAI.call_blocking(|| Ok::<_, ()>("hi")).is_err());
    assert_eq!(ANTHROPIC.call_blocking(|| Ok::<_, ()>("hi")), Ok("hi"));
}

#[tokio::test]
async fn a_guarded_function_with_a_fallback() {
    async fn ask(prompt: &str) -> Result<String, std::io::Error> {
        Err(std::io::Error::other(format!("{prompt}: overloaded")))
    }
    async fn answer(breaker: &Breaker, prompt: &str) -> String {
        let asked = breaker.call(ask(prompt)).await;
        asked.unwrap_or_else(|_| "We are busy. Please try again soon.".to_owned())
    }

    let breaker = Breaker::new("openai", Policy::default());
    for _ in 0..6 {
        assert!(answer(&breaker, "Why?").await.starts_with("We are busy"));
    }
    assert_eq!(breaker.state(), State::Open);
}

/// What an application has anyway: its own error, and what it means.
#[derive(Debug)]
enum AppError {
    Status(u16),
    Busy(CircuitOpen),
}

impl From<CircuitOpen> for AppError {
    fn from(refused: CircuitOpen) -> Self {
        Self::Busy(refused)
    }
}

#[derive(Clone)]
struct Judge;

impl<T> Classify<T, AppError> for Judge {
    fn classify(&self, result: &Result<T, AppError>, took: Duration) -> Outcome {
        match result {
            Ok(_) => Outcome::success(took),
            Err(AppError::Status(500..)) => Outcome::failure(Kind::ServerError),
            Err(_) => Outcome::Neutral,
        }
    }
}

#[test]
fn a_type_of_ones_own_judges_calls_of_several_types_and_one_error_comes_back() {
    let breaker = Breaker::new(format!("openai-{}", 1), Policy::default()).with_classifier(Judge);
    let text = breaker.call_blocking(|| Ok("hi"));
    let number = breaker.call_blocking(|| Err::<u8, _>(AppError::Status(404)));
    assert!(text.is_ok() && number.is_err());
    for _ in 0..5 {
        let _ = breaker.call_blocking(|| Err::<(), _>(AppError::Status(503)));
    }
    let ask = || breaker.call_blocking(|| Ok(1)).map_err(Error::flatten);
    match ask() {
        Err(AppError::Busy(refused)) => assert_eq!(refused.name.to_string(), "openai-1"),
        other => panic!("it is open, not {other:?}"),
    }
}
