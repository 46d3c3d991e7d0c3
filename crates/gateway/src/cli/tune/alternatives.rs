//! The settings that are compared: the present ones, the defaults, each preset, and variations of the present ones.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::{Mode, Per, Policy, PolicySpec, Preset, TripRule};
use fuseline_sim::{Judged, Recorded, replay};

use super::log::Log;
use crate::config::Config;

/// Settings for every target.
pub(super) struct Setting {
    pub(super) name: String,
    /// What to write into `[breaker]`; none where nothing would change.
    pub(super) toml: Option<String>,
    pub(super) is_present: bool,
    /// By target.
    policies: BTreeMap<String, Policy>,
}

const RUNS: [u32; 4] = [3, 5, 8, 12];
const BESIDE: [Option<TripRule>; 4] = [
    None,
    Some(rate(0.5, 10)),
    Some(rate(0.25, 20)),
    Some(TripRule::cusum()),
];
const COOLDOWNS: [u64; 4] = [5, 15, 30, 60];
const WINDOW: Duration = Duration::from_secs(60);

const fn rate(threshold: f64, min_calls: u32) -> TripRule {
    TripRule::Rate {
        threshold,
        window: WINDOW,
        min_calls,
    }
}

/// All settings that are compared on this log.
pub(super) fn of(config: &Config, log: &Log) -> Vec<Setting> {
    // A breaker that is off, or only watches, is judged as if it enforced.
    let enforced = PolicySpec {
        mode: Some(Mode::Enforce),
        ..PolicySpec::default()
    };
    let present = |change: &PolicySpec| policies(config, log, &change.overlaid(&enforced));
    let fixed = |spec: &PolicySpec| {
        let policy = Policy::new(spec).unwrap_or_default();
        let names = log.targets.keys().cloned();
        names.map(|name| (name, policy.clone())).collect()
    };
    let mut all = vec![
        Setting {
            name: "yours".to_owned(),
            toml: None,
            is_present: true,
            policies: present(&PolicySpec::default()),
        },
        Setting {
            name: "defaults".to_owned(),
            toml: Some(String::new()),
            is_present: false,
            policies: fixed(&PolicySpec::default()),
        },
    ];
    all.extend(Preset::ALL.map(|preset| Setting {
        name: format!("preset {preset}"),
        toml: Some(format!("preset = \"{preset}\"\n")),
        is_present: false,
        policies: fixed(&PolicySpec {
            preset: Some(preset),
            ..PolicySpec::default()
        }),
    }));
    for run in RUNS {
        for beside in BESIDE {
            all.extend(COOLDOWNS.map(|cooldown| {
                let change = changed(run, beside, cooldown);
                Setting {
                    name: name(run, beside, cooldown),
                    toml: Some(toml(run, beside, cooldown)),
                    is_present: false,
                    policies: present(&change),
                }
            }));
        }
    }
    all
}

/// The configuration's settings for each target, with this on top.
fn policies(config: &Config, log: &Log, change: &PolicySpec) -> BTreeMap<String, Policy> {
    let names = log.targets.keys();
    let policy = |name: &String| {
        let (provider, model) = split(name);
        let spec = config.policy_spec(provider, model).overlaid(change);
        (name.clone(), Policy::new(&spec).unwrap_or_default())
    };
    names.map(policy).collect()
}

/// Provider and model of a target's name.
fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('/') {
        Some((provider, model)) => (provider, Some(model)),
        None => (target, None),
    }
}

fn changed(run: u32, beside: Option<TripRule>, cooldown: u64) -> PolicySpec {
    let run = TripRule::Consecutive { failures: run };
    PolicySpec {
        trip: Some([run].into_iter().chain(beside).collect()),
        cooldown: Some(Duration::from_secs(cooldown)),
        ..PolicySpec::default()
    }
}

fn name(run: u32, beside: Option<TripRule>, cooldown: u64) -> String {
    let beside = beside.map_or_else(String::new, |rule| match rule {
        TripRule::Rate {
            threshold,
            min_calls,
            ..
        } => format!(" or {threshold} of {min_calls} in 60s"),
        rule => format!(" or {}", rule.as_str()),
    });
    format!("{run} in a row{beside}, cooldown {cooldown}s")
}

fn toml(run: u32, beside: Option<TripRule>, cooldown: u64) -> String {
    let beside = beside.map_or_else(String::new, |rule| match rule {
        TripRule::Rate {
            threshold,
            min_calls,
            ..
        } => format!(
            ",\n    {{ rule = \"rate\", threshold = {threshold}, window = \"60s\", min_calls = {min_calls} }}"
        ),
        rule => format!(",\n    {{ rule = \"{}\" }}", rule.as_str()),
    });
    format!(
        "trip = [\n    {{ rule = \"consecutive\", failures = {run} }}{beside},\n]\ncooldown = \"{cooldown}s\"\n"
    )
}

impl Setting {
    /// Lets the log pass. Where a setting charges failures to the provider, all its models share a breaker.
    pub(super) fn judge(&self, log: &Log) -> Judged {
        let mut sum = Judged::default();
        let mut shared: BTreeMap<&str, (&Policy, Vec<Recorded>)> = BTreeMap::new();
        for (target, calls) in &log.targets {
            let Some(policy) = self.policies.get(target) else {
                continue;
            };
            if policy.per() == Per::Model {
                sum = sum.plus(replay(policy, calls));
                continue;
            }
            let (provider, _) = split(target);
            let (_, all) = shared.entry(provider).or_insert((policy, Vec::new()));
            all.extend(calls);
        }
        for (policy, mut calls) in shared.into_values() {
            calls.sort_by_key(|call| call.at);
            sum = sum.plus(replay(policy, &calls));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Overrides, Sources};

    #[test]
    fn what_is_advised_is_what_was_judged() {
        for run in RUNS {
            for beside in BESIDE {
                for cooldown in COOLDOWNS {
                    let text = format!("[breaker]\n{}", toml(run, beside, cooldown));
                    let sources = Sources {
                        file: None,
                        overrides: &Overrides::default(),
                        env: &|_| None,
                    };
                    let report = sources.load_text(None, Path::new(""), &text);
                    let config = report
                        .config
                        .unwrap_or_else(|| panic!("{:?}", report.findings));
                    let judged = Policy::new(&changed(run, beside, cooldown)).unwrap();
                    assert_eq!(config.policy("a", Some("m")), judged, "{text}");
                }
            }
        }
    }
}
