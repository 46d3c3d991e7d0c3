//! What an operator's rules, the retry budget and other keys of a provider change.

use super::*;

fn three() -> Vec<Target> {
    vec![target("a", "k1"), target("b", "k2"), target("c", "k3")]
}

fn ruled(on: impl IntoIterator<Item = (Kind, OnFailure)>, own: usize) -> Plan {
    plan_of(three(), 1).with_detours(Detours {
        on: on.into_iter().collect(),
        aside: own..3,
        contexts: vec![Some(4_000), Some(4_000), Some(32_000)],
    })
}

fn tried(plan: &mut Plan, kind: Kind) -> Vec<usize> {
    course(plan, &answered(kind)).0
}

#[test]
fn a_rule_for_a_kind_takes_the_place_of_the_table() {
    let next = [(Kind::BadRequest, OnFailure::Next)];
    assert_eq!(
        tried(&mut ruled(next.clone(), 3), Kind::BadRequest),
        [0, 1, 2]
    );
    assert_eq!(
        tried(&mut ruled(next, 3), Kind::NotFound),
        [0],
        "other kinds are as they were"
    );
    let next = [(Kind::ServerError, OnFailure::Next)];
    assert_eq!(
        tried(&mut ruled(next, 3), Kind::ServerError),
        [0, 1, 2],
        "no retries in between"
    );
    let back = [(Kind::ServerError, OnFailure::Return)];
    assert_eq!(
        course(&mut ruled(back, 3), &answered(Kind::ServerError)),
        (vec![0], Reason::Final)
    );
}

#[test]
fn a_request_that_was_too_long_goes_to_a_larger_context_and_to_no_other() {
    let bigger = [(Kind::ContextLength, OnFailure::Bigger)];
    assert_eq!(
        tried(&mut ruled(bigger.clone(), 3), Kind::ContextLength),
        [0, 2]
    );
    let mut plan = ruled(bigger, 3);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let step = plan.after(&answered(Kind::ContextLength), Standing::Current, ready, T0);
    assert_eq!(step, Step::Try(2));
    let step = plan.after(&answered(Kind::Auth), Standing::Current, ready, T0);
    assert_eq!(step, Step::GiveUp(Reason::Exhausted), "b stays too small");
}

#[test]
fn a_target_of_a_rule_goes_first_and_is_never_tried_without_it() {
    let to_c = [(Kind::Timeout, OnFailure::To(vec![2]))];
    assert_eq!(tried(&mut ruled(to_c.clone(), 2), Kind::Timeout), [0, 2, 1]);
    assert_eq!(
        tried(&mut ruled(to_c.clone(), 2), Kind::ServerError),
        [0, 0, 1, 1]
    );
    let mut plan = ruled(to_c, 2);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let c_is_open = |target: &Target| match target.provider() {
        "c" => Admission::Refused(Duration::from_secs(9)),
        _ => Admission::Ready,
    };
    let step = plan.after(&answered(Kind::Timeout), Standing::Current, c_is_open, T0);
    assert_eq!(step, Step::Try(1), "the others stand behind it");
    let own_target = [(Kind::Timeout, OnFailure::To(vec![0, 2, 9]))];
    assert_eq!(
        tried(&mut ruled(own_target, 3), Kind::Timeout),
        [0, 2, 1],
        "none twice, and none that is not there"
    );
}

#[test]
fn a_rule_cannot_send_what_may_be_running_to_a_third() {
    let next = [(Kind::Timeout, OnFailure::Next)];
    let late = broken(Kind::Timeout, Fault::Deadline);
    assert_eq!(course(&mut ruled(next, 3), &late).0, [0, 1]);
}

#[test]
fn report_82_what_may_be_running_is_sent_again_where_the_operator_says_so() {
    let limits = Limits {
        retries: 1,
        resend_unknown: true,
        ..Limits::default()
    };
    for (verdict, expected) in [
        (broken(Kind::Timeout, Fault::Deadline), vec![0, 0, 1, 1]),
        (broken(Kind::Network, Fault::Reset), vec![0, 0, 1, 1]),
        (
            Verdict::failure(Kind::EmptyResponse, Evidence::EmptyBody),
            vec![0, 1],
        ),
    ] {
        let mut plan = Plan::new(a_and_b(), limits, 7, T0);
        assert_eq!(course(&mut plan, &verdict).0, expected, "{verdict:?}");
    }
}

#[test]
fn without_a_retry_budget_left_the_next_target_is_asked_at_once() {
    let budget = Arc::new(RetryBudget::default());
    for _ in 0..99 {
        budget.charge(T0);
    }
    let plan = || plan_of(a_and_b(), 2).with_retry_budget(Arc::clone(&budget));
    let mut first = plan();
    assert_eq!(tried(&mut first, Kind::ServerError), [0, 0, 1]);
    assert!(first.is_retry_denied());
    let mut second = plan();
    assert_eq!(tried(&mut second, Kind::BadRequest), [0]);
    assert!(!second.is_retry_denied(), "nobody asked");
    let mut third = plan();
    assert_eq!(
        course(&mut third, &broken(Kind::Network, Fault::Stale)).0,
        [0, 0, 1, 1],
        "replaced connections are free"
    );
}

#[test]
fn a_limited_key_rests_while_another_one_takes_calls() {
    let keys = || vec![target("a", "k1"), target("a", "k2"), target("b", "k3")];
    let limited = hinted(Kind::RateLimit, 5);
    let mut plan = plan_of(keys(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    assert_eq!(
        plan.after(&limited, Standing::Current, ready, T0),
        Step::Try(1)
    );
    let step = plan.after(&limited, Standing::Current, ready, T0);
    assert_eq!(
        step,
        Step::RetryAfter {
            target: 1,
            delay: Duration::from_secs(5)
        },
        "no third key"
    );
    let second_is_held = |target: &Target| match target.credential() {
        "k2" => Admission::Held(Duration::from_secs(9)),
        _ => Admission::Ready,
    };
    let mut plan = plan_of(keys(), 1);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    let step = plan.after(&limited, Standing::Current, second_is_held, T0);
    assert!(
        matches!(step, Step::RetryAfter { target: 0, .. }),
        "{step:?}"
    );
}
