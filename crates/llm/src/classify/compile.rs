//! From rules as they are written to rules as they are asked: ranges of statuses, ids of names and phrases.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use aho_corasick::BuildError;

use super::phrases::Phrases;
use super::rule::{BodyForm, CodeSpec, RuleProblem, RuleSpec, StatusSpec, Then, When};

/// Where wording is known to be evidence, and a rule by wording is asked unless it says otherwise.
const WORDY: [u16; 11] = [400, 401, 402, 403, 404, 413, 422, 424, 429, 498, 503];
const IN_BAND: &str = "in-band";
/// A shorter phrase is in half of all sentences.
const SHORTEST_PHRASE: usize = 3;

/// A rule, compiled.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its table and id.
    pub(super) name: Arc<str>,
    pub(super) test: Test,
    pub(super) then: Then,
}

/// What a rule asks for.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// Empty: any.
    pub(super) statuses: Vec<RangeInclusive<u16>>,
    /// Whether an error without a status, inside a success answer, may match where statuses are asked for.
    pub(super) in_band: bool,
    pub(super) codes: Vec<Word>,
    pub(super) phrases: Vec<Phrase>,
    pub(super) sentences: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) fields: Vec<(String, serde_json::Value)>,
    pub(super) body: Option<BodyForm>,
    pub(super) finish: Vec<String>,
    pub(super) wait_over: Option<Duration>,
}

/// A machine-readable name that some rule asks for.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) id: u32,
    pub(super) text: String,
}

/// Words of a sentence; two parts have something between them.
#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) first: u32,
    pub(super) second: Option<u32>,
    pub(super) text: String,
}

/// All names and phrases of all rules.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    names: HashMap<String, u32>,
    parts: HashMap<String, u32>,
}

impl Vocabulary {
    pub(super) fn name(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The length of the longest name: a longer one cannot be known.
    pub(super) fn longest_name(&self) -> usize {
        self.names.keys().map(String::len).max().unwrap_or(0)
    }

    pub(super) fn phrases(&self) -> Result<Phrases, BuildError> {
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|(_, id)| **id);
        Phrases::new(parts.into_iter().map(|(part, _)| part.as_str()))
    }

    fn id(map: &mut HashMap<String, u32>, text: &str) -> u32 {
        let next = u32::try_from(map.len()).unwrap_or(u32::MAX);
        *map.entry(text.to_owned()).or_insert(next)
    }
}

/// Compiles one rule of the list `table`, whose place in it is `at`; mistakes go to `problems`.
pub(super) fn rule(
    table: &str,
    at: usize,
    spec: &RuleSpec,
    vocabulary: &mut Vocabulary,
    problems: &mut Vec<RuleProblem>,
) -> Rule {
    let mut wrong = |key, value: &dyn Display, remedy: &str| {
        problems.push(RuleProblem {
            rule: at + 1,
            id: spec.id.clone(),
            providers: spec.providers.clone(),
            key,
            value: value.to_string(),
            remedy: remedy.to_owned(),
        });
    };
    if spec.id.trim().is_empty() {
        wrong("id", &spec.id, "give it a name: verdicts cite it");
    }
    let when = &spec.when;
    if *when == When::default() {
        wrong(
            "when",
            &"{}",
            "say what must be seen: a rule without a condition would match everything",
        );
    }
    let mut test = Test {
        body: when.body,
        ..Test::default()
    };
    statuses(when, &mut test, &mut wrong);
    words(when, vocabulary, &mut test, &mut wrong);
    for (name, value) in &when.header {
        if name.trim().is_empty() {
            wrong("when.header", value, "name the header");
        }
        test.headers
            .push((name.to_ascii_lowercase(), value.to_ascii_lowercase()));
    }
    for (pointer, value) in &when.field {
        if !pointer.starts_with('/') {
            wrong(
                "when.field",
                pointer,
                "write a JSON pointer, like \"/error/code\"",
            );
        }
        test.fields.push((pointer.clone(), value.clone()));
    }
    test.finish = when
        .finish
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    if let Some(text) = &when.wait_over {
        test.wait_over = humantime::parse_duration(text).ok();
        if test.wait_over.is_none() {
            wrong(
                "when.wait_over",
                text,
                "write a time with its unit, like \"5m\"",
            );
        }
    }
    Rule {
        name: format!("{table}/{}", spec.id).into(),
        test,
        then: spec.then.clone(),
    }
}

type Wrong<'w> = dyn FnMut(&'static str, &dyn Display, &str) + 'w;

fn statuses(when: &When, test: &mut Test, wrong: &mut Wrong<'_>) {
    for status in &when.status {
        match status {
            StatusSpec::Text(text) if text == IN_BAND => test.in_band = true,
            StatusSpec::Text(text) => match range(text) {
                Some(range) => test.statuses.push(range),
                None => wrong(
                    "when.status",
                    text,
                    "write a status from 100 to 599, a class like \"5xx\", a range like \"500-503\", or \"in-band\"",
                ),
            },
            StatusSpec::One(status) if (100..600).contains(status) => {
                test.statuses.push(*status..=*status);
            }
            StatusSpec::One(status) => {
                wrong("when.status", status, "write a status from 100 to 599");
            }
        }
    }
    let by_wording = !when.phrase.is_empty() || !when.sentence.is_empty();
    if when.status.is_empty() && by_wording && when.code.is_empty() {
        test.statuses.extend(WORDY.map(|status| status..=status));
        test.in_band = true;
    }
}

/// `"5xx"`, `"500-503"` or `"500"`.
pub(super) fn range(text: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = text.strip_suffix("xx") {
        let class = class
            .parse::<u16>()
            .ok()
            .filter(|class| (1..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (100 <= first && first <= last && last < 600).then_some(first..=last)
}

fn words(when: &When, vocabulary: &mut Vocabulary, test: &mut Test, wrong: &mut Wrong<'_>) {
    for code in &when.code {
        let text = match code {
            CodeSpec::Number(number) => number.to_string(),
            CodeSpec::Text(text) => text.to_ascii_lowercase(),
        };
        if text.trim().is_empty() {
            wrong(
                "when.code",
                &text,
                "write the code as the provider sends it",
            );
        }
        let id = Vocabulary::id(&mut vocabulary.names, &text);
        test.codes.push(Word { id, text });
    }
    for phrase in &when.phrase {
        let text = phrase.to_ascii_lowercase();
        let parts: Vec<_> = text.split("...").map(str::trim).collect();
        let is_short = |part: &&str| part.len() < SHORTEST_PHRASE;
        let (first, second) = match parts.as_slice() {
            [first] => (*first, None),
            [first, second] => (*first, Some(*second)),
            _ => {
                wrong("when.phrase", phrase, "leave out all but one `...`");
                continue;
            }
        };
        if parts.iter().any(is_short) {
            wrong(
                "when.phrase",
                phrase,
                "write at least 3 letters: a shorter text is in half of all sentences",
            );
            continue;
        }
        let first = Vocabulary::id(&mut vocabulary.parts, first);
        let second = second.map(|second| Vocabulary::id(&mut vocabulary.parts, second));
        test.phrases.push(Phrase {
            first,
            second,
            text,
        });
    }
    for sentence in &when.sentence {
        let text = bare(sentence).to_ascii_lowercase();
        if text.is_empty() {
            wrong("when.sentence", sentence, "write the sentence");
        }
        test.sentences.push(text);
    }
}

/// A sentence without blanks around it and marks at its end.
pub(super) fn bare(sentence: &str) -> &str {
    sentence.trim().trim_end_matches(['.', '!']).trim_end()
}
