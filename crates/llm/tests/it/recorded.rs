//! All recorded shapes, with a score for each provider.

use std::collections::BTreeMap;

use fuseline_llm::Classifier;

use crate::case;

#[test]
fn every_recorded_shape_is_judged_right() {
    let mut scores: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let cases = case::all();
    for case in cases {
        let verdict = case.verdict();
        let mistakes = case.mistakes(&verdict);
        let score = scores.entry(case.provider.clone()).or_default();
        score.1 += 1;
        score.0 += usize::from(mistakes.is_empty());
        if !mistakes.is_empty() {
            wrong.push(format!(
                "{}: {} ({})",
                case.id,
                mistakes.join("; "),
                verdict.evidence
            ));
        }
    }
    for (provider, (right, all)) in &scores {
        println!("{provider:24} {right:3} of {all:3}");
    }
    println!(
        "{:24} {:3} of {:3}",
        "all",
        cases.len() - wrong.len(),
        cases.len()
    );
    assert_eq!(cases.len(), 333);
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Behind a name that no table knows, the common rules must do.
#[test]
fn most_shapes_are_known_whoever_sent_them() {
    let cases = case::all();
    let mut wrong = Vec::new();
    for case in cases {
        let verdict = case.verdict_by(Classifier::builtin(), "");
        let kind = verdict.kind.map_or("success", |kind| kind.as_str());
        let is_other = case
            .alt
            .get("kind")
            .is_some_and(|kinds| kinds.contains(&kind.into()));
        if kind != case.expect.kind && !is_other {
            wrong.push(format!(
                "{}: {kind}, not {} ({})",
                case.id, case.expect.kind, verdict.evidence
            ));
        }
    }
    println!(
        "kinds right without a provider: {} of {}\n{}",
        cases.len() - wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert!(wrong.len() * 10 < cases.len(), "{} wrong", wrong.len());
}
