//! What holds whatever the verdicts, the breakers and the operator's rules.

use proptest::prelude::*;

use super::*;

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let evidence = prop_oneof![
        any::<u16>().prop_map(Evidence::Status),
        prop::sample::select(&Fault::ALL[..]).prop_map(Evidence::Fault),
        Just(Evidence::EmptyBody),
    ];
    let hint = prop::option::weighted(0.3, (0_u64..100).prop_map(Duration::from_secs));
    (prop::sample::select(&Kind::ALL[..]), evidence, hint).prop_map(|(kind, evidence, hint)| {
        Verdict {
            retry_after: hint,
            ..Verdict::failure(kind, evidence)
        }
    })
}

fn any_admission() -> impl Strategy<Value = Admission> {
    prop_oneof![
        4 => Just(Admission::Ready),
        1 => Just(Admission::Probe),
        2 => (0_u64..60).prop_map(|seconds| Admission::Refused(Duration::from_secs(seconds))),
        1 => (0_u64..60).prop_map(|seconds| Admission::Held(Duration::from_secs(seconds))),
    ]
}

/// Rules for five targets, of which the first three are the route's own.
fn any_rules() -> impl Strategy<Value = BTreeMap<Kind, OnFailure>> {
    let rule = prop_oneof![
        Just(OnFailure::Next),
        Just(OnFailure::Return),
        Just(OnFailure::Bigger),
        prop::collection::vec(0_usize..6, 0..3).prop_map(OnFailure::To),
    ];
    let rules = prop::collection::btree_map(prop::sample::select(&Kind::ALL[..]), rule, 0..6);
    prop_oneof![Just(BTreeMap::new()), rules]
}

#[derive(Clone, Debug)]
struct Event {
    verdict: Verdict,
    standing: Standing,
    admissions: Vec<Admission>,
    took: u64,
    /// The step could not be taken.
    denied: bool,
    /// A second attempt is wanted beside this one; whether it is that one which goes on.
    hedge: Option<bool>,
}

fn any_event() -> impl Strategy<Value = Event> {
    let standing = prop::sample::select(
        &[
            Standing::Current,
            Standing::Current,
            Standing::Doubtful,
            Standing::Probe,
            Standing::Outdated,
        ][..],
    );
    (
        any_verdict(),
        standing,
        prop::collection::vec(any_admission(), 5),
        0_u64..20_000,
        prop::bool::weighted(0.15),
        prop::option::weighted(0.2, any::<bool>()),
    )
        .prop_map(
            |(verdict, standing, admissions, took, denied, hedge)| Event {
                verdict,
                standing,
                admissions,
                took,
                denied,
                hedge,
            },
        )
}

proptest! {
    #[test]
    fn whatever_happens_the_limits_hold(
        keys in prop::collection::vec((0_usize..3, 0_usize..3), 0..5),
        (retries, max_attempts, budget) in (0_u32..5, 1_u32..9, 1_u64..200),
        (seed, resend_unknown) in any::<(u64, bool)>(),
        (rules, own, contexts) in (any_rules(), prop_oneof![Just(5), 1_usize..6], prop::collection::vec(prop::option::of(1_u64..9), 5)),
        retries_left in 0_u64..6,
        events in prop::collection::vec(any_event(), 40),
    ) {
        let targets: Vec<_> = keys.iter().map(|(p, k)| target(&format!("p{p}"), &format!("k{k}"))).collect();
        let limits = Limits { budget: Duration::from_secs(budget), retries, max_attempts, resend_unknown, ..Limits::default() };
        let end = T0 + limits.budget;
        let budget = Arc::new(RetryBudget::default());
        for _ in retries_left..100 {
            budget.charge(T0);
        }
        let reached: Vec<usize> = rules.values().filter_map(|rule| match rule {
            OnFailure::To(targets) => Some(targets.clone()),
            _ => None,
        }).flatten().collect();
        let is_usual = rules.is_empty() && own >= targets.len();
        let returned: Vec<Kind> = rules.iter().filter(|(_, rule)| **rule == OnFailure::Return).map(|(kind, _)| *kind).collect();
        let mut plan = Plan::new(targets.clone(), limits, seed, T0)
            .with_detours(Detours { on: rules, aside: own..5, contexts })
            .with_retry_budget(Arc::clone(&budget));
        let (mut paid, mut unknown) = (0, 0);
        let mut now = T0;
        let mut visits = vec![0_u32; targets.len()];
        let mut sends = vec![0_u32; targets.len()];
        let mut verdicts = 0;
        let mut last: Option<(usize, Event)> = None;
        let (mut ended, mut waits) = (false, false);
        for event in events {
            // Two targets may be the same one; then they admit alike.
            let admits = |wanted: &Target| {
                let at = targets.iter().position(|target| target == wanted).unwrap();
                event.admissions[at]
            };
            let step = match &last {
                Some((_, before)) if !before.denied => {
                    verdicts += 1;
                    plan.after(&before.verdict, before.standing, admits, now)
                }
                _ => plan.next(admits, now),
            };
            match step {
                Step::Try(to) => {
                    prop_assert!(now < end);
                    prop_assert!(matches!(admits(&targets[to]), Admission::Ready | Admission::Probe));
                    visits[to] += 1;
                    sends[to] += 1;
                    prop_assert_eq!(visits[to], 1);
                    prop_assert!(to < own || reached.contains(&to), "only a rule leads elsewhere");
                    if let Some((_, before)) = last.as_ref().filter(|(_, before)| !before.denied) {
                        let kind = before.verdict.kind.unwrap();
                        prop_assert!(!returned.contains(&kind), "what is to be returned is returned");
                        unknown += u32::from(before.verdict.is_outcome_unknown());
                        prop_assert!(unknown <= 1 || resend_unknown);
                    }
                    if is_usual && matches!(admits(&targets[to]), Admission::Ready) {
                        let due = (0..targets.len()).find(|at| visits[*at] == 0
                            && admits(&targets[*at]) == Admission::Probe
                            && !targets.iter().zip(&visits).any(|(t, v)| *v > 0 && t.is_same_model(&targets[*at])));
                        prop_assert_eq!(due, None, "a probe that is due goes first");
                    }
                    last = Some((to, event));
                }
                Step::RetryAfter { target: to, delay } => {
                    let (from, before) = last.clone().unwrap();
                    prop_assert_eq!(from, to);
                    prop_assert!(!before.denied && before.standing != Standing::Outdated);
                    let replaced = matches!(before.verdict.evidence, Evidence::Fault(fault) if fault.is_replaceable());
                    prop_assert!(before.standing == Standing::Current || replaced);
                    prop_assert!(now + delay < end);
                    paid += u64::from(!replaced);
                    prop_assert!(paid <= retries_left + now.as_millis() / 100, "retries are paid for");
                    prop_assert!(replaced || resend_unknown || !before.verdict.is_outcome_unknown());
                    now = now + delay;
                    sends[to] += 1;
                    last = Some((to, event));
                }
                Step::Wait(wait) => {
                    prop_assert!(now + wait < end && !wait.is_zero());
                    (now, waits) = (now + wait, true);
                    if let Some((_, before)) = &mut last {
                        before.denied = true;
                    }
                    continue;
                }
                Step::GiveUp(_) => { ended = true; break }
            }
            if let Some((first, event)) = last.clone().filter(|(_, event)| !event.denied)
                && let Some(swaps) = event.hedge
                && let Some(second) = plan.hedge(|wanted| event.admissions[targets.iter().position(|target| target == wanted).unwrap()], now)
            {
                paid += 1;
                unknown += 1;
                prop_assert!(unknown <= 1 || resend_unknown, "not beside what may be running elsewhere");
                prop_assert!(paid <= retries_left + now.as_millis() / 100, "a second attempt is paid for");
                prop_assert!(now < end && plan.attempts() + 2 <= max_attempts);
                visits[second] += 1;
                sends[second] += 1;
                verdicts += 1;
                prop_assert_eq!(visits[second], 1);
                prop_assert!(second < own && !targets[second].is_same_model(&targets[first]));
                let (lost, survivor) = if swaps { (first, second) } else { (second, first) };
                plan.lost(lost, &event.verdict, survivor);
                last = Some((survivor, event));
            }
            // One more than retries + 1, for a replaced connection.
            prop_assert!(sends.iter().all(|sends| *sends <= retries + 2));
            prop_assert!(plan.attempts() <= max_attempts && plan.attempts() <= verdicts);
            now = now + Duration::from_millis(last.as_ref().map_or(0, |(_, event)| event.took));
        }
        // A key may be held again and again, until the budget ends.
        prop_assert!(ended || waits, "every plan comes to an end");
    }
}
