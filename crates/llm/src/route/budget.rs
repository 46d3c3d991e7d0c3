//! `RetryBudget`: how many further attempts all calls together may make, so that retries cannot grow into the outage
//! that they answer.
//!
//! Amounts are counted in fifths of an attempt, so that nothing is ever rounded.

use std::sync::{Mutex, PoisonError};

use fuseline_core::Tick;

/// The price of an attempt, of which each first attempt earns one part: 0.2.
const ATTEMPT: u64 = 5;
/// What may be spent without having been earned: 100 attempts, which grow back within [`WINDOW_MS`].
const RESERVE: u64 = 100 * ATTEMPT;
const WINDOW_MS: u64 = 10_000;
const REGROWTH_MS: u64 = WINDOW_MS / RESERVE;
/// What was earned is forgotten after as many seconds, so that a calm day does not pay for a storm.
const SECONDS: usize = 10;

/// A budget of retries, shared by the calls of a route: 0.2 per first attempt of the last 10 s, plus a reserve of 100
/// that refills within 10 s.
///
/// ```
/// use fuseline_core::Tick;
/// use fuseline_llm::RetryBudget;
///
/// let budget = RetryBudget::default();
/// let granted = (0..200).filter(|_| budget.try_spend(Tick::ZERO)).count();
/// assert_eq!(granted, 100, "the reserve");
/// for _ in 0..10 {
///     budget.earn(Tick::ZERO);
/// }
/// assert!(budget.try_spend(Tick::ZERO) && budget.try_spend(Tick::ZERO) && !budget.try_spend(Tick::ZERO));
/// ```
#[derive(Debug, Default)]
pub struct RetryBudget(Mutex<Purse>);

#[derive(Debug)]
struct Purse {
    /// By second, the one at `second % SECONDS` being the latest.
    earned: [u64; SECONDS],
    second: u64,
    reserve: u64,
    /// When the reserve grew last.
    grown_ms: u64,
}

impl RetryBudget {
    /// A first attempt is made.
    pub fn earn(&self, now: Tick) {
        self.with(now, |purse| {
            if let Some(slot) = purse.earned.get_mut(slot(purse.second)) {
                *slot = slot.saturating_add(1);
            }
        });
    }

    /// Takes a further attempt out of the budget; says whether there was one.
    pub fn try_spend(&self, now: Tick) -> bool {
        self.with(now, Purse::spend)
    }

    /// An attempt that the caller's own client repeats: it is made whatever is left, and takes what there is.
    pub fn charge(&self, now: Tick) {
        self.with(now, Purse::take);
    }

    fn with<T>(&self, now: Tick, act: impl FnOnce(&mut Purse) -> T) -> T {
        let mut purse = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        purse.advance(now.as_millis());
        act(&mut purse)
    }
}

impl Default for Purse {
    fn default() -> Self {
        Self {
            earned: [0; SECONDS],
            second: 0,
            reserve: RESERVE,
            grown_ms: 0,
        }
    }
}

impl Purse {
    fn advance(&mut self, now_ms: u64) {
        let second = now_ms / 1_000;
        let passed = second.saturating_sub(self.second);
        for gone in 1..=passed.min(SECONDS as u64) {
            if let Some(slot) = self.earned.get_mut(slot(self.second + gone)) {
                *slot = 0;
            }
        }
        self.second = self.second.max(second);
        let grown = now_ms.saturating_sub(self.grown_ms) / REGROWTH_MS;
        self.reserve = self.reserve.saturating_add(grown).min(RESERVE);
        self.grown_ms += grown * REGROWTH_MS;
    }

    fn spend(&mut self) -> bool {
        let is_enough = self.earned.iter().sum::<u64>() + self.reserve >= ATTEMPT;
        if is_enough {
            self.take();
        }
        is_enough
    }

    /// An attempt's price, or all that there is. What was earned first is spent first.
    fn take(&mut self) {
        let mut due = ATTEMPT;
        for age in 1..=SECONDS as u64 {
            if let Some(slot) = self.earned.get_mut(slot(self.second + age)) {
                let paid = due.min(*slot);
                *slot -= paid;
                due -= paid;
            }
        }
        self.reserve = self.reserve.saturating_sub(due);
    }
}

fn slot(second: u64) -> usize {
    (second % SECONDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Tick {
        Tick::from_millis(millis)
    }

    fn drain(budget: &RetryBudget, now: Tick) -> usize {
        (0..10_000).take_while(|_| budget.try_spend(now)).count()
    }

    #[test]
    fn the_reserve_grows_back_within_ten_seconds_and_no_further() {
        let budget = RetryBudget::default();
        assert_eq!(drain(&budget, at(0)), 100);
        assert_eq!(drain(&budget, at(99)), 0);
        assert_eq!(drain(&budget, at(100)), 1);
        assert_eq!(drain(&budget, at(5_100)), 50);
        assert_eq!(drain(&budget, at(1_000_000)), 100);
        assert_eq!(
            drain(&budget, at(0)),
            0,
            "a clock that steps back gives nothing"
        );
    }

    #[test]
    fn five_first_attempts_earn_one_and_are_forgotten_after_ten_seconds() {
        let budget = RetryBudget::default();
        drain(&budget, at(0));
        for _ in 0..1_004 {
            budget.earn(at(0));
        }
        assert_eq!(drain(&budget, at(0)), 200);
        budget.earn(at(0));
        assert_eq!(drain(&budget, at(0)), 1, "the rest of four was not lost");
        for _ in 0..100 {
            budget.earn(at(1));
        }
        assert_eq!(drain(&budget, at(10_000)), 100, "only the reserve");
    }

    #[test]
    fn what_a_client_repeats_is_charged_even_where_nothing_is_left() {
        let budget = RetryBudget::default();
        for _ in 0..150 {
            budget.charge(at(0));
        }
        assert_eq!(drain(&budget, at(0)), 0);
        assert_eq!(drain(&budget, at(100)), 1, "it makes no debts");
        budget.charge(at(180));
        assert_eq!(
            drain(&budget, at(260)),
            0,
            "and takes less than an attempt, too"
        );
    }

    proptest! {
        #[test]
        fn it_is_never_overdrawn(steps in prop::collection::vec((any::<bool>(), 0_u64..300), 1..400)) {
            let budget = RetryBudget::default();
            let (mut now, mut firsts, mut spent) = (0, 0_u64, 0_u64);
            for (is_first, pause) in steps {
                now += pause;
                if is_first {
                    budget.earn(at(now));
                    firsts += 1;
                } else {
                    spent += u64::from(budget.try_spend(at(now)));
                }
                prop_assert!(spent * 5 <= firsts + 500 + now / 20);
            }
        }
    }
}
