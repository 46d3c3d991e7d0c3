//! The routing table row by row, and what holds whatever happens.

mod detours;
mod hedges;
mod whatever;

use std::collections::BTreeMap;

use super::*;
use crate::evidence::{Evidence, Fault};
use crate::route::OnFailure;
use crate::target::Owner;

const T0: Tick = Tick::ZERO;

fn target(provider: &str, key: &str) -> Target {
    Target::new(provider, "m", key, Owner::Gateway)
}

fn a_and_b() -> Vec<Target> {
    vec![target("a", "k1"), target("b", "k2")]
}

fn plan_of(targets: Vec<Target>, retries: u32) -> Plan {
    Plan::new(
        targets,
        Limits {
            retries,
            ..Limits::default()
        },
        7,
        T0,
    )
}

fn ready(_: &Target) -> Admission {
    Admission::Ready
}

fn at(seconds: u64) -> Tick {
    Tick::from_millis(seconds * 1_000)
}

fn answered(kind: Kind) -> Verdict {
    Verdict::failure(kind, Evidence::Status(0))
}

fn hinted(kind: Kind, seconds: u64) -> Verdict {
    Verdict {
        retry_after: Some(Duration::from_secs(seconds)),
        ..answered(kind)
    }
}

fn broken(kind: Kind, fault: Fault) -> Verdict {
    Verdict::failure(kind, Evidence::Fault(fault))
}

/// What a plan does after a first failure on the first of two targets.
fn after_first(verdict: &Verdict) -> Step {
    let mut plan = plan_of(a_and_b(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    plan.after(verdict, Standing::Current, ready, T0)
}

fn delay_of(step: Step) -> Duration {
    match step {
        Step::RetryAfter { target: 0, delay } => delay,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_table_row_by_row() {
    let answer = Step::GiveUp(Reason::Final);
    for kind in [Kind::RateLimit, Kind::ServerError, Kind::Timeout] {
        let delay = delay_of(after_first(&answered(kind)));
        assert!((375..625).contains(&delay.as_millis()), "{kind}: {delay:?}");
    }
    let overloaded = delay_of(after_first(&answered(Kind::Overloaded)));
    assert!(
        (1_500..2_500).contains(&overloaded.as_millis()),
        "report 23: at least a second, {overloaded:?}"
    );
    for fault in [Fault::Dns, Fault::Refused, Fault::Tls] {
        assert_eq!(
            delay_of(after_first(&broken(Kind::Network, fault))),
            Duration::ZERO,
            "{fault:?}"
        );
    }
    for verdict in [
        broken(Kind::Network, Fault::Reset),
        broken(Kind::Timeout, Fault::Deadline),
        broken(Kind::Timeout, Fault::ConnectTimeout),
        broken(Kind::StreamStall, Fault::Stall),
        broken(Kind::StreamTruncated, Fault::Reset),
        Verdict::failure(Kind::EmptyResponse, Evidence::EmptyBody),
        answered(Kind::QuotaExhausted),
        answered(Kind::Auth),
        answered(Kind::Permission),
        Verdict {
            retryable: false,
            ..Verdict::failure(Kind::ServerError, Evidence::Redirect(302))
        },
    ] {
        assert_eq!(after_first(&verdict), Step::Try(1), "{verdict:?}");
    }
    for kind in [
        Kind::BadRequest,
        Kind::NotFound,
        Kind::ContentPolicy,
        Kind::Cancelled,
        Kind::Local,
    ] {
        assert_eq!(after_first(&answered(kind)), answer, "{kind}");
    }
    let too_long = after_first(&answered(Kind::ContextLength));
    assert_eq!(
        too_long,
        Step::GiveUp(Reason::Exhausted),
        "b serves the same model"
    );
    assert_eq!(after_first(&Verdict::success()), answer);
}

#[test]
fn the_callers_own_key_is_his_to_mend() {
    let own = Target::new("a", "m", "k", Owner::Caller);
    for kind in [Kind::Auth, Kind::Permission] {
        let mut plan = plan_of(vec![own.clone(), target("b", "k2")], 1);
        assert_eq!(plan.next(ready, T0), Step::Try(0));
        assert_eq!(
            plan.after(&answered(kind), Standing::Current, ready, T0),
            Step::GiveUp(Reason::Final)
        );
    }
}

#[test]
fn a_hint_goes_first_where_it_can_be_waited_for() {
    assert_eq!(
        delay_of(after_first(&hinted(Kind::RateLimit, 7))),
        Duration::from_secs(7)
    );
    assert_eq!(
        delay_of(after_first(&hinted(Kind::ServerError, 30))),
        Duration::from_secs(30)
    );
    assert_eq!(
        after_first(&hinted(Kind::RateLimit, 31)),
        Step::Try(1),
        "beyond max_wait"
    );
    let zero = delay_of(after_first(&hinted(Kind::RateLimit, 0)));
    assert!(
        zero >= Duration::from_millis(375),
        "report 35: own backoff for 0, {zero:?}"
    );

    let mut plan = plan_of(a_and_b(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let step = plan.after(
        &hinted(Kind::RateLimit, 10),
        Standing::Current,
        ready,
        at(111),
    );
    assert_eq!(step, Step::Try(1), "beyond the budget");
    assert_eq!(plan.patience(at(111)), Duration::from_secs(9));
}

#[test]
fn report_36_a_hint_of_a_day_is_not_slept_on() {
    let mut plan = plan_of(vec![target("a", "k1")], 3);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let step = plan.after(
        &hinted(Kind::RateLimit, 86_400),
        Standing::Current,
        ready,
        T0,
    );
    assert_eq!(step, Step::GiveUp(Reason::Exhausted));
}

#[test]
fn report_39_delays_without_a_hint_grow_and_add_up() {
    let mut plan = plan_of(vec![target("a", "k1")], 5);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let delays: Vec<_> = (0..5)
        .map(|_| delay_of(plan.after(&answered(Kind::RateLimit), Standing::Current, ready, T0)))
        .collect();
    assert!(
        delays.is_sorted_by(|a, b| a < b) && delays[0] >= Duration::from_millis(200),
        "{delays:?}"
    );
    assert!(delays.iter().sum::<Duration>() >= Duration::from_secs(3));
    let step = plan.after(&answered(Kind::RateLimit), Standing::Current, ready, T0);
    assert_eq!(step, Step::GiveUp(Reason::Attempts));
}

/// Runs a plan whose every attempt gets `verdict`, and lists the targets in order.
fn course(plan: &mut Plan, verdict: &Verdict) -> (Vec<usize>, Reason) {
    let mut tried = Vec::new();
    let mut step = plan.next(ready, T0);
    loop {
        match step {
            Step::Try(target) | Step::RetryAfter { target, .. } => tried.push(target),
            Step::Wait(_) => panic!("nobody is held"),
            Step::GiveUp(reason) => return (tried, reason),
        }
        step = plan.after(verdict, Standing::Current, ready, T0);
    }
}

#[test]
fn report_70_and_73_retries_do_not_multiply() {
    let failing = answered(Kind::ServerError);
    let mut one = plan_of(vec![target("a", "k1")], 5);
    assert_eq!(course(&mut one, &failing), (vec![0; 6], Reason::Attempts));
    let limits = Limits {
        retries: 3,
        max_attempts: 8,
        ..Limits::default()
    };
    let mut two = Plan::new(a_and_b(), limits, 7, T0);
    assert_eq!(
        course(&mut two, &failing),
        (vec![0, 0, 0, 0, 1, 1, 1, 1], Reason::Attempts)
    );
    let mut default = plan_of(a_and_b(), 1);
    assert_eq!(
        course(&mut default, &failing),
        (vec![0, 0, 1, 1], Reason::Exhausted)
    );
    assert_eq!(default.attempts(), 4);
}

#[test]
fn report_80_a_refused_key_and_a_rate_limit_fall_over_and_a_teapot_does_not() {
    assert_eq!(
        course(&mut plan_of(a_and_b(), 1), &answered(Kind::Auth)).0,
        [0, 1]
    );
    assert_eq!(
        course(&mut plan_of(a_and_b(), 1), &answered(Kind::RateLimit)).0,
        [0, 0, 1, 1]
    );
    assert_eq!(
        course(&mut plan_of(a_and_b(), 1), &answered(Kind::BadRequest)),
        (vec![0], Reason::Final)
    );
}

#[test]
fn report_82_an_unknown_end_costs_one_more_target_at_most() {
    let mut targets = a_and_b();
    targets.push(target("c", "k3"));
    for verdict in [
        broken(Kind::Network, Fault::Reset),
        broken(Kind::Timeout, Fault::Deadline),
    ] {
        assert_eq!(
            course(&mut plan_of(targets.clone(), 3), &verdict),
            (vec![0, 1], Reason::UnknownEnd)
        );
    }
    let unsent = broken(Kind::Timeout, Fault::ConnectTimeout);
    assert_eq!(
        course(&mut plan_of(targets.clone(), 3), &unsent).0,
        [0, 1, 2]
    );
    let refused = broken(Kind::Network, Fault::Refused);
    assert_eq!(
        course(&mut plan_of(targets, 3), &refused).0,
        [0, 0, 1, 1, 2, 2]
    );
}

#[test]
fn report_83_and_84_a_dead_connection_is_replaced_once_and_is_no_retry() {
    for fault in [Fault::Stale, Fault::NotProcessed] {
        for standing in [Standing::Current, Standing::Probe] {
            let mut plan = plan_of(vec![target("a", "k1")], 0);
            assert_eq!(plan.next(ready, T0), Step::Try(0));
            let verdict = broken(Kind::Network, fault);
            assert_eq!(
                delay_of(plan.after(&verdict, standing, ready, T0)),
                Duration::ZERO
            );
            assert_eq!(plan.attempts(), 0);
            assert_eq!(
                plan.after(&verdict, standing, ready, T0),
                Step::GiveUp(Reason::Exhausted)
            );
            assert_eq!(plan.attempts(), 1);
        }
    }
    let mut plan = plan_of(vec![target("a", "k1")], 1);
    assert_eq!(
        course(&mut plan, &broken(Kind::Network, Fault::Stale)).0,
        [0, 0, 0],
        "then an ordinary retry"
    );
}

#[test]
fn another_key_helps_against_what_ails_a_key_and_nothing_else() {
    let targets = vec![target("a", "k1"), target("a", "k2"), target("b", "k3")];
    for (kind, second) in [
        (Kind::QuotaExhausted, 1),
        (Kind::Auth, 1),
        (Kind::RateLimit, 1),
        (Kind::ServerError, 2),
        (Kind::Overloaded, 2),
    ] {
        let (tried, _) = course(&mut plan_of(targets.clone(), 0), &answered(kind));
        assert_eq!(tried[1], second, "{kind}");
    }
}

#[test]
fn what_is_too_long_for_a_model_is_not_sent_to_it_elsewhere() {
    let other = Target::new("b", "large", "k2", Owner::Gateway);
    let targets = vec![target("a", "k1"), target("b", "k2"), other];
    let (tried, step) = course(&mut plan_of(targets, 0), &answered(Kind::ContextLength));
    assert_eq!((tried, step), (vec![0, 2], Reason::Exhausted));
}

#[test]
fn whether_there_are_others_is_a_matter_of_chances_attempts_and_breakers() {
    let mut plan = plan_of(a_and_b(), 0);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    assert!(plan.has_others(|_| true));
    assert!(!plan.has_others(|target| target.provider() != "b"));
    let lost = broken(Kind::Timeout, Fault::Deadline);
    assert_eq!(
        plan.after(&lost, Standing::Current, ready, T0),
        Step::Try(1)
    );
    assert!(!plan.has_others(|_| true), "none is left");
    let mut keys = plan_of(vec![target("a", "k1"), target("a", "k2")], 0);
    assert_eq!(keys.next(ready, T0), Step::Try(0));
    assert!(!keys.has_others(|_| true), "another key is no other target");
}

#[test]
fn a_target_due_for_a_probe_goes_first_and_the_others_stand_behind_it() {
    let mut plan = plan_of(a_and_b(), 1);
    let probing = |target: &Target| {
        if target.provider() == "b" {
            Admission::Probe
        } else {
            Admission::Ready
        }
    };
    assert_eq!(plan.next(probing, T0), Step::Try(1));
    let step = plan.after(&answered(Kind::ServerError), Standing::Probe, ready, T0);
    assert_eq!(step, Step::Try(0), "a probe is not repeated on its target");
}

#[test]
fn an_outdated_permit_is_not_repeated_nor_a_doubtful_one() {
    for standing in [Standing::Outdated, Standing::Doubtful] {
        let mut plan = plan_of(a_and_b(), 1);
        assert_eq!(plan.next(ready, T0), Step::Try(0));
        let step = plan.after(&answered(Kind::ServerError), standing, ready, T0);
        assert_eq!(step, Step::Try(1));
    }
}

#[test]
fn open_targets_are_passed_over_and_the_soonest_return_is_kept() {
    let waits = BTreeMap::from([("a", 12), ("b", 7)]);
    let refusing =
        |target: &Target| Admission::Refused(Duration::from_secs(waits[target.provider()]));
    let mut plan = plan_of(a_and_b(), 1);
    assert_eq!(plan.next(refusing, T0), Step::GiveUp(Reason::Refused));
    assert_eq!(plan.soonest(), Some(Duration::from_secs(7)));
    assert_eq!(plan.attempts(), 0);

    let only_b = |target: &Target| {
        if target.provider() == "a" {
            refusing(target)
        } else {
            Admission::Ready
        }
    };
    let mut plan = plan_of(a_and_b(), 0);
    assert_eq!(plan.next(only_b, T0), Step::Try(1));
    let step = plan.after(&answered(Kind::ServerError), Standing::Current, only_b, T0);
    assert_eq!(
        (step, plan.soonest()),
        (
            Step::GiveUp(Reason::Exhausted),
            Some(Duration::from_secs(12))
        )
    );
}

#[test]
fn a_held_key_is_waited_for_when_nobody_else_admits() {
    let hold = |seconds| move |_: &Target| Admission::Held(Duration::from_secs(seconds));
    let one = || vec![target("a", "k1")];
    let mut plan = plan_of(one(), 0);
    let Step::Wait(wait) = plan.next(hold(2), T0) else {
        panic!("a wait of 2 s fits")
    };
    assert!(
        (Duration::from_secs(2)..Duration::from_millis(2_200)).contains(&wait),
        "{wait:?}"
    );
    assert_eq!(plan.next(ready, T0 + wait), Step::Try(0));

    let mut plan = plan_of(one(), 0);
    assert_eq!(
        plan.next(hold(31), T0),
        Step::GiveUp(Reason::Refused),
        "longer than max_wait"
    );
    assert_eq!(plan.soonest(), Some(Duration::from_secs(31)));
    assert_eq!(
        plan.next(hold(20), at(100)),
        Step::GiveUp(Reason::Refused),
        "as long as the budget"
    );

    let mut plan = plan_of(a_and_b(), 0);
    let a_is_held = |target: &Target| match target.provider() {
        "a" => Admission::Held(Duration::from_secs(1)),
        _ => Admission::Ready,
    };
    assert_eq!(plan.next(a_is_held, T0), Step::Try(1), "others go first");
    let step = plan.after(
        &answered(Kind::ServerError),
        Standing::Current,
        a_is_held,
        T0,
    );
    assert!(matches!(step, Step::Wait(_)), "{step:?}");
    let open = |_: &Target| Admission::Refused(Duration::from_secs(1));
    assert_eq!(
        plan.next(open, at(2)),
        Step::GiveUp(Reason::Exhausted),
        "an open circuit is not waited for"
    );
}

#[test]
fn a_permit_refused_at_the_last_moment_leads_to_the_next_target() {
    let mut plan = plan_of(a_and_b(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    assert_eq!(plan.next(ready, T0), Step::Try(1));
    assert_eq!(plan.next(ready, T0), Step::GiveUp(Reason::Refused));
    assert_eq!(
        plan_of(Vec::new(), 1).next(ready, T0),
        Step::GiveUp(Reason::Refused)
    );
}

#[test]
fn a_spent_budget_ends_the_call() {
    let mut plan = plan_of(a_and_b(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let step = plan.after(
        &answered(Kind::ServerError),
        Standing::Current,
        ready,
        at(120),
    );
    assert_eq!(step, Step::GiveUp(Reason::Budget));
    assert_eq!(plan.remaining(at(500)), Duration::ZERO);
}
