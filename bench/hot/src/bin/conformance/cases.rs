//! What a breaker must get right, each as a short story on a fresh breaker. Time is real: the crates read clocks of their own.

#![expect(
    clippy::disallowed_methods,
    reason = "the crates' clocks cannot be set, so stories wait"
)]

use std::thread::sleep;
use std::time::Duration;

use crate::call::{Call, Ending};
use crate::subjects::{LEASE, Maker, Subject};

/// Whether it was right; nothing where the crate has no such thing.
pub type Verdict = Option<bool>;
pub type Story = fn(Maker) -> Verdict;

const COOLDOWN: Duration = Duration::from_secs(1);
/// Longer than any story.
pub const LONG: Duration = Duration::from_secs(60);

/// What is right, in a few words, and the story that shows it.
pub const ALL: [(&str, Story); 13] = [
    (
        "opens at the fifth failure in a row, not before",
        opens_at_the_fifth,
    ),
    ("a success ends the run", a_success_ends_the_run),
    ("a good probe closes, a bad one opens again", probes_decide),
    (
        "of 20 callers after the cooldown one is let through",
        one_of_a_crowd,
    ),
    (
        "a late success while open changes nothing",
        late_success_while_open,
    ),
    (
        "late failures leave the cooldown's end alone",
        late_failures_while_open,
    ),
    (
        "late successes while half-open close nothing",
        late_successes_while_probing,
    ),
    (
        "late failures while half-open open nothing",
        late_failures_while_probing,
    ),
    ("a cancelled probe gives its place back", cancelled_probe),
    (
        "a cancelled probe closes nothing",
        cancelled_probe_closes_nothing,
    ),
    (
        "probes that panic do not keep the door shut",
        panicking_probes,
    ),
    (
        "a probe that hangs does not keep the door shut, nor open",
        hung_probe,
    ),
    (
        "a caller's own mistake as a probe decides nothing",
        mistaken_probe,
    ),
];

impl Subject {
    fn passes(&self, ending: Ending) -> bool {
        let call = (self.begin)();
        let passes = call.is_some();
        if let Some(call) = call {
            call.end(ending);
        }
        passes
    }

    /// Whether so many calls in a row are all let through.
    fn all_pass(&self, times: usize, ending: Ending) -> bool {
        (0..times).all(|_| self.passes(ending))
    }

    fn is_open(&self) -> bool {
        (self.begin)().is_none_or(|call| {
            call.end(Ending::Mistake);
            false
        })
    }

    fn held(&self, calls: usize) -> Vec<Box<dyn Call>> {
        (0..calls).filter_map(|_| (self.begin)()).collect()
    }

    /// Decides the half-open state, as far as one kind of ending does.
    fn decide(&self, ending: Ending) {
        self.all_pass(self.probes, ending);
    }
}

fn end_all(calls: Vec<Box<dyn Call>>, ending: Ending) {
    for call in calls {
        call.end(ending);
    }
}

/// A breaker whose cooldown has just ended, and calls that began before it opened.
fn after_a_cooldown(make: Maker, early: usize) -> (Subject, Vec<Box<dyn Call>>) {
    let subject = make(COOLDOWN);
    let early = subject.held(early);
    subject.all_pass(5, Ending::Failure);
    sleep(COOLDOWN + COOLDOWN / 5);
    (subject, early)
}

fn opens_at_the_fifth(make: Maker) -> Verdict {
    let subject = make(LONG);
    Some(subject.all_pass(5, Ending::Failure) && subject.is_open())
}

fn a_success_ends_the_run(make: Maker) -> Verdict {
    let subject = make(LONG);
    subject.counts_runs.then(|| {
        let run = subject.all_pass(4, Ending::Failure) && subject.passes(Ending::Success);
        run && subject.all_pass(4, Ending::Failure) && !subject.is_open()
    })
}

fn probes_decide(make: Maker) -> Verdict {
    let (good, _) = after_a_cooldown(make, 0);
    good.decide(Ending::Success);
    let (bad, _) = after_a_cooldown(make, 0);
    bad.decide(Ending::Failure);
    Some(good.all_pass(4, Ending::Failure) && !good.is_open() && bad.is_open())
}

fn one_of_a_crowd(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    let passed = subject.held(20);
    let right = passed.len() == 1;
    end_all(passed, Ending::Success);
    Some(right)
}

fn late_success_while_open(make: Maker) -> Verdict {
    let subject = make(LONG);
    let early = subject.held(1);
    subject.all_pass(5, Ending::Failure);
    end_all(early, Ending::Success);
    Some(subject.is_open())
}

fn late_failures_while_open(make: Maker) -> Verdict {
    let subject = make(COOLDOWN);
    let early = subject.held(3);
    subject.all_pass(5, Ending::Failure);
    sleep(COOLDOWN * 2 / 3);
    end_all(early, Ending::Failure);
    sleep(COOLDOWN / 2);
    Some(subject.passes(Ending::Success))
}

fn late_successes_while_probing(make: Maker) -> Verdict {
    let (subject, early) = after_a_cooldown(make, 2);
    let probe = subject.held(1);
    end_all(early, Ending::Success);
    end_all(probe, Ending::Failure);
    // One that was let in as a probe fails; one that was closed takes five.
    subject.all_pass(subject.probes - 1, Ending::Failure);
    Some(subject.is_open())
}

fn late_failures_while_probing(make: Maker) -> Verdict {
    let (subject, early) = after_a_cooldown(make, 2);
    let probe = subject.held(1);
    end_all(early, Ending::Failure);
    end_all(probe, Ending::Success);
    Some(!subject.is_open())
}

fn cancelled_probe(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    subject.is_async.then(|| {
        subject.passes(Ending::Cancelled);
        subject.passes(Ending::Success)
    })
}

fn cancelled_probe_closes_nothing(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    subject.is_async.then(|| {
        subject.passes(Ending::Cancelled);
        subject.decide(Ending::Failure);
        subject.is_open()
    })
}

fn panicking_probes(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    subject.all_pass(3, Ending::Panic);
    sleep(COOLDOWN + COOLDOWN / 5);
    Some(subject.passes(Ending::Success))
}

/// While it hangs nobody else passes; when it has been given up, its place is free.
fn hung_probe(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    let hung = subject.held(1);
    let shut = subject.is_open();
    sleep(LEASE + COOLDOWN + COOLDOWN / 5);
    let free = subject.passes(Ending::Success);
    end_all(hung, Ending::Success);
    Some(shut && free)
}

fn mistaken_probe(make: Maker) -> Verdict {
    let (subject, _) = after_a_cooldown(make, 0);
    subject.decide(Ending::Mistake);
    let next = subject.passes(Ending::Failure);
    subject.all_pass(subject.probes - 1, Ending::Failure);
    Some(next && subject.is_open())
}
