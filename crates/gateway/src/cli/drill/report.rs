//! What a drill came to.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::State;
use serde::Serialize;

use super::callers::{Done, Outcome};
use super::incident::Part;
use super::watch::{Change, Watch};

/// The whole report; times in milliseconds since the drill began.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Whether every check holds.
    pub(super) ok: bool,
    pub(super) model: String,
    /// The providers in trouble.
    pub(super) providers: Vec<String>,
    pub(super) trouble: Span,
    pub(super) totals: Totals,
    /// Of calls that began before, in and after the trouble.
    pub(super) before: Waits,
    pub(super) during: Waits,
    pub(super) after: Waits,
    /// Requests that reached each provider during the trouble.
    pub(super) reached: BTreeMap<String, u64>,
    pub(super) circuits: Vec<Circuit>,
    pub(super) checks: Vec<Check>,
    pub(super) calls: Vec<Done>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Span {
    pub(super) begin_ms: u64,
    pub(super) end_ms: u64,
}

/// Calls by what became of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) calls: usize,
    pub(super) first: usize,
    pub(super) fallback: usize,
    pub(super) failed: usize,
    pub(super) broken: usize,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Waits {
    pub(super) calls: usize,
    pub(super) median_ms: u64,
    pub(super) slowest_ms: u64,
}

/// One breaker that changed its state.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Circuit {
    pub(super) breaker: String,
    /// From the beginning of the trouble until it opened.
    pub(super) detected_ms: Option<u64>,
    /// From the end of the trouble until it closed for good.
    pub(super) recovered_ms: Option<u64>,
    pub(super) opened: usize,
    pub(super) changes: Vec<Change>,
}

/// Something that must hold.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) holds: bool,
    pub(super) found: String,
}

impl Report {
    pub(super) fn new(
        model: &str,
        parts: &[Part],
        (begin, end): (Duration, Duration),
        calls: Vec<Done>,
        watch: Watch,
        reached: BTreeMap<String, u64>,
    ) -> Self {
        let trouble = Span {
            begin_ms: millis(begin),
            end_ms: millis(end),
        };
        let totals = Totals::of(&calls);
        let circuits = watch.changes.into_iter();
        let circuits: Vec<_> = circuits
            .map(|(breaker, changes)| Circuit::of(breaker, changes, trouble))
            .collect();
        let checks = vec![answered(totals), closed(&circuits)];
        let of = |from, to| Waits::of(&calls, from, to);
        Self {
            ok: checks.iter().all(|check| check.holds),
            model: model.to_owned(),
            providers: parts.iter().map(|part| part.provider.clone()).collect(),
            trouble,
            totals,
            before: of(0, trouble.begin_ms),
            during: of(trouble.begin_ms, trouble.end_ms),
            after: of(trouble.end_ms, u64::MAX),
            reached,
            circuits,
            checks,
            calls,
        }
    }

    /// Whether any circuit opened.
    pub(super) fn is_noticed(&self) -> bool {
        self.circuits.iter().any(|circuit| circuit.opened > 0)
    }
}

impl Totals {
    fn of(calls: &[Done]) -> Self {
        let count = |outcome| calls.iter().filter(|done| done.outcome == outcome).count();
        Self {
            calls: calls.len(),
            first: count(Outcome::First),
            fallback: count(Outcome::Fallback),
            failed: count(Outcome::Failed),
            broken: count(Outcome::Broken),
        }
    }
}

impl Waits {
    fn of(calls: &[Done], from: u64, to: u64) -> Self {
        let within = calls.iter().filter(|done| (from..to).contains(&done.at_ms));
        let mut waits: Vec<u64> = within.map(|done| done.took_ms).collect();
        waits.sort_unstable();
        Self {
            calls: waits.len(),
            median_ms: waits.get(waits.len() / 2).copied().unwrap_or(0),
            slowest_ms: waits.last().copied().unwrap_or(0),
        }
    }
}

impl Circuit {
    fn of(breaker: String, changes: Vec<Change>, trouble: Span) -> Self {
        let opened = |change: &&Change| change.to == State::Open;
        let first = changes.iter().find(opened);
        let last = changes.iter().rfind(|change| change.to == State::Closed);
        let is_closed = !changes
            .iter()
            .rev()
            .take_while(|change| change.to != State::Closed)
            .any(|change| opened(&change));
        Self {
            breaker,
            detected_ms: first.map(|change| change.at_ms.saturating_sub(trouble.begin_ms)),
            recovered_ms: last
                .filter(|_| first.is_some() && is_closed)
                .map(|change| change.at_ms.saturating_sub(trouble.end_ms)),
            opened: changes
                .iter()
                .filter(|change| change.to == State::Open && change.from != State::HalfOpen)
                .count(),
            changes,
        }
    }
}

fn answered(totals: Totals) -> Check {
    let good = totals.first + totals.fallback;
    Check {
        name: "every call was answered",
        holds: totals.calls > 0 && good == totals.calls,
        found: format!("{good} of {}", totals.calls),
    }
}

fn closed(circuits: &[Circuit]) -> Check {
    let opened = circuits.iter().filter(|circuit| circuit.opened > 0);
    let closed = opened
        .clone()
        .filter(|circuit| circuit.recovered_ms.is_some());
    let (opened, closed) = (opened.count(), closed.count());
    Check {
        name: "every circuit that opened closed again",
        holds: closed == opened,
        found: format!("{closed} of {opened}"),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at_ms: u64, from: State, to: State) -> Change {
        Change {
            at_ms,
            from,
            to,
            why: String::new(),
        }
    }

    #[test]
    fn a_circuit_is_timed_from_the_trouble_and_after_it() {
        let trouble = Span {
            begin_ms: 3_000,
            end_ms: 8_000,
        };
        let mut changes = vec![
            change(4_000, State::Degraded, State::Open),
            change(6_000, State::Open, State::HalfOpen),
            change(6_100, State::HalfOpen, State::Open),
            change(9_000, State::Open, State::HalfOpen),
        ];
        let open = Circuit::of("a".to_owned(), changes.clone(), trouble);
        assert_eq!(
            (open.detected_ms, open.recovered_ms, open.opened),
            (Some(1_000), None, 1)
        );
        assert!(!closed(&[open]).holds);
        changes.push(change(9_500, State::HalfOpen, State::Closed));
        let shut = Circuit::of("a".to_owned(), changes, trouble);
        assert_eq!(shut.recovered_ms, Some(1_500));
        assert!(closed(&[shut]).holds);
    }

    #[test]
    fn no_calls_prove_nothing() {
        assert!(!answered(Totals::default()).holds);
    }
}
