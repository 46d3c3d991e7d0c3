//! What must hold of any run, whatever its seed.

use core::time::Duration;

use super::{Measures, Run};
use crate::{Outage, Subject, Traffic};

fn run(traffic: &Traffic, outage: Outage, seed: u64) -> Run<'_> {
    Run {
        traffic,
        outage,
        incident: Duration::from_secs(900),
        replicas: 1,
        seed,
    }
}

fn quiet() -> Traffic {
    Traffic::recorded().thinned(10, 1)
}

fn play(outage: Outage, subject: &Subject) -> Measures {
    run(&quiet(), outage, 3).play(subject)
}

#[test]
fn the_same_seed_is_the_same_run_and_calls_are_the_same_for_all_subjects() {
    let traffic = quiet();
    let played = |seed| run(&traffic, Outage::Errors, seed).play(&Subject::defaults());
    assert_eq!(played(5), played(5));
    assert_ne!(played(5), played(6));
    let bare = run(&traffic, Outage::Errors, 5).play(&Subject::no_breaker());
    assert_eq!(
        (bare.calls, bare.healthy),
        (played(5).calls, played(5).healthy)
    );
}

#[test]
fn without_a_breaker_everything_is_tried_and_nothing_is_noticed() {
    let bare = play(Outage::Down, &Subject::no_breaker());
    // Who calls in the last second is tried again in health.
    assert!((2 * bare.calls - 5..=2 * bare.calls).contains(&bare.wasted));
    assert_eq!((bare.opened, bare.wrong, bare.lagging), (0, 0, 0));
    assert_eq!((bare.detected, bare.recovered), (None, None));
    let waited = bare.lost / u32::try_from(bare.calls).unwrap();
    assert!((700..1_200).contains(&waited.as_millis()), "{waited:?}");
}

#[test]
fn a_hard_outage_is_seen_at_once_probed_sparsely_and_left_soon_after_its_end() {
    let ours = play(Outage::Down, &Subject::defaults());
    assert_eq!(ours.opened, 1);
    assert!(ours.detected.unwrap() < Duration::from_secs(30), "{ours:?}");
    // Ten attempts to open, then a probe every 15, 30, 60 and 120 s.
    assert!((15..=30).contains(&ours.wasted), "{ours:?}");
    assert!(
        ours.recovered.unwrap() < Duration::from_secs(160),
        "{ours:?}"
    );
    assert!(ours.recovered.unwrap() > Duration::ZERO);
    assert_eq!(ours.wrong, 0);
    assert!(ours.lagging > 0);
}

#[test]
fn stalls_cost_a_minute_each_until_the_circuit_opens() {
    let ours = play(Outage::Stall, &Subject::defaults());
    assert!(ours.detected.unwrap() >= Duration::from_secs(60));
    assert!(ours.lost >= Duration::from_secs(60) * 5);
    let bare = play(Outage::Stall, &Subject::no_breaker());
    assert_eq!(bare.lost.as_secs(), 60 * bare.calls);
    assert!(ours.lost < bare.lost / 3, "{ours:?}");
}

#[test]
fn a_hint_opens_at_once_for_as_long_as_it_says() {
    let ours = play(Outage::Storm, &Subject::defaults());
    assert!(ours.detected.unwrap() < Duration::from_secs(10), "{ours:?}");
    assert!(ours.wasted < 30, "{ours:?}");
}

#[test]
fn broken_streams_are_lost_whoever_else_could_answer() {
    let bare = play(Outage::Cut, &Subject::no_breaker());
    assert_eq!(bare.broken, bare.calls);
    let ours = play(Outage::Cut, &Subject::defaults());
    assert!(ours.broken < bare.broken / 4, "{ours:?}");
}

#[test]
fn slowness_is_no_failure_but_where_a_limit_or_a_rule_says_so() {
    assert_eq!(play(Outage::Slow, &Subject::defaults()).opened, 0);
    let variants = Subject::variants();
    let slow = variants
        .iter()
        .find(|subject| subject.name.contains("slow"));
    assert!(play(Outage::Slow, slow.unwrap()).opened > 0);
    let n4n = Subject::preset(fuseline_core::Preset::N4n);
    assert!(play(Outage::Slow, &n4n).opened > 0);
}

#[test]
fn replicas_notice_one_after_another() {
    let traffic = quiet();
    let alone = run(&traffic, Outage::Down, 3);
    let four = Run {
        replicas: 4,
        ..alone
    };
    let (alone, four) = (
        alone.play(&Subject::defaults()),
        four.play(&Subject::defaults()),
    );
    assert!(four.detected > alone.detected);
    assert!(four.wasted > 3 * alone.wasted, "{four:?} {alone:?}");
    assert_eq!(four.opened, 4);
}

#[test]
fn who_has_no_second_target_pays_for_what_would_have_gone_well() {
    let wary = Subject::variants();
    let wary = wary.iter().find(|subject| subject.name == "rate 0.25");
    let missed = |outage, subject: &Subject| play(outage, subject).missed;
    assert_eq!(missed(Outage::Down, &Subject::defaults()), 0);
    assert_eq!(missed(Outage::MostErrors, &Subject::no_breaker()), 0);
    let (ours, theirs) = (
        missed(Outage::MostErrors, &Subject::defaults()),
        missed(Outage::MostErrors, wary.unwrap()),
    );
    assert!(theirs > ours, "{theirs} {ours}");
}

#[test]
fn bumps_are_no_incident() {
    let ours = play(Outage::Bumps, &Subject::defaults());
    assert_eq!((ours.calls, ours.wasted, ours.lagging), (0, 0, 0));
    assert_eq!((ours.detected, ours.recovered), (None, None));
}

#[test]
fn a_detector_notices_some_failures_sooner() {
    let detectors = Subject::detectors();
    let cusum = detectors
        .iter()
        .find(|subject| subject.name.contains("CUSUM"));
    let (cusum, ours) = (
        play(Outage::MostErrors, cusum.unwrap()),
        play(Outage::MostErrors, &Subject::defaults()),
    );
    assert!(
        cusum.detected.unwrap() < Duration::from_secs(120),
        "{cusum:?}"
    );
    assert!(
        ours.detected
            .is_none_or(|ours| ours > cusum.detected.unwrap())
    );
}
