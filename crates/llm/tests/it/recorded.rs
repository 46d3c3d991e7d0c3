//! All recorded shapes, with a score for each provider.

use std::collections::BTreeMap;

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
