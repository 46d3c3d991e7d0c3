//! The tables: the rules that ship with the crate and those of a configuration, compiled, in the order of asking.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::compile::{Rule, Vocabulary, rule};
use super::facts::Facts;
use super::phrases::Phrases;
use super::rule::{RuleProblem, RuleSpec};

/// The shipped tables by name. Those of a provider are asked before the common one.
const TABLES: [(&str, &str); 13] = [
    ("anthropic", include_str!("../../rules/anthropic.toml")),
    ("azure", include_str!("../../rules/azure.toml")),
    ("bedrock", include_str!("../../rules/bedrock.toml")),
    ("cloudflare", include_str!("../../rules/cloudflare.toml")),
    ("cohere", include_str!("../../rules/cohere.toml")),
    ("fireworks", include_str!("../../rules/fireworks.toml")),
    ("google", include_str!("../../rules/google.toml")),
    ("groq", include_str!("../../rules/groq.toml")),
    ("local", include_str!("../../rules/local.toml")),
    ("openai", include_str!("../../rules/openai.toml")),
    ("openrouter", include_str!("../../rules/openrouter.toml")),
    ("others", include_str!("../../rules/others.toml")),
    ("common", include_str!("../../rules/common.toml")),
];

/// The name of the table of a configuration's rules.
const OWN: &str = "own";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    /// For whom its rules are, where they do not say; none means all.
    #[serde(default)]
    providers: Vec<String>,
    rules: Vec<RuleSpec>,
}

/// All rules, in the order of asking.
#[derive(Debug)]
pub(super) struct Tables {
    rules: Vec<Rule>,
    /// The places of a provider's rules, common ones included.
    of_provider: HashMap<String, Vec<usize>>,
    /// The places of the rules for everybody.
    of_all: Vec<usize>,
    vocabulary: Vocabulary,
    longest_name: usize,
    phrases: Phrases,
    finishes: HashSet<String>,
    judges_success: bool,
}

impl Tables {
    pub(super) fn new(extra: &[RuleSpec]) -> Result<Self, Vec<RuleProblem>> {
        let mut problems = Vec::new();
        let mut vocabulary = Vocabulary::default();
        let mut rules = Vec::new();
        let mut whose: Vec<Vec<String>> = Vec::new();
        let mut add = |table: &str, specs: &[RuleSpec], providers: &[String]| {
            for (at, spec) in specs.iter().enumerate() {
                rules.push(rule(table, at, spec, &mut vocabulary, &mut problems));
                let named = if spec.providers.is_empty() {
                    providers
                } else {
                    &spec.providers
                };
                whose.push(named.iter().map(|name| name.to_ascii_lowercase()).collect());
            }
        };
        add(OWN, extra, &[]);
        let mut broken = Vec::new();
        for (name, text) in TABLES {
            match toml::from_str::<TableFile>(text) {
                Ok(file) => add(name, &file.rules, &file.providers),
                Err(error) => broken.push(unreadable(name, &error)),
            }
        }
        problems.append(&mut broken);
        let phrases = vocabulary.phrases();
        let phrases = phrases.map_err(|error| problems.push(unreadable("phrases", &error)));
        let (true, Ok(phrases)) = (problems.is_empty(), phrases) else {
            return Err(problems);
        };
        Ok(Self {
            of_provider: by_provider(&whose),
            of_all: places(&whose, |names| names.is_empty()),
            longest_name: vocabulary.longest_name(),
            finishes: rules
                .iter()
                .flat_map(|rule| rule.test.finish.iter().cloned())
                .collect(),
            judges_success: rules.iter().take(extra.len()).any(|rule| {
                let is_success =
                    |range: &RangeInclusive<u16>| (200..300).any(|status| range.contains(&status));
                rule.test.statuses.iter().any(is_success)
            }),
            rules,
            vocabulary,
            phrases,
        })
    }

    /// Those that have rules of their own.
    pub(super) fn providers(&self) -> impl Iterator<Item = &str> {
        self.of_provider.keys().map(String::as_str)
    }

    /// Whether some rule asks for this reason to stop.
    pub(super) fn knows_finish(&self, finish: &str) -> bool {
        self.finishes.contains(finish)
            || (finish.bytes().any(|byte| byte.is_ascii_uppercase())
                && self.finishes.contains(&finish.to_ascii_lowercase()))
    }

    /// Whether rules of the configuration judge answers that are good otherwise.
    pub(super) const fn judges_success(&self) -> bool {
        self.judges_success
    }

    /// The first rule that the facts answer to, with what it saw.
    pub(super) fn find(&self, facts: &Facts<'_>) -> Option<(&Rule, String)> {
        let places = self.of_provider.get(facts.provider).unwrap_or(&self.of_all);
        let known = facts.known(&self.vocabulary, self.longest_name, &self.phrases);
        places
            .iter()
            .filter_map(|place| self.rules.get(*place))
            .find_map(|rule| Some((rule, facts.shows(&rule.test, &known)?)))
    }
}

fn by_provider(whose: &[Vec<String>]) -> HashMap<String, Vec<usize>> {
    let names: std::collections::BTreeSet<_> = whose.iter().flatten().collect();
    let of = |name: &String| places(whose, |names| names.is_empty() || names.contains(name));
    names
        .into_iter()
        .map(|name| (name.clone(), of(name)))
        .collect()
}

fn places(whose: &[Vec<String>], is_for: impl Fn(&Vec<String>) -> bool) -> Vec<usize> {
    let all = whose.iter().enumerate();
    all.filter(|(_, names)| is_for(names))
        .map(|(place, _)| place)
        .collect()
}

/// A shipped table that cannot be read is a mistake of ours, which the tests would have seen.
fn unreadable(table: &str, error: &dyn std::fmt::Display) -> RuleProblem {
    RuleProblem {
        rule: 0,
        id: table.to_owned(),
        providers: Vec::new(),
        key: "rules",
        value: error.to_string(),
        remedy: "this table ships with the crate: report it".to_owned(),
    }
}
