//! Whether it is we who are cut off: providers that have nothing in common do not all become unreachable at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::Tick;
use fuseline_llm::Evidence;

/// What is said of it, in the log and to callers.
pub(crate) const OURS: &str = "all providers fail at once: our own network?";

/// No connections to so many providers within [`WINDOW`], and no answer from anybody since: then it is we.
const PROVIDERS: usize = 2;
const WINDOW: Duration = Duration::from_secs(10);

/// What is known of the network on our side; shared by all calls.
#[derive(Default)]
pub(crate) struct Outage {
    /// Whether anything is noted, so that answers need no lock while nothing is wrong.
    is_noted: AtomicBool,
    silence: Mutex<Silence>,
}

impl Outage {
    /// Takes in on what an attempt's verdict rests; none where an answer has begun. Says whether the outage is ours.
    pub(crate) fn note(&self, provider: &str, evidence: Option<&Evidence>, now: Tick) -> bool {
        let unreached = matches!(evidence, Some(Evidence::Fault(fault)) if fault.nothing_sent());
        let broken = matches!(evidence, Some(Evidence::Fault(_) | Evidence::Late { .. }));
        if !unreached && !broken && !self.is_noted.load(Ordering::Relaxed) {
            return false;
        }
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let stood = silence.stands;
        match (unreached, broken) {
            (true, _) => silence.unreached(provider, now),
            // A connection stood, and there was no answer: that speaks for neither side.
            (false, true) => {}
            (false, false) => *silence = Silence::default(),
        }
        self.is_noted
            .store(!silence.since.is_empty(), Ordering::Relaxed);
        match (stood, silence.stands) {
            (false, true) => tracing::error!("{OURS}"),
            (true, false) => tracing::info!("providers can be reached again"),
            _ => {}
        }
        silence.stands
    }

    /// Whether the outage is ours as far as is known.
    pub(crate) fn stands(&self) -> bool {
        let silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.stands
    }
}

/// Who could not be reached since the last answer, and when last. As many as are configured.
#[derive(Default)]
struct Silence {
    since: BTreeMap<Box<str>, Tick>,
    /// Once recognised it ends by an answer alone: while circuits are open nobody is asked.
    stands: bool,
}

impl Silence {
    fn unreached(&mut self, provider: &str, now: Tick) {
        self.since.retain(|_, last| now.since(*last) <= WINDOW);
        self.since.insert(provider.into(), now);
        self.stands |= self.since.len() >= PROVIDERS;
    }
}

#[cfg(test)]
mod tests {
    use fuseline_llm::Fault;

    use super::*;

    const REFUSED: Option<&Evidence> = Some(&Evidence::Fault(Fault::Refused));

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1_000)
    }

    #[test]
    fn two_providers_within_the_window_and_no_answer_since_are_we() {
        let outage = Outage::default();
        assert!(!outage.note("a", REFUSED, at(0)));
        assert!(!outage.note("a", REFUSED, at(9)), "one alone tells nothing");
        assert!(!outage.note("b", REFUSED, at(20)), "too far apart");
        assert!(outage.note("a", Some(&Evidence::Fault(Fault::Dns)), at(30)));
        assert!(outage.note("a", REFUSED, at(300)), "until somebody answers");
        assert!(outage.stands());
    }

    #[test]
    fn any_answer_ends_it_and_a_broken_one_says_nothing() {
        for answer in [None, Some(&Evidence::Status(500))] {
            let outage = Outage::default();
            let _ = outage.note("a", REFUSED, at(0));
            assert!(outage.note("b", REFUSED, at(1)));
            assert!(outage.note("b", Some(&Evidence::Fault(Fault::Reset)), at(2)));
            assert!(!outage.note("b", answer, at(3)) && !outage.stands());
            assert!(!outage.note("a", REFUSED, at(4)), "it begins anew");
        }
    }
}
