//! How a verdict is told: to people with what Fuseline would do, to machines as JSON.

use std::fmt::{self, Write as _};
use std::time::Duration;

use fuseline_core::{Failure, Outcome, Policy, Scope, Tick};
use fuseline_llm::{Admission, Limits, Owner, Plan, Standing, Step, Target, Verdict};
use serde::Serialize;
use serde_json::Value;

/// A verdict as JSON.
#[derive(Serialize)]
pub(super) struct Json<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    kind: &'static str,
    provider_fault: bool,
    retryable: bool,
    retry_after_ms: Option<u64>,
    scope: Scope,
    evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint_source: Option<String>,
}

impl<'a> Json<'a> {
    /// One verdict, with all that is known.
    pub(super) fn of_one(verdict: &Verdict) -> Self {
        Self {
            id: None,
            kind: kind(verdict),
            provider_fault: verdict.provider_fault,
            retryable: verdict.retryable,
            retry_after_ms: verdict
                .retry_after
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            scope: verdict.scope,
            evidence: verdict.evidence.to_string(),
            hint_source: verdict.hint_source.map(|source| source.to_string()),
        }
    }

    /// The verdict on a recorded line.
    pub(super) fn of_line(id: &'a Value, verdict: &Verdict) -> Self {
        Self {
            id: Some(id),
            hint_source: None,
            ..Self::of_one(verdict)
        }
    }
}

fn kind(verdict: &Verdict) -> &'static str {
    verdict.kind.map_or("success", |kind| kind.as_str())
}

/// A verdict as lines for people; `policy` is that of the provider's breakers.
pub(super) fn text(verdict: &Verdict, policy: &Policy) -> String {
    let hint = match (verdict.retry_after, verdict.hint_source) {
        (Some(wait), Some(source)) => format!("{} ({source})", Shown(wait)),
        (Some(wait), None) => Shown(wait).to_string(),
        (None, _) => "none".to_owned(),
    };
    let yes = |is_so| if is_so { "yes" } else { "no" };
    let rows = [
        ("kind", kind(verdict).to_owned()),
        ("evidence", verdict.evidence.to_string()),
        ("provider fault", yes(verdict.provider_fault).to_owned()),
        ("retryable", yes(verdict.retryable).to_owned()),
        ("wait hint", hint),
        ("scope", verdict.scope.to_string()),
        ("breakers", breakers(verdict, policy)),
        ("the call", call(verdict)),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        // Writing into a text cannot fail.
        let _written = writeln!(text, "{name:<16}{value}");
    }
    text
}

/// What the breakers make of it, for a call that could still wait as long as a call waits by default.
fn breakers(verdict: &Verdict, policy: &Policy) -> String {
    let failure = match verdict.outcome(Duration::ZERO, Some(Limits::default().max_wait)) {
        Outcome::Success { .. } => return "count a success".to_owned(),
        Outcome::Neutral => return "count nothing".to_owned(),
        Outcome::Failure(failure) => failure,
    };
    let rule = policy.kind(failure.kind());
    if !rule.count {
        return "count nothing".to_owned();
    }
    let charged = verdict.charged_to();
    let scope = charged.unwrap_or_else(|| Scope::charged(failure.kind(), policy.per()));
    if !rule.immediate_open && !opens_now(failure) {
        return format!("that of the {scope} counts a failure");
    }
    match verdict.retry_after {
        Some(wait) => format!(
            "that of the {scope} opens at once, until the hint ({}) is over, or `max_retry_after`",
            Shown(wait)
        ),
        None => format!(
            "that of the {scope} opens at once, for {}",
            Shown(rule.cooldown.unwrap_or_else(|| policy.cooldown()))
        ),
    }
}

fn opens_now(failure: Failure) -> bool {
    failure == failure.open_now()
}

/// What becomes of a call that has this target, another one, and the default limits of a route.
fn call(verdict: &Verdict) -> String {
    let target = |provider| Target::new(provider, "", "", Owner::Gateway);
    let targets = vec![target("this"), target("next")];
    let now = Tick::ZERO;
    let mut plan = Plan::new(targets, Limits::default(), 1, now);
    let _this = plan.next(|_| Admission::Ready, now);
    let mut step = plan.after(verdict, Standing::Current, |_| Admission::Ready, now);
    let mut told = match step {
        _ if verdict.is_success() => return "gets the answer".to_owned(),
        Step::RetryAfter { delay, .. } if delay.is_zero() => "asks again at once; then ",
        Step::RetryAfter { delay, .. } if verdict.retry_after == Some(delay) => {
            "waits as the hint says and asks again; then "
        }
        Step::RetryAfter { .. } => "asks again after a short pause; then ",
        Step::Try(_) | Step::Wait(_) | Step::GiveUp(_) => "",
    }
    .to_owned();
    while let Step::RetryAfter { .. } = step {
        step = plan.after(verdict, Standing::Current, |_| Admission::Ready, now);
    }
    told.push_str(match step {
        Step::Try(_) => "goes to the next target",
        Step::RetryAfter { .. } | Step::Wait(_) | Step::GiveUp(_) => "gets this answer as it is",
    });
    told
}

/// A time as one writes it in a configuration.
struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}
