//! What a plan can still do once it has given up: wait until a target recovers, or go on to more of them.

use std::time::Duration;

use fuseline_core::Tick;

use super::Plan;
use crate::target::Target;

impl Plan {
    /// Further targets behind those that there are, numbered on. Ask [`next`](Self::next) afterwards: each is visited at
    /// most once, too, and the call's limits are for all of them together.
    pub fn extend(&mut self, targets: impl IntoIterator<Item = Target>) {
        for target in targets {
            let mut known = self.targets.iter().zip(&self.spent);
            let spent = known.any(|(other, spent)| *spent && *other == target);
            self.targets.push(target);
            self.spent.push(spent);
        }
    }

    /// How long to wait for the first target that may let the call through again, and a little more; none where
    /// nobody refused, or where the wait is beyond the call's patience. Ask [`next`](Self::next) after it.
    pub fn until_recovery(&mut self, now: Tick) -> Option<Duration> {
        let soonest = self.soonest?;
        self.sit_out(soonest, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Admission, Limits, Reason, Standing, Step};
    use super::*;
    use crate::evidence::Evidence;
    use crate::target::Owner;
    use crate::verdict::Verdict;
    use fuseline_core::Kind;

    const T0: Tick = Tick::ZERO;

    fn target(provider: &str) -> Target {
        Target::new(provider, "m", "k", Owner::Gateway)
    }

    fn one() -> Plan {
        let limits = Limits {
            retries: 0,
            ..Limits::default()
        };
        Plan::new(vec![target("a")], limits, 7, T0)
    }

    #[test]
    fn further_targets_are_tried_in_their_turn_and_the_spent_ones_stay_spent() {
        let ready = |_: &Target| Admission::Ready;
        let failed = Verdict::failure(Kind::ServerError, Evidence::Status(503));
        let mut plan = one();
        assert_eq!(plan.next(ready, T0), Step::Try(0));
        let step = plan.after(&failed, Standing::Current, ready, T0);
        assert_eq!(step, Step::GiveUp(Reason::Exhausted));
        plan.extend([target("b"), target("c")]);
        assert_eq!(plan.next(ready, T0), Step::Try(1));
        let step = plan.after(&failed, Standing::Current, ready, T0);
        assert_eq!(step, Step::Try(2));
        let step = plan.after(&failed, Standing::Current, ready, T0);
        assert_eq!(step, Step::GiveUp(Reason::Exhausted));
        assert_eq!(plan.attempts(), 3);
    }

    #[test]
    fn a_recovery_is_waited_for_within_the_calls_patience_and_then_tried() {
        let open = |seconds| move |_: &Target| Admission::Refused(Duration::from_secs(seconds));
        let mut plan = one();
        assert_eq!(plan.until_recovery(T0), None, "nobody has refused yet");
        assert_eq!(plan.next(open(5), T0), Step::GiveUp(Reason::Refused));
        let wait = plan.until_recovery(T0).unwrap();
        assert!(
            (Duration::from_secs(5)..Duration::from_millis(5_501)).contains(&wait),
            "{wait:?}"
        );
        assert_eq!(plan.next(|_| Admission::Probe, T0 + wait), Step::Try(0));

        let mut plan = one();
        assert_eq!(plan.next(open(31), T0), Step::GiveUp(Reason::Refused));
        assert_eq!(plan.until_recovery(T0), None, "longer than max_wait");
        let late = T0 + Duration::from_secs(110);
        assert_eq!(plan.next(open(10), late), Step::GiveUp(Reason::Refused));
        assert_eq!(plan.until_recovery(late), None, "as long as the budget");
    }
}
