//! Presets: a breaker that behaves like a known system, by one word. Needs no provider.

use std::time::Duration;

use fuseline::{Breaker, Policy, PolicyError, PolicySpec, Preset, TripRule};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for preset in Preset::ALL {
        let policy = of(preset)?;
        let trip: Vec<_> = policy.trip().iter().map(in_words).collect();
        let cooldown = policy.cooldown().as_secs();
        println!("{:12} {}, {cooldown} s", preset.as_str(), trip.join("; "));
    }

    // By its name, as it stands in a configuration; what is written beside it wins.
    let spec = PolicySpec {
        preset: Some("vernllm".parse()?),
        cooldown: Some(Duration::from_secs(20)),
        jitter: Some(0.0),
        ..PolicySpec::default()
    };
    let breaker = Breaker::new("openai", Policy::new(&spec)?);
    for _ in 0..5 {
        let _ = breaker.call_blocking(|| Err::<(), _>("503"));
    }
    if let Err(refused) = breaker.call_blocking(|| Ok::<_, &str>("never asked")) {
        println!("{refused}");
    }

    // Mistakes are told all at once, each with its key, its value and what is allowed.
    let wrong = PolicySpec {
        probes: Some(0),
        backoff: Some(0.5),
        ..spec
    };
    if let Err(mistakes) = Policy::new(&wrong) {
        println!("{mistakes}");
    }
    Ok(())
}

fn of(preset: Preset) -> Result<Policy, PolicyError> {
    Policy::new(&PolicySpec {
        preset: Some(preset),
        ..PolicySpec::default()
    })
}

fn in_words(rule: &TripRule) -> String {
    match rule {
        TripRule::Consecutive { failures } => format!("a run of {failures}"),
        TripRule::Window { failures, window } => {
            format!("{failures} within {} s", window.as_secs())
        }
        TripRule::Rate {
            threshold,
            window,
            min_calls,
        } => {
            let share = threshold * 100.0;
            format!(
                "{share} % of at least {min_calls} within {} s",
                window.as_secs()
            )
        }
        other => format!("{other:?}"),
    }
}
