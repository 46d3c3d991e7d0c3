//! States over restarts, in virtual time: same boot, another boot, clocks that step.

use fuseline_core::{Breaker, Outcome, Policy, PolicySpec};
use proptest::prelude::*;

use super::*;

const START: u64 = 10_000_000;
const WALL: u64 = 1_800_000_000_000;

/// A moment so many ms after the tests' start, by all three clocks.
fn moment(ms: u64) -> Moment {
    Moment {
        tick: Tick::from_millis(START + ms),
        wall_ms: WALL + ms,
        boot: Some(Boot {
            id: "first".into(),
            ms: 5_000 + ms,
        }),
    }
}

/// The same for a process that began anew, so that its ticks have nothing to do with those before.
fn next_process(ms: u64) -> Moment {
    Moment {
        tick: Tick::from_millis(77 * START + ms),
        ..moment(ms)
    }
}

fn after_boot(wall_ms: u64) -> Moment {
    Moment {
        tick: Tick::from_millis(77 * START),
        wall_ms,
        boot: Some(Boot {
            id: "second".into(),
            ms: 3,
        }),
    }
}

fn policy() -> Policy {
    let spec = PolicySpec {
        jitter: Some(0.0),
        ..PolicySpec::default()
    };
    Policy::new(&spec).unwrap()
}

fn open_at(now: &Moment) -> Breaker {
    let breaker = Breaker::new(ScopeName::model("p", "m"), policy());
    for _ in 0..5 {
        let permit = breaker.try_acquire(now.tick).unwrap();
        permit.record(&Outcome::failure(Kind::ServerError), now.tick);
    }
    breaker
}

/// What is left of an `open`, in ms, for one who restores it.
fn left(record: &Record, now: &Moment) -> u64 {
    millis(record.saved(now).until.unwrap().since(now.tick))
}

#[test]
fn within_a_boot_the_end_stays_whatever_the_wall_clock_does() {
    let record = Record::of(&open_at(&moment(0)).export(moment(0).tick), &moment(0));
    assert_eq!(left(&record, &next_process(4_000)), 11_000);
    assert_eq!(left(&record, &next_process(15_000)), 0);
    for step in [1, WALL, WALL + 86_400_000, 2 * WALL] {
        let stepped = Moment {
            wall_ms: step,
            ..next_process(4_000)
        };
        assert_eq!(left(&record, &stepped), 11_000, "{step}");
    }
}

#[test]
fn after_another_boot_the_wall_clock_counts_within_the_full_cooldown() {
    let record = Record::of(
        &open_at(&moment(0)).export(moment(9_000).tick),
        &moment(9_000),
    );
    for (wall, expected) in [
        (WALL + 10_000, 5_000),
        (WALL + 15_000, 0),
        (WALL + 900_000_000, 0),
        (WALL - 5_000, 15_000),
        (1, 15_000),
    ] {
        assert_eq!(left(&record, &after_boot(wall)), expected, "{wall}");
    }
    let nobody_knows = Moment {
        boot: None,
        ..after_boot(WALL + 10_000)
    };
    assert_eq!(left(&record, &nobody_knows), 5_000);
}

#[test]
fn report_14_a_wall_clock_step_over_a_restart_neither_stretches_nor_skips_the_open_time() {
    let record = Record::of(
        &open_at(&moment(0)).export(moment(1_000).tick),
        &moment(1_000),
    );
    for hours in [-48_i64, -1, 1, 48] {
        let mut now = next_process(2_000);
        now.wall_ms = now.wall_ms.saturating_add_signed(hours * 3_600_000);
        let breaker = Breaker::new(record.name.clone(), policy());
        breaker.restore(&record.saved(&now), now.tick);
        assert!(!breaker.is_available(now.tick + Duration::from_millis(12_999)));
        assert!(breaker.is_available(now.tick + Duration::from_millis(13_000)));
    }
}

#[test]
fn report_99_a_clock_that_is_wrong_by_45_s_shuts_nobody_out_for_longer_than_the_cooldown() {
    let record = Record::of(&open_at(&moment(0)).export(moment(0).tick), &moment(0));
    for skew in [-45_000_i64, 45_000] {
        let wall = (WALL + 1_000).saturating_add_signed(skew);
        let found = left(&record, &after_boot(wall));
        assert!(found <= 15_000, "{found}");
        let same_boot = Moment {
            wall_ms: wall,
            ..next_process(1_000)
        };
        assert_eq!(left(&record, &same_boot), 14_000);
    }
}

#[test]
fn ages_go_on_while_nobody_runs() {
    let breaker = Breaker::new(ScopeName::key("p", "0"), policy());
    for _ in 0..2 {
        let permit = breaker.try_acquire(moment(0).tick).unwrap();
        permit.record(&Outcome::failure(Kind::Timeout), moment(0).tick);
    }
    let record = Record::of(&breaker.export(moment(500).tick), &moment(500));
    for (now, hits) in [(30_000, 2), (60_000, 2), (63_000, 0)] {
        let now = next_process(now);
        let restored = Breaker::new(record.name.clone(), policy());
        restored.restore(&record.saved(&now), now.tick);
        let snapshot = restored.snapshot(now.tick);
        assert_eq!((snapshot.run, snapshot.rules[1].hits), (2, hits), "{now:?}");
        assert_eq!(snapshot.rules[1].calls, Some(hits));
    }
}

#[test]
fn a_state_that_nobody_has_used_for_long_says_so() {
    let open = Record::of(&open_at(&moment(0)).export(moment(0).tick), &moment(0));
    assert_eq!(open.unused_for(&next_process(14_000)), 0);
    assert_eq!(open.unused_for(&next_process(20_000)), 5_000);
    assert_eq!(open.unused_for(&after_boot(WALL + 20_000)), 5_000);
    let forced = open_at(&moment(0));
    forced.force_open(None, moment(1).tick);
    let forced = Record::of(&forced.export(moment(1).tick), &moment(1));
    assert_eq!(
        forced.unused_for(&after_boot(2 * WALL)),
        0,
        "an operator's word has no end"
    );
}

#[test]
fn numbers_that_make_no_sense_do_no_harm() {
    let now = moment(0);
    let mut record = Record::of(&open_at(&now).export(now.tick), &now);
    record.taken_ms = u64::MAX;
    record.since_ms = 0;
    record.counts.incident_age = Some(u64::MAX);
    record.counts.windows = vec![Window {
        counted: WindowOf::Failures,
        slower_than: None,
        window: 60_000,
        buckets: vec![(i64::MIN, u32::MAX), (i64::MAX, u32::MAX), (0, u32::MAX)],
    }];
    record.counts.run = u32::MAX;
    record.state = State::Closed;
    for now in [next_process(0), after_boot(0), after_boot(u64::MAX)] {
        let breaker = Breaker::new(record.name.clone(), policy());
        breaker.restore(&record.saved(&now), now.tick);
        let permit = breaker.try_acquire(now.tick).unwrap();
        permit.record(&Outcome::failure(Kind::Network), now.tick);
        assert_eq!(breaker.state(now.tick), State::Open);
    }
}

#[test]
fn kinds_that_are_not_known_are_left_out() {
    let mut record = Record::of(&open_at(&moment(0)).export(moment(0).tick), &moment(0));
    record.counts.kinds.insert("of_the_future".to_owned(), 3);
    let why = record.counts.why.as_mut().unwrap();
    why.kind = Some("of_the_future".to_owned());
    why.failures[0].1 = "of_the_future".to_owned();
    let saved = record.saved(&moment(0));
    assert!(saved.kinds.is_empty());
    let why = saved.why.unwrap();
    assert_eq!((why.kind, why.last_failures.len()), (None, 4));
}

proptest! {
    #[test]
    fn a_record_gives_back_what_was_taken(
        fails in prop::collection::vec((0_u64..9_000, any::<bool>()), 0..12),
        force in prop::option::of((any::<bool>(), prop::option::of(0_u64..90_000))),
        later in 0_u64..100_000,
    ) {
        let breaker = Breaker::new(ScopeName::provider("p"), policy());
        let mut now = 0;
        for (wait, good) in fails {
            now += wait;
            if let Ok(permit) = breaker.try_acquire(moment(now).tick) {
                let outcome = if good {
                    Outcome::success(Duration::ZERO)
                } else {
                    Outcome::failure(Kind::Overloaded)
                };
                permit.record(&outcome, moment(now).tick);
            }
        }
        if let Some((open, wait)) = force {
            let until = wait.map(|wait| moment(now + wait).tick);
            if open {
                breaker.force_open(until, moment(now).tick);
            } else {
                breaker.force_closed(until, moment(now).tick);
            }
        }
        let saved = breaker.export(moment(now).tick);
        let record = Record::of(&saved, &moment(now));
        prop_assert_eq!(&record.saved(&moment(now)), &saved);
        let text = serde_json::to_string(&record.counts).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Counts>(&text).unwrap(), &record.counts);

        // A later process of the same boot finds what this one would, moved to its own clock.
        let at = next_process(now + later);
        let found = record.saved(&at);
        let moved = |tick: Tick| Tick::from_millis(tick.as_millis() + 76 * START);
        prop_assert_eq!(found.since, moved(saved.since));
        for (found, saved) in found.windows.iter().zip(&saved.windows) {
            let expected: Vec<_> = saved.buckets.iter().map(|(at, count)| (moved(*at), *count)).collect();
            prop_assert_eq!(&found.buckets, &expected);
        }
        if let Some(until) = saved.until {
            let left = until.since(moment(now + later).tick);
            prop_assert_eq!(found.until.unwrap().since(at.tick), left);
        }
    }
}
