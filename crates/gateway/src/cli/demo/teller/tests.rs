//! What the demo's lines look like.

use std::time::Duration;

use fuseline_core::{Cause, FailureNote, Kind, State, Tick};

use super::super::callers::Answer;
use super::super::event::{Cast, Change, Check, Event, Failure, Lane, Side, Summary, Traffic};
use super::look::Look;
use super::text::lines;

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

fn failure(kind: Kind, code: u16) -> Failure {
    Failure::from(&FailureNote {
        at: Tick::ZERO,
        kind,
        code: Some(code),
    })
}

fn change(from: State, to: State, cause: Cause) -> Event {
    let mut last_failures = vec![failure(Kind::ServerError, 503); 4];
    last_failures.push(failure(Kind::StreamTruncated, 200));
    Event::Transition(Change {
        from,
        to,
        cause,
        observed: 0.6,
        threshold: 1000.0,
        kind: Some(Kind::StreamTruncated),
        last_failures,
        open_for: Some(SECONDS(120)),
        saved: 12_345,
        incident: Some(SECONDS(3600)),
    })
}

fn lane(answers: usize) -> Lane {
    let kinds = [
        Answer::Primary,
        Answer::SpareAfterFailure,
        Answer::Spare,
        Answer::Nobody,
    ];
    Lane {
        answers: kinds.into_iter().cycle().take(answers).collect(),
        waiting: answers / 2,
        median: Some(SECONDS(answers as u64)),
    }
}

fn summary() -> Summary {
    let side = |answered| Side {
        calls: 1000,
        answered,
        outage_median: Some(Duration::from_millis(81)),
        outage_slowest: None,
    };
    Summary {
        ok: false,
        with: side(1000),
        without: side(0),
        incident: SECONDS(12),
        opened: 3,
        saved: 130,
        probes: vec!["network".to_owned(), "good".to_owned()],
        checks: vec![Check {
            name: "every call was answered",
            holds: false,
            found: "1 of 2".to_owned(),
        }],
    }
}

fn every_kind() -> Vec<Event> {
    let address = "127.0.0.1:65535".parse().unwrap();
    let cast = Cast {
        gateway: address,
        primary: address,
        spare: address,
        failures_to_open: 5,
        cooldown: Duration::from_millis(2500),
        backoff: 1.5,
        successes_to_close: 2,
        seed: 1,
    };
    let text = super::super::plan::SCENES.map(|(_, scene)| Event::Incident { text: scene.text() });
    let mut events = vec![
        Event::Started(cast),
        change(State::Closed, State::Degraded, Cause::Pressure),
        change(State::Degraded, State::Open, Cause::Consecutive),
        change(State::Open, State::HalfOpen, Cause::Cooldown),
        change(State::HalfOpen, State::Open, Cause::Probe),
        change(State::HalfOpen, State::Closed, Cause::Probe),
        Event::GoodProbe { good: 1, needed: 2 },
        Event::Crowd {
            callers: 12,
            to_primary: 1,
        },
        Event::Traffic(Traffic::default()),
        Event::Traffic(Traffic {
            with: lane(15),
            without: lane(90),
        }),
        Event::Summary(summary()),
    ];
    events.extend(text);
    events
}

/// Without what colours a terminal.
fn bare(line: &str) -> String {
    let parts = line.split('\x1b').enumerate();
    let visible = parts.map(|(at, part)| match (at, part.split_once('m')) {
        (0, _) | (_, None) => part,
        (_, Some((_, text))) => text,
    });
    visible.collect()
}

#[test]
fn no_line_is_wider_than_80_columns() {
    for look in [Look::Plain, Look::Signs, Look::Colours] {
        for event in every_kind() {
            for line in lines(look, SECONDS(5999), &event) {
                let line = bare(&line);
                assert!(
                    line.chars().count() <= 80,
                    "{}: {line}",
                    line.chars().count()
                );
            }
        }
    }
}

#[test]
fn looks_differ_in_signs_and_colours_alone() {
    for event in every_kind() {
        let [plain, signs, colours] = [Look::Plain, Look::Signs, Look::Colours]
            .map(|look| lines(look, SECONDS(7), &event).join("\n"));
        assert!(plain.is_ascii(), "{plain}");
        assert!(!signs.contains('\x1b'), "{signs}");
        assert_eq!(bare(&colours), signs);
    }
}

#[test]
fn calls_stand_in_their_order_and_those_without_room_are_counted() {
    assert_eq!(Look::Plain.lane(&lane(6), 12), "PfSxPf...   ");
    assert_eq!(Look::Plain.lane(&lane(8), 12), "PfSxPfSx....");
    assert_eq!(Look::Plain.lane(&lane(10), 12), "PfSxPfSx+7  ");
    assert_eq!(
        Look::Colours.lane(&lane(2), 3),
        "\x1b[32m●\x1b[0m\x1b[33m◇\x1b[0m\x1b[2m·\x1b[0m"
    );
}

#[test]
fn a_transition_tells_its_reasons() {
    let told = |event| lines(Look::Plain, Duration::from_millis(64_949), &event);
    let failures = "last failures: server_error 503 x4, stream_truncated 200";
    assert_eq!(
        told(change(State::Degraded, State::Open, Cause::Consecutive)),
        [
            "  01:04.9  * OPEN: 0.6 failures in a row, limit 1000".to_owned(),
            format!("             {failures}"),
            "             no call goes to the primary for 120.0 s".to_owned(),
        ]
    );
    assert_eq!(
        told(change(State::HalfOpen, State::Open, Cause::Probe))
            .first()
            .unwrap(),
        "  01:04.9  * OPEN: the probe failed: stream_truncated 200"
    );
}
