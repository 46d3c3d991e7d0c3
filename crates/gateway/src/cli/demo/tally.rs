//! Adds up what both sides got, and judges whether what must hold did.

use std::ops::Range;
use std::time::Duration;

use fuseline_core::State;
use fuseline_mock::Recorded;
use tokio::time::Instant;

use super::callers::{Answer, CALL_HEADER, Done};
use super::event::{Check, Lane, Side, Summary, Traffic};
use super::watch::Watch;

/// Clocks are read a little late, and a transition is dated by one of them.
const TOLERANCE: Duration = Duration::from_millis(12);

/// The calls of both sides.
#[derive(Default)]
pub(super) struct Tally {
    /// When each call began, by its number.
    pub(super) began: Vec<Instant>,
    pub(super) with: Book,
    pub(super) without: Book,
}

/// The calls of one side that have ended.
#[derive(Default)]
pub(super) struct Book {
    done: Vec<Done>,
    told: usize,
}

/// What the judgement rests on, besides the callers' own word.
pub(super) struct Evidence<'a> {
    pub(super) watch: &'a Watch,
    /// What reached the primary.
    pub(super) arrived: &'a [Recorded],
    /// It takes at least this long for an answer.
    pub(super) thinking: Duration,
    pub(super) outage: (Instant, Instant),
}

impl Tally {
    /// What has ended since the last time.
    pub(super) fn traffic(&mut self) -> Traffic {
        Traffic {
            with: self.with.lane(self.began.len()),
            without: self.without.lane(self.began.len()),
        }
    }

    pub(super) fn summary(&self, evidence: &Evidence<'_>) -> Summary {
        let calls = self.began.len();
        let with = self.with.side(calls, evidence.outage);
        let checks = vec![
            Check {
                name: "every call was answered",
                holds: calls > 0 && with.answered == calls,
                found: format!("{} of {calls}", with.answered),
            },
            self.nothing_while_open(evidence),
            one_probe_at_a_time(evidence),
            opened_and_closed(evidence.watch),
        ];
        let first = evidence.watch.times(State::Open).next();
        let closed = evidence.watch.times(State::Closed).last();
        Summary {
            ok: checks.iter().all(|check| check.holds),
            without: self.without.side(calls, evidence.outage),
            with,
            incident: match (first, closed) {
                (Some((opened, _)), Some((closed, _))) => closed.duration_since(opened),
                _ => Duration::ZERO,
            },
            opened: evidence.watch.times(State::Open).count() as u64,
            saved: evidence.watch.saved(),
            probes: evidence.watch.probes().to_vec(),
            checks,
        }
    }

    /// A call that began while the circuit was open and reached the primary before it was half-open. One that began
    /// earlier had leave.
    fn nothing_while_open(&self, evidence: &Evidence<'_>) -> Check {
        let number = |request: &Recorded| request.header(CALL_HEADER)?.parse::<usize>().ok();
        let astray = evidence.arrived.iter().filter(|request| {
            let began = number(request).and_then(|number| self.began.get(number));
            began.is_none_or(|began| {
                let inside = |(from, to): (Instant, Option<Instant>)| {
                    *began > from + TOLERANCE && to.is_none_or(|to| request.at + TOLERANCE < to)
                };
                evidence.watch.times(State::Open).any(inside)
            })
        });
        let astray = astray.count();
        Check {
            name: "no request at the open primary",
            holds: astray == 0,
            found: format!("{astray} requests"),
        }
    }
}

/// Two probes at a time would arrive closer together than the primary can answer.
fn one_probe_at_a_time(evidence: &Evidence<'_>) -> Check {
    let mut arrivals: Vec<Instant> = Vec::new();
    for (from, to) in evidence.watch.times(State::HalfOpen) {
        let inside =
            |at: &Instant| *at + TOLERANCE > from && to.is_none_or(|to| *at + TOLERANCE < to);
        arrivals.extend(
            evidence
                .arrived
                .iter()
                .map(|request| request.at)
                .filter(inside),
        );
    }
    arrivals.sort();
    let pairs = arrivals.iter().zip(arrivals.iter().skip(1));
    let together = pairs
        .filter(|(before, after)| after.duration_since(**before) < evidence.thinking)
        .count();
    Check {
        name: "probes came one at a time",
        holds: together == 0,
        found: match together {
            0 => format!("{} reached it, never two together", arrivals.len()),
            _ => format!("{} reached it, {together} beside another", arrivals.len()),
        },
    }
}

fn opened_and_closed(watch: &Watch) -> Check {
    let opened = watch.times(State::Open).count();
    let state = watch.standing().map_or(State::Closed, |(state, _)| state);
    Check {
        name: "the circuit opened and closed again",
        holds: opened > 0 && state == State::Closed,
        found: format!("opened {opened} times, {state} in the end"),
    }
}

impl Book {
    pub(super) fn add(&mut self, done: Done) {
        self.done.push(done);
    }

    /// The answers to the calls with these numbers, once all have ended.
    pub(super) fn group(&self, numbers: &Range<usize>) -> Option<Vec<Answer>> {
        let ended = self
            .done
            .iter()
            .filter(|done| numbers.contains(&done.number));
        let answers: Vec<_> = ended.map(|done| done.answer).collect();
        (answers.len() == numbers.len()).then_some(answers)
    }

    /// What has ended since the last time, of so many calls.
    fn lane(&mut self, calls: usize) -> Lane {
        let fresh = self.done.get(self.told..).unwrap_or_default();
        self.told = self.done.len();
        Lane {
            answers: fresh.iter().map(|done| done.answer).collect(),
            waiting: calls.saturating_sub(self.done.len()),
            median: median(fresh.iter().map(|done| done.took).collect()),
        }
    }

    fn side(&self, calls: usize, (from, to): (Instant, Instant)) -> Side {
        let during = self
            .done
            .iter()
            .filter(|done| (from..to).contains(&done.began));
        let waits: Vec<_> = during.map(|done| done.took).collect();
        let answered = self
            .done
            .iter()
            .filter(|done| done.answer != Answer::Nobody);
        Side {
            calls,
            answered: answered.count(),
            outage_slowest: waits.iter().max().copied(),
            outage_median: median(waits),
        }
    }
}

fn median(mut waits: Vec<Duration>) -> Option<Duration> {
    waits.sort();
    waits.get(waits.len() / 2).copied()
}
