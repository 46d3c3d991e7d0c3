//! `Subject`: what is compared: settings of a breaker, or none.

use core::time::Duration;

use fuseline_core::{Count, Mode, OnSuccess, Policy, PolicySpec, Preset, TripRule};

/// One thing set otherwise.
type Change = fn(&mut PolicySpec);

/// Settings under a name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Subject {
    /// How it is called in tables.
    pub name: String,
    /// The breaker's settings.
    pub policy: Policy,
    /// The driver's own limit for a whole answer, as in the preset `n4n`.
    pub(crate) limit: Option<Duration>,
}

impl Subject {
    /// These settings.
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        Self {
            name: name.into(),
            policy,
            limit: None,
        }
    }

    /// The same retries and the same fallback, and no breaker.
    pub fn no_breaker() -> Self {
        Self::written(
            "no breaker",
            &PolicySpec {
                mode: Some(Mode::Off),
                ..PolicySpec::default()
            },
        )
    }

    /// Fuseline as it comes.
    pub fn defaults() -> Self {
        Self::written("defaults", &PolicySpec::default())
    }

    /// Fuseline set to behave as a known system.
    pub fn preset(preset: Preset) -> Self {
        let spec = PolicySpec {
            preset: Some(preset),
            ..PolicySpec::default()
        };
        Self {
            limit: (preset == Preset::N4n).then_some(Duration::from_secs(20)),
            ..Self::written(preset.as_str(), &spec)
        }
    }

    /// No breaker, the defaults, and each preset.
    pub fn systems() -> Vec<Self> {
        let presets = Preset::ALL.map(Self::preset);
        let ours = [Self::no_breaker(), Self::defaults()];
        ours.into_iter().chain(presets).collect()
    }

    /// The defaults first, then with one thing changed each.
    pub fn variants() -> Vec<Self> {
        let half = rate(0.5, 60, 10);
        let rules = [
            ("3 in a row", vec![run(3), half]),
            ("4 in a row", vec![run(4), half]),
            ("8 in a row", vec![run(8), half]),
            ("without the rate", vec![run(5)]),
            ("without the run", vec![half]),
            ("rate 0.25", vec![run(5), rate(0.25, 60, 10)]),
            ("rate 0.25 of 20", vec![run(5), rate(0.25, 60, 20)]),
            ("with slow: half over 5 s", vec![run(5), half, slow()]),
        ];
        let changes: [(&str, Change); 9] = [
            ("on_success decrement", |spec| {
                spec.on_success = Some(OnSuccess::Decrement);
            }),
            ("cooldown 5 s", |spec| spec.cooldown = secs(5)),
            ("cooldown 30 s", |spec| spec.cooldown = secs(30)),
            ("no backoff", |spec| spec.backoff = Some(1.0)),
            ("max_cooldown 1 min", |spec| spec.max_cooldown = secs(60)),
            ("max_cooldown 5 min", |spec| spec.max_cooldown = secs(300)),
            ("1 success to close", |spec| {
                spec.successes_to_close = Some(1);
            }),
            ("4 successes to close", |spec| {
                spec.successes_to_close = Some(4);
            }),
            ("count attempts", |spec| spec.count = Some(Count::Attempt)),
        ];
        let rules = rules.map(|(name, rules)| Self::ruled(name, rules));
        let changed = changes.map(|(name, change)| {
            let mut spec = PolicySpec::default();
            change(&mut spec);
            Self::written(name, &spec)
        });
        let defaults = [Self::defaults()].into_iter();
        defaults.chain(rules).chain(changed).collect()
    }

    /// The defaults, rate rules of more and less patience, leaking counts, and change detectors, alone and beside 5 in a row.
    pub fn detectors() -> Vec<Self> {
        let rates = [
            (0.4, 60, 10),
            (0.3, 60, 20),
            (0.25, 60, 20),
            (0.25, 20, 20),
            (0.2, 60, 30),
            (0.15, 60, 30),
        ];
        let rates = rates.map(|(share, window, calls)| {
            let name = format!("5 in a row, {share} of {calls} in {window} s");
            Self::ruled(&name, vec![run(5), rate(share, window, calls)])
        });
        let short_and_long = Self::ruled(
            "5 in a row, 0.25 of 20 in 20 s and in 60 s",
            vec![run(5), rate(0.25, 20, 20), rate(0.25, 60, 20)],
        );
        let leaking = [5, 6, 8].map(|failures| {
            let spec = PolicySpec {
                trip: Some(vec![run(failures), rate(0.5, 60, 10)]),
                on_success: Some(OnSuccess::Decrement),
                ..PolicySpec::default()
            };
            Self::written(&format!("{failures} leaking, 0.5 of 10 in 60 s"), &spec)
        });
        let settings = [
            (0.01, 0.1, 1e6),
            (0.01, 0.3, 1e6),
            (0.02, 0.3, 1e5),
            (0.02, 0.3, 1e6),
            (0.02, 0.3, 1e8),
            (0.02, 0.15, 1e6),
            (0.02, 0.15, 1e8),
            (0.05, 0.3, 1e6),
        ];
        let beside = settings.map(|cusum| Self::detecting("5 in a row, ", vec![run(5)], cusum));
        let alone = [(0.02, 0.3, 1e6)].map(|cusum| Self::detecting("", vec![], cusum));
        let all = [Self::defaults()].into_iter().chain(rates);
        let all = all.chain([short_and_long]).chain(leaking);
        all.chain(beside).chain(alone).collect()
    }

    fn detecting(
        beside: &str,
        mut rules: Vec<TripRule>,
        (well, ill, calls): (f64, f64, f64),
    ) -> Self {
        let name = format!("{beside}CUSUM {well} to {ill}, false once in {calls:e}");
        rules.push(TripRule::Cusum {
            well,
            ill,
            calls_per_false_alarm: calls,
        });
        Self::ruled(&name, rules)
    }

    fn ruled(name: &str, rules: Vec<TripRule>) -> Self {
        let spec = PolicySpec {
            trip: Some(rules),
            ..PolicySpec::default()
        };
        Self::written(name, &spec)
    }

    fn written(name: &str, spec: &PolicySpec) -> Self {
        // What stands in this file is sound; a test holds it to that.
        Self::new(name, Policy::new(spec).unwrap_or_default())
    }
}

const fn secs(secs: u64) -> Option<Duration> {
    Some(Duration::from_secs(secs))
}

const fn run(failures: u32) -> TripRule {
    TripRule::Consecutive { failures }
}

const fn rate(threshold: f64, secs: u64, min_calls: u32) -> TripRule {
    TripRule::Rate {
        threshold,
        window: Duration::from_secs(secs),
        min_calls,
    }
}

const fn slow() -> TripRule {
    TripRule::Slow {
        slower_than: Duration::from_secs(5),
        threshold: 0.5,
        window: Duration::from_secs(60),
        min_calls: 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_defaults_have_the_default_policy() {
        for list in [
            Subject::systems(),
            Subject::variants(),
            Subject::detectors(),
        ] {
            for subject in list {
                let is_default = subject.policy == Policy::default();
                assert_eq!(is_default, subject.name == "defaults", "{}", subject.name);
            }
        }
    }
}
