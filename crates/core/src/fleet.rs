//! What a fleet needs of a breaker: evidence to be summed, an opening that rests on the sum, probes by grant.
//!
//! Replicas exchange what these methods tell, off the way of every call; the breaker decides by what it has been told
//! last. Without a fleet none of them is ever called, and nothing costs more.

use crate::breaker::Breaker;
use crate::kind::Kind;
use crate::saved::{Counted, SavedBreaker};
use crate::snapshot::RuleSnapshot;
use crate::tick::Tick;

/// What one replica has counted of a breaker.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that a fleet sums")]
pub struct Evidence {
    /// What each trip rule sees, in the order of [`Policy::trip`](crate::Policy::trip). Of a breaker that its rules have
    /// opened: what they saw as it opened, until that is older than the rule's window.
    pub rules: Vec<RuleSnapshot>,
    /// Calls by the end of the bucket in which they settled, over the shortest window in which calls are counted.
    pub calls: Vec<(Tick, u32)>,
}

impl Breaker {
    /// Counts calls from now on even where no rule has a window for them, so that [`evidence`](Self::evidence) shows
    /// whether any went well.
    pub fn count_calls(&self) {
        self.0.count_calls();
    }

    /// What this replica has counted. Reading is free of effects.
    pub fn evidence(&self, now: Tick) -> Evidence {
        let (rules, saved) = self.0.ask(now, |machine, hot, now| {
            let saved = machine.export(hot, self.name().clone(), now);
            (machine.evidence(hot, now), saved)
        });
        let SavedBreaker { windows, .. } = saved;
        let mut calls = windows
            .into_iter()
            .filter(|window| window.counted == Counted::Calls);
        Evidence {
            rules: rules.into_iter().map(RuleSnapshot::from).collect(),
            calls: calls.next().map_or_else(Vec::new, |window| window.buckets),
        }
    }

    /// Opens a closed breaker because the counts of all replicas together have reached a threshold. Does nothing in any
    /// other state.
    pub fn open_by_fleet(&self, kind: Option<Kind>, observed: f64, threshold: f64, now: Tick) {
        self.0.open_by_fleet(kind, (observed, threshold), now);
    }

    /// From now on probes need a grant: who wants to probe without one is rejected `probing`, to come again after
    /// 250 ms. Takes an earlier grant back; probes that are out go on.
    pub fn probe_by_grant(&self) {
        self.0.await_grant();
    }

    /// Probes need nobody's leave, as from the start.
    pub fn probe_freely(&self) {
        self.0.probe_freely();
    }

    /// Lets this breaker probe until `until`, as one that other replicas' probes have brought so far: `good` of
    /// [`successes_to_close`](crate::PolicySpec::successes_to_close).
    pub fn grant_probes(&self, until: Tick, good: u32) {
        self.0.grant_probes(until, good);
    }

    /// Whether a probe was rejected for want of a grant since this was last asked.
    pub fn take_wish(&self) -> bool {
        self.0.hot.take_wish()
    }

    /// Lets other calls wait until `until`, as the provider asked another replica to. Never shortens a longer wait.
    pub fn hold(&self, until: Tick) {
        self.hold_until(until);
    }
}
