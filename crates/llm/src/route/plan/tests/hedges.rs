//! Second attempts beside the first.

use super::*;

fn begun(targets: Vec<Target>, max_attempts: u32) -> Plan {
    let limits = Limits {
        max_attempts,
        ..Limits::default()
    };
    let mut plan = Plan::new(targets, limits, 7, T0);
    assert_eq!(plan.next(ready, T0), Step::Try(0));
    plan
}

fn keys_and_others() -> Vec<Target> {
    vec![
        target("a", "k1"),
        target("a", "k2"),
        target("b", "k3"),
        target("c", "k4"),
    ]
}

#[test]
fn it_goes_to_another_model_and_once() {
    let mut plan = begun(keys_and_others(), 6);
    assert_eq!(plan.hedge(ready, T0), Some(2));
    assert_eq!(plan.hedge(ready, T0), None);
    let b_is_open = |target: &Target| match target.provider() {
        "b" => Admission::Refused(Duration::from_secs(1)),
        _ => Admission::Ready,
    };
    assert_eq!(begun(keys_and_others(), 6).hedge(b_is_open, T0), Some(3));
    assert_eq!(
        begun(vec![target("a", "k1"), target("a", "k2")], 6).hedge(ready, T0),
        None
    );
}

#[test]
fn it_is_an_attempt_within_all_limits() {
    assert_eq!(
        begun(a_and_b(), 1).hedge(ready, T0),
        None,
        "no attempts left"
    );
    assert_eq!(
        begun(a_and_b(), 2).hedge(ready, at(120)),
        None,
        "no time left"
    );
    let budget = Arc::new(RetryBudget::default());
    for _ in 0..99 {
        budget.charge(T0);
    }
    let paid = || begun(a_and_b(), 2).with_retry_budget(Arc::clone(&budget));
    assert_eq!(paid().hedge(ready, T0), Some(1));
    assert_eq!(paid().hedge(ready, T0), None, "nothing pays for it");
    assert_eq!(
        plan_of(a_and_b(), 1).hedge(ready, T0),
        None,
        "nothing has begun"
    );
}

#[test]
fn the_call_goes_on_with_the_survivor_and_visits_nobody_twice() {
    let failing = answered(Kind::ServerError);
    for survivor in [0, 2] {
        let mut plan = begun(keys_and_others(), 6);
        assert_eq!(plan.hedge(ready, T0), Some(2));
        plan.lost(2 - survivor, &failing, survivor);
        assert_eq!(plan.attempts(), 1);
        let step = plan.after(&failing, Standing::Current, ready, T0);
        assert!(
            matches!(step, Step::RetryAfter { target, .. } if target == survivor),
            "{step:?}"
        );
        let step = plan.after(&failing, Standing::Current, ready, T0);
        assert_eq!(step, Step::Try(3), "another key does not help a");
    }
}

#[test]
fn report_82_two_at_once_are_as_many_as_may_be_running() {
    let lost = broken(Kind::Network, Fault::Reset);
    let mut plan = begun(keys_and_others(), 6);
    assert_eq!(plan.hedge(ready, T0), Some(2));
    plan.lost(0, &lost, 2);
    let step = plan.after(&lost, Standing::Current, ready, T0);
    assert_eq!(step, Step::GiveUp(Reason::UnknownEnd));
    let mut plan = begun(keys_and_others(), 6);
    let once = plan.after(&lost, Standing::Current, ready, T0);
    assert_eq!(once, Step::Try(2));
    assert_eq!(
        plan.hedge(ready, T0),
        None,
        "it may be running at a already"
    );
}
