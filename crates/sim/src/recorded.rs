//! Recorded calls, judged by other settings: which of them a breaker would have kept back, and what that would have
//! saved or cost.

use core::time::Duration;

use fuseline_core::{Breaker, Failure, Kind, Outcome, Permit, Policy, ScopeName, State, Tick};

use crate::agenda::Agenda;

/// A call to one target, its retries there included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Recorded {
    /// When it began.
    pub at: Tick,
    /// How long it took.
    pub took: Duration,
    /// Until its first content, where that is known; `slow` rules judge it.
    pub first: Option<Duration>,
    /// How it went.
    pub result: Result<(), Kind>,
    /// It was refused when it was recorded: how it would have gone is [assumed](assume_refused).
    pub is_refused: bool,
}

/// What settings would have made of recorded calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judged {
    /// All calls.
    pub calls: u64,
    /// Failures that count, and were let through.
    pub sent_bad: u64,
    /// What their callers waited for them.
    pub lost: Duration,
    /// Failures that count, and were kept back.
    pub kept_bad: u64,
    /// Calls that went well, and were kept back.
    pub kept_good: u64,
    /// How often the circuit opened from closed.
    pub opened: u64,
}

impl Judged {
    /// The same over both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            sent_bad: self.sent_bad + other.sent_bad,
            lost: self.lost + other.lost,
            kept_bad: self.kept_bad + other.kept_bad,
            kept_good: self.kept_good + other.kept_good,
            opened: self.opened + other.opened,
        }
    }

    /// What callers waited for failures, with this much more for each good call kept back.
    pub fn cost(&self, refusal: Duration) -> Duration {
        let refusals = u32::try_from(self.kept_good).unwrap_or(u32::MAX);
        self.lost.saturating_add(refusal.saturating_mul(refusals))
    }
}

/// Gives calls that were refused the result of the last one before them that was tried. Those before any are as good
/// ones. The calls must be in the order of their time.
pub fn assume_refused(calls: &mut [Recorded]) {
    let mut last = (Ok(()), Duration::from_secs(1));
    for call in calls {
        if call.is_refused {
            (call.result, call.took) = last;
        } else {
            last = (call.result, call.took);
        }
    }
}

/// Lets one target's calls, in the order of their time, pass a breaker with these settings.
///
/// ```
/// use core::time::Duration;
/// use fuseline_core::{Kind, Policy, Tick};
/// use fuseline_sim::{Recorded, replay};
///
/// let call = |second: u64| Recorded {
///     at: Tick::from_millis(1_000 * second),
///     took: Duration::from_millis(300),
///     first: None,
///     result: Err(Kind::Overloaded),
///     is_refused: false,
/// };
/// let judged = replay(&Policy::default(), &(0..15).map(call).collect::<Vec<_>>());
/// assert_eq!((judged.sent_bad, judged.kept_bad), (5, 10));
/// ```
pub fn replay(policy: &Policy, calls: &[Recorded]) -> Judged {
    let breaker = Breaker::new(ScopeName::provider("recorded"), policy.clone());
    let mut under_way: Agenda<(Permit, Outcome)> = Agenda::new();
    let mut judged = Judged::default();
    for call in calls {
        settle(&mut under_way, call.at);
        judged.calls += 1;
        let counts = call.result.is_err_and(|kind| policy.kind(kind).count);
        match breaker.try_acquire_owned(call.took, call.at) {
            Ok(permit) => {
                if counts {
                    judged.sent_bad += 1;
                    judged.lost += call.took;
                }
                let proof = permit.probe_proof().filter(|_| call.result.is_ok());
                let settles = proof.map_or(call.took, |proof| {
                    call.took
                        .min(call.first.map_or(call.took, |first| first + proof))
                });
                under_way.add(call.at + settles, (permit, call.outcome()));
            }
            Err(_) if counts => judged.kept_bad += 1,
            Err(_) if call.result.is_ok() => judged.kept_good += 1,
            // The caller's own mistake: somebody else would have told him the same.
            Err(_) => {}
        }
    }
    settle(&mut under_way, Tick::MAX);
    let entered = breaker
        .snapshot(calls.last().map_or(Tick::ZERO, |call| call.at))
        .entered;
    let opened = State::ALL
        .iter()
        .zip(entered)
        .find(|(state, _)| **state == State::Open);
    judged.opened = opened.map_or(0, |(_, times)| times);
    judged
}

fn settle(under_way: &mut Agenda<(Permit, Outcome)>, now: Tick) {
    while let Some((at, (permit, outcome))) = under_way.due(now) {
        permit.record(&outcome, at);
    }
}

impl Recorded {
    fn outcome(&self) -> Outcome {
        match self.result {
            Ok(()) => Outcome::success(self.first.unwrap_or(self.took)),
            Err(kind) => Outcome::Failure(Failure::new(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::PolicySpec;

    use super::*;

    fn call(second: u64, result: Result<(), Kind>) -> Recorded {
        Recorded {
            at: Tick::from_millis(second * 1_000),
            took: Duration::from_millis(500),
            first: None,
            result,
            is_refused: false,
        }
    }

    #[test]
    fn an_outage_is_kept_back_but_for_the_first_and_the_probes() {
        let ill = (10..100).map(|second| call(second, Err(Kind::Network)));
        let well = (0..10).chain(100..200).map(|second| call(second, Ok(())));
        let mut calls: Vec<_> = ill.chain(well).collect();
        calls.sort_by_key(|call| call.at);
        let judged = replay(&Policy::default(), &calls);
        assert_eq!(judged.calls, 200);
        assert_eq!(judged.sent_bad + judged.kept_bad, 90);
        assert!((6..=9).contains(&judged.sent_bad), "{judged:?}");
        assert_eq!(judged.lost, Duration::from_millis(500 * judged.sent_bad));
        assert!((1..=60).contains(&judged.kept_good), "{judged:?}");
        let patient = PolicySpec {
            cooldown: Some(Duration::from_secs(600)),
            ..PolicySpec::default()
        };
        let patient = replay(&Policy::new(&patient).unwrap(), &calls);
        assert_eq!((patient.sent_bad, patient.opened), (5, 1));
        assert_eq!(patient.kept_good, 100);
        assert!(patient.cost(Duration::from_secs(1)) > judged.cost(Duration::from_secs(1)));
    }

    #[test]
    fn the_callers_own_mistakes_count_nowhere() {
        let calls: Vec<_> = (0..50).map(|at| call(at, Err(Kind::BadRequest))).collect();
        let judged = replay(&Policy::default(), &calls);
        assert_eq!((judged.sent_bad, judged.opened, judged.kept_bad), (0, 0, 0));
    }

    #[test]
    fn refused_calls_are_taken_to_go_as_the_one_tried_before_them() {
        let refused = |second| Recorded {
            is_refused: true,
            took: Duration::ZERO,
            ..call(second, Ok(()))
        };
        let mut calls = [
            refused(0),
            call(1, Err(Kind::Timeout)),
            refused(2),
            call(3, Ok(())),
            refused(4),
        ];
        assume_refused(&mut calls);
        let results = calls.map(|call| call.result);
        assert_eq!(
            results,
            [
                Ok(()),
                Err(Kind::Timeout),
                Err(Kind::Timeout),
                Ok(()),
                Ok(())
            ]
        );
        assert_eq!(calls[2].took, Duration::from_millis(500));
        assert_eq!(judged_sum(&calls).calls, 5);
    }

    fn judged_sum(calls: &[Recorded]) -> Judged {
        let judged = replay(&Policy::default(), calls);
        judged.plus(Judged::default())
    }
}
