//! The second, honest number: variants of every recorded shape, made by rules of thumb, with the same right verdict.

mod rewrite;

use std::collections::BTreeMap;

use fuseline_llm::{Evidence, HintSource};

use self::rewrite::{Change, Rewrite, is_cut_fairly};
use crate::case::{self, Case};

const SEED: u64 = 0x5eed_0001;
/// Variants of one kind for each case.
const ROUNDS: usize = 3;
/// In hundredths.
const ENOUGH: usize = 97;

/// A kind of variant; none where the case has no such variant.
type Mutation = fn(&Case, &mut fastrand::Rng) -> Option<Case>;

const KINDS: [(&str, Mutation); 9] = [
    ("keys in another order", reordered),
    ("extra fields", extra_fields),
    ("other casing of codes", other_codes),
    ("other casing of sentences", other_sentences),
    ("other wording", other_wording),
    ("words around the sentence", wordy),
    ("blanks and line ends", blanks),
    ("in an array", in_array),
    ("cut somewhere", cut),
];

#[test]
fn variants_of_every_shape_are_judged_right() {
    let mut scores: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut random = fastrand::Rng::with_seed(SEED);
    for case in case::all() {
        for (kind, mutation) in KINDS {
            for _ in 0..ROUNDS {
                let Some(variant) = mutation(case, &mut random) else {
                    continue;
                };
                let verdict = variant.verdict();
                let mistakes = variant.mistakes(&verdict);
                let score = scores.entry(kind).or_default();
                score.1 += 1;
                if mistakes.is_empty() {
                    score.0 += 1;
                } else {
                    let why = mistakes.join("; ");
                    wrong.push(format!(
                        "{kind}: {}: {why} ({})\n    {}",
                        case.id, verdict.evidence, variant.body
                    ));
                }
            }
        }
    }
    let (right, all) = scores
        .values()
        .fold((0, 0), |sum, score| (sum.0 + score.0, sum.1 + score.1));
    for (kind, (right, all)) in &scores {
        println!("{kind:28} {right:4} of {all:4}");
    }
    println!("{:28} {right:4} of {all:4}", "all");
    println!("{}", wrong.join("\n"));
    assert!(all > 4_000, "only {all} variants were made");
    assert!(right * 100 >= all * ENOUGH, "{right} of {all}");
}

fn reordered(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    rewritten(case, Rewrite::new(Change::Order, random))
}

fn extra_fields(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    rewritten(case, Rewrite::new(Change::Extras, random))
}

fn other_codes(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    is_plain_error(case).then(|| rewritten(case, Rewrite::new(Change::CaseOfCodes, random)))?
}

fn other_sentences(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    is_plain_error(case).then(|| rewritten(case, Rewrite::new(Change::CaseOfSentences, random)))?
}

/// Only where neither the rule nor the hint rests on the wording.
fn other_wording(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    let verdict = case.verdict();
    let by_wording = match &verdict.evidence {
        Evidence::Rule(citation) => {
            citation.saw().contains("phrase") || citation.saw().contains("sentence")
        }
        _ => false,
    };
    let is_free = !by_wording && verdict.hint_source != Some(HintSource::Sentence);
    let variant = is_free.then(|| rewritten(case, Rewrite::new(Change::Wording, random)))??;
    (variant.body != case.body).then_some(variant)
}

fn wordy(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    let by_sentence = matches!(&case.verdict().evidence, Evidence::Rule(citation) if citation.saw().contains("sentence"));
    let variant = (is_plain_error(case) && !by_sentence)
        .then(|| rewritten(case, Rewrite::new(Change::Surroundings, random)))??;
    (variant.body != case.body).then_some(variant)
}

fn blanks(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    if case.stream.is_some() || case.body.is_empty() {
        return None;
    }
    let before = ["\n", "\r\n\r\n", "  \t", "\u{feff}", "\n\n\n"];
    let mut variant = case.clone();
    let pretty = serde_json::from_str::<serde_json::Value>(&case.body).map_or_else(
        |_| case.body.clone(),
        |value| serde_json::to_string_pretty(&value).unwrap(),
    );
    variant.body = format!("{}{pretty}\n", before[random.usize(..before.len())]);
    Some(variant)
}

fn in_array(case: &Case, _: &mut fastrand::Rng) -> Option<Case> {
    if !is_plain_error(case) || !case.body.starts_with('{') {
        return None;
    }
    serde_json::from_str::<serde_json::Value>(&case.body).ok()?;
    let mut variant = case.clone();
    variant.body = format!("[{}]", case.body);
    Some(variant)
}

/// Anywhere behind the first character, where that does not cut off what must be known.
fn cut(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    if !is_plain_error(case) || !case.body.starts_with('{') {
        return None;
    }
    let all = case.body.len();
    let at = (random.usize(1..all)..all).find(|at| case.body.is_char_boundary(*at))?;
    let mut variant = case.clone();
    variant.body.truncate(at);
    is_cut_fairly(&case.body, at, &case.verdict()).then_some(variant)
}

fn is_plain_error(case: &Case) -> bool {
    case.stream.is_none() && case.status.is_some_and(|status| status >= 400)
}

/// The case with every JSON text in it rewritten; none where there is none.
fn rewritten(case: &Case, mut rewrite: Rewrite<'_>) -> Option<Case> {
    let mut variant = case.clone();
    if let Some(chunks) = &mut variant.stream {
        if !matches!(case.stream_format.as_deref(), Some("sse" | "ndjson")) {
            return None;
        }
        for chunk in chunks {
            let lines: Vec<_> = chunk
                .split('\n')
                .map(|line| {
                    let at = line.find('{').unwrap_or(line.len());
                    let (before, json) = line.split_at(at);
                    format!(
                        "{before}{}",
                        rewrite.text(json).unwrap_or_else(|| json.to_owned())
                    )
                })
                .collect();
            *chunk = lines.join("\n");
        }
        return Some(variant);
    }
    variant.body = rewrite.text(&case.body)?;
    Some(variant)
}
