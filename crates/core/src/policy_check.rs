//! What a policy may not say. One function a key family; each problem names key, value and what is allowed.

use core::fmt::Display;
use core::time::Duration;

use crate::kind::Kind;
use crate::policy::{Checked, Problem};
use crate::rules::call_windows;
use crate::trip::TripRule;
use crate::window::MAX_SERIES;

/// Rules in one breaker; each costs memory and time, and more than a few cannot be reasoned about.
const MAX_RULES: usize = 16;
/// Shortest window: a bucket is a sixtieth of it.
const MIN_WINDOW: Duration = Duration::from_secs(1);
/// Longest duration that fits everywhere: a hundred years.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(crate) fn problems(policy: &Checked) -> Vec<Problem> {
    let mut found = Found(Vec::new());
    found.check(
        policy.trip.len() <= MAX_RULES,
        "trip",
        format!("{} rules", policy.trip.len()),
        "at most 16 rules",
    );
    let windows = call_windows(&policy.trip).len();
    found.check(
        windows <= MAX_SERIES,
        "trip",
        format!("{windows} different windows of rate, slow and cusum rules"),
        "at most 4",
    );
    for (at, rule) in policy.trip.iter().enumerate() {
        found.rule(&format!("trip[{at}]"), rule);
    }
    found.share("degraded_at", policy.degraded_at);
    found.at_least_1_ms("cooldown", policy.cooldown);
    found.check(
        policy.backoff >= 1.0 && policy.backoff.is_finite(),
        "backoff",
        policy.backoff,
        "1 or more",
    );
    found.duration("max_cooldown", policy.max_cooldown);
    found.share("jitter", policy.jitter);
    found.duration("max_retry_after", policy.max_retry_after);
    found.check(
        (1..=64).contains(&policy.probes),
        "probes",
        policy.probes,
        "1 to 64",
    );
    found.positive("successes_to_close", policy.successes_to_close);
    found.at_least_1_ms("probe_timeout", policy.probe_timeout);
    found.duration("probe_proof", policy.probe_proof);
    found.duration("ramp", policy.ramp);
    for (kind, rule) in Kind::ALL.into_iter().zip(&policy.kinds) {
        if let Some(threshold) = rule.threshold {
            found.positive(&format!("kinds.{kind}.threshold"), threshold);
        }
        if let Some(cooldown) = rule.cooldown {
            found.at_least_1_ms(&format!("kinds.{kind}.cooldown"), cooldown);
        }
    }
    found.0
}

struct Found(Vec<Problem>);

impl Found {
    fn rule(&mut self, key: &str, rule: &TripRule) {
        match *rule {
            TripRule::Consecutive { failures } => {
                self.positive(&format!("{key}.failures"), failures)
            }
            TripRule::Window { failures, window } => {
                self.positive(&format!("{key}.failures"), failures);
                self.window(key, window);
            }
            TripRule::Rate {
                threshold,
                window,
                min_calls,
            } => self.ratio(key, threshold, window, min_calls),
            TripRule::Slow {
                slower_than,
                threshold,
                window,
                min_calls,
            } => {
                self.at_least_1_ms(&format!("{key}.slower_than"), slower_than);
                self.ratio(key, threshold, window, min_calls);
            }
            TripRule::Cusum {
                well,
                ill,
                calls_per_false_alarm,
            } => self.cusum(key, well, ill, calls_per_false_alarm),
        }
    }

    fn cusum(&mut self, key: &str, well: f64, ill: f64, calls: f64) {
        let is_share = |value: f64| (0.0001..=0.9999).contains(&value);
        let of = |name: &str| format!("{key}.{name}");
        self.check(is_share(well), &of("well"), well, "0.0001 to 0.9999");
        let is_above = is_share(ill) && (ill > well || !is_share(well));
        let above = "more than `well`, at most 0.9999";
        self.check(is_above, &of("ill"), ill, above);
        let allowed = (100.0..=1e15).contains(&calls);
        let key = of("calls_per_false_alarm");
        self.check(allowed, &key, calls, "100 to 1e15");
    }

    fn ratio(&mut self, key: &str, threshold: f64, window: Duration, min_calls: u32) {
        let allowed = (0.0001..=1.0).contains(&threshold);
        self.check(
            allowed,
            &format!("{key}.threshold"),
            threshold,
            "0.0001 to 1",
        );
        self.window(key, window);
        self.positive(&format!("{key}.min_calls"), min_calls);
    }

    fn window(&mut self, key: &str, window: Duration) {
        let allowed = (MIN_WINDOW..=MAX_DURATION).contains(&window);
        self.check(
            allowed,
            &format!("{key}.window"),
            text(window),
            "1s to 100 years",
        );
    }

    fn at_least_1_ms(&mut self, key: &str, value: Duration) {
        let allowed = (Duration::from_millis(1)..=MAX_DURATION).contains(&value);
        self.check(allowed, key, text(value), "1ms to 100 years");
    }

    fn duration(&mut self, key: &str, value: Duration) {
        self.check(value <= MAX_DURATION, key, text(value), "at most 100 years");
    }

    fn share(&mut self, key: &str, value: f64) {
        self.check((0.0..=1.0).contains(&value), key, value, "0 to 1");
    }

    fn positive(&mut self, key: &str, value: u32) {
        self.check(value >= 1, key, value, "1 or more");
    }

    fn check(&mut self, allowed: bool, key: &str, value: impl Display, what: &'static str) {
        if !allowed {
            self.0.push(Problem {
                key: key.to_owned(),
                value: value.to_string(),
                allowed: what,
            });
        }
    }
}

fn text(duration: Duration) -> String {
    format!("{duration:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{KindSpec, Policy, PolicySpec};

    fn refused(spec: &PolicySpec) -> String {
        Policy::new(spec).expect_err("refused").to_string()
    }

    fn with_rule(rule: TripRule) -> PolicySpec {
        PolicySpec {
            trip: Some(vec![rule]),
            ..PolicySpec::default()
        }
    }

    #[test]
    fn the_defaults_are_allowed() {
        assert_eq!(Policy::new(&PolicySpec::default()), Ok(Policy::default()));
    }

    #[test]
    fn each_bad_value_is_named_with_its_key_and_what_is_allowed() {
        let minute = Duration::from_secs(60);
        let rate = |threshold, window, min_calls| {
            with_rule(TripRule::Rate {
                threshold,
                window,
                min_calls,
            })
        };
        let spec = PolicySpec::default();
        let cases = [
            (
                with_rule(TripRule::Consecutive { failures: 0 }),
                "trip[0].failures is 0, must be 1 or more",
            ),
            (
                with_rule(TripRule::Window {
                    failures: 0,
                    window: minute,
                }),
                "trip[0].failures is 0, must be 1 or more",
            ),
            (
                rate(1.5, minute, 10),
                "trip[0].threshold is 1.5, must be 0.0001 to 1",
            ),
            (
                rate(0.00001, minute, 10),
                "trip[0].threshold is 0.00001, must be 0.0001 to 1",
            ),
            (
                rate(f64::NAN, minute, 10),
                "trip[0].threshold is NaN, must be 0.0001 to 1",
            ),
            (
                rate(0.5, minute, 0),
                "trip[0].min_calls is 0, must be 1 or more",
            ),
            (
                rate(0.5, Duration::from_millis(999), 1),
                "trip[0].window is 999ms, must be 1s to 100 years",
            ),
            (
                PolicySpec {
                    probes: Some(0),
                    ..spec.clone()
                },
                "probes is 0, must be 1 to 64",
            ),
            (
                PolicySpec {
                    probes: Some(65),
                    ..spec.clone()
                },
                "probes is 65, must be 1 to 64",
            ),
            (
                PolicySpec {
                    successes_to_close: Some(0),
                    ..spec.clone()
                },
                "successes_to_close is 0, must be 1 or more",
            ),
            (
                PolicySpec {
                    backoff: Some(0.9),
                    ..spec.clone()
                },
                "backoff is 0.9, must be 1 or more",
            ),
            (
                PolicySpec {
                    backoff: Some(f64::NAN),
                    ..spec.clone()
                },
                "backoff is NaN, must be 1 or more",
            ),
            (
                PolicySpec {
                    backoff: Some(f64::INFINITY),
                    ..spec.clone()
                },
                "backoff is inf, must be 1 or more",
            ),
            (
                PolicySpec {
                    jitter: Some(-0.1),
                    ..spec.clone()
                },
                "jitter is -0.1, must be 0 to 1",
            ),
            (
                PolicySpec {
                    jitter: Some(f64::NAN),
                    ..spec.clone()
                },
                "jitter is NaN, must be 0 to 1",
            ),
            (
                PolicySpec {
                    degraded_at: Some(1.1),
                    ..spec.clone()
                },
                "degraded_at is 1.1, must be 0 to 1",
            ),
            (
                PolicySpec {
                    cooldown: Some(Duration::ZERO),
                    ..spec.clone()
                },
                "cooldown is 0ns, must be 1ms to 100 years",
            ),
            (
                PolicySpec {
                    probe_timeout: Some(Duration::ZERO),
                    ..spec.clone()
                },
                "probe_timeout is 0ns, must be 1ms to 100 years",
            ),
        ];
        for (spec, message) in cases {
            assert_eq!(refused(&spec), message);
        }
    }

    #[test]
    fn shares_of_a_cusum_rule_are_in_order_and_false_alarms_rare() {
        let cusum = |well, ill, calls_per_false_alarm| {
            with_rule(TripRule::Cusum {
                well,
                ill,
                calls_per_false_alarm,
            })
        };
        let ill = "must be more than `well`, at most 0.9999";
        for (rule, message) in [
            (
                cusum(0.0, 0.1, 1e8),
                "trip[0].well is 0, must be 0.0001 to 0.9999".to_owned(),
            ),
            (
                cusum(f64::NAN, 0.1, 1e8),
                "trip[0].well is NaN, must be 0.0001 to 0.9999".to_owned(),
            ),
            (cusum(0.1, 0.1, 1e8), format!("trip[0].ill is 0.1, {ill}")),
            (cusum(0.1, 1.0, 1e8), format!("trip[0].ill is 1, {ill}")),
            (
                cusum(1.0, 2.0, 99.0),
                format!(
                    "trip[0].well is 1, must be 0.0001 to 0.9999; trip[0].ill is 2, {ill}; \
                     trip[0].calls_per_false_alarm is 99, must be 100 to 1e15"
                ),
            ),
            (
                cusum(0.1, 0.2, f64::INFINITY),
                "trip[0].calls_per_false_alarm is inf, must be 100 to 1e15".to_owned(),
            ),
        ] {
            assert_eq!(refused(&rule), message);
        }
        for (well, ill) in [
            (0.0001, 0.9999),
            (0.9998, 0.9999),
            (0.5, 0.500_000_000_000_001),
        ] {
            assert!(Policy::new(&cusum(well, ill, 100.0)).is_ok());
        }
    }

    #[test]
    fn a_breaker_has_at_most_16_rules_and_counts_calls_over_at_most_4_windows() {
        let rules = |count: u64, same: bool| {
            let window = |at| Duration::from_secs(if same { 60 } else { 60 + at });
            let rule = |at| TripRule::Rate {
                threshold: 0.5,
                window: window(at),
                min_calls: 1,
            };
            PolicySpec {
                trip: Some((0..count).map(rule).collect()),
                ..PolicySpec::default()
            }
        };
        assert!(Policy::new(&rules(16, true)).is_ok());
        assert!(Policy::new(&rules(4, false)).is_ok());
        assert_eq!(
            refused(&rules(17, true)),
            "trip is 17 rules, must be at most 16 rules"
        );
        assert_eq!(
            refused(&rules(5, false)),
            "trip is 5 different windows of rate, slow and cusum rules, must be at most 4"
        );
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut spec = PolicySpec {
            probes: Some(0),
            jitter: Some(2.0),
            ..PolicySpec::default()
        };
        spec.kinds.insert(
            Kind::Timeout,
            KindSpec {
                threshold: Some(0),
                ..KindSpec::default()
            },
        );
        let told = "jitter is 2, must be 0 to 1; probes is 0, must be 1 to 64; kinds.timeout.threshold is 0, must be 1 or more";
        assert_eq!(refused(&spec), told);
    }
}
