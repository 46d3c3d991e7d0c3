//! `Verdict`: what an attempt's ending means, and the one table from a verdict to what a breaker is told.

use std::time::Duration;

use fuseline_core::{Failure, Kind, Outcome, Scope};

use crate::evidence::{Evidence, Fault};
use crate::hints::HintSource;
use crate::route::is_outcome_unknown;

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    /// What went wrong; none is a success.
    pub kind: Option<Kind>,
    /// What the evidence says is unhealthy; says nothing where the request is at fault.
    pub scope: Scope,
    /// Whether it speaks against the provider's health.
    pub provider_fault: bool,
    /// Whether the same request to the same target may fare better.
    pub retryable: bool,
    /// The provider's wait hint, as sent.
    pub retry_after: Option<Duration>,
    /// Where that hint stood.
    pub hint_source: Option<HintSource>,
    /// On what this rests.
    pub evidence: Evidence,
}

impl Verdict {
    /// The provider came through.
    pub const fn success() -> Self {
        Self {
            kind: None,
            scope: Scope::Model,
            provider_fault: false,
            retryable: false,
            retry_after: None,
            hint_source: None,
            evidence: Evidence::Complete,
        }
    }

    /// A failure with what usually goes with its kind.
    pub fn failure(kind: Kind, evidence: Evidence) -> Self {
        Self {
            kind: Some(kind),
            scope: usual_scope(kind),
            provider_fault: speaks_against_provider(kind),
            retryable: speaks_against_provider(kind) || kind == Kind::RateLimit,
            retry_after: None,
            hint_source: None,
            evidence,
        }
    }

    /// Whether the provider came through.
    pub const fn is_success(&self) -> bool {
        self.kind.is_none()
    }

    /// Whether the request may have been carried out, and be paid for, without our seeing the end of it.
    pub fn is_outcome_unknown(&self) -> bool {
        self.kind
            .is_some_and(|kind| is_outcome_unknown(kind, &self.evidence))
    }

    /// The wait hint, where it asks for a wait at all.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after.filter(|wait| !wait.is_zero())
    }

    /// The scope that must bear the failure whatever its kind says: the key where the evidence names it, the provider
    /// where no connection to it came about.
    pub fn charged_to(&self) -> Option<Scope> {
        match (self.scope, &self.evidence) {
            (_, Evidence::Fault(Fault::ConnectTimeout)) => Some(Scope::Provider),
            (Scope::Key, _) => Some(Scope::Key),
            _ => None,
        }
    }

    /// What the breakers are told: the table of the whole crate.
    ///
    /// | verdict | outcome |
    /// |---|---|
    /// | success | success |
    /// | a kind that speaks against the provider, of which the evidence acquits it | neutral |
    /// | rate limit, hint within `patience` | neutral: the call waits, or others do; nothing is ill |
    /// | rate limit or spent quota, hint beyond it | failure that opens now, for as long as the hint says |
    /// | any other failure | failure of its kind, with the hint if there is one |
    ///
    /// `patience` is how long the call could still wait for this target. A probe has none: it is there to find out
    /// whether the wait is over, and a rate limit says that it is not.
    pub fn outcome(&self, took: Duration, patience: Option<Duration>) -> Outcome {
        let Some(kind) = self.kind else {
            return Outcome::success(took);
        };
        if speaks_against_provider(kind) && !self.provider_fault {
            return Outcome::Neutral;
        }
        let mut failure = Failure::new(kind);
        if let Some(status) = self.evidence.status() {
            failure = failure.code(status);
        }
        let Some(wait) = self.wait() else {
            return Outcome::Failure(failure);
        };
        failure = failure.retry_after(wait);
        match (kind, patience) {
            (Kind::RateLimit, Some(patience)) if wait <= patience => return Outcome::Neutral,
            (Kind::RateLimit | Kind::QuotaExhausted, Some(patience)) if wait > patience => {
                failure = failure.open_now()
            }
            _ => {}
        }
        Outcome::Failure(failure)
    }
}

fn usual_scope(kind: Kind) -> Scope {
    match kind {
        Kind::RateLimit | Kind::QuotaExhausted | Kind::Auth | Kind::Permission => Scope::Key,
        Kind::ServerError | Kind::Network | Kind::StreamTruncated | Kind::Cancelled => {
            Scope::Provider
        }
        _ => Scope::Model,
    }
}

fn speaks_against_provider(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ServerError
            | Kind::Overloaded
            | Kind::Timeout
            | Kind::Network
            | Kind::EmptyResponse
            | Kind::StreamStall
            | Kind::StreamTruncated
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_millis(700);
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

    fn with_hint(kind: Kind, seconds: u64) -> Verdict {
        let verdict = Verdict::failure(kind, Evidence::Status(429));
        Verdict {
            retry_after: Some(Duration::from_secs(seconds)),
            ..verdict
        }
    }

    fn failure(kind: Kind, seconds: u64) -> Failure {
        Failure::new(kind)
            .code(429)
            .retry_after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_success_says_how_long_it_took() {
        assert_eq!(
            Verdict::success().outcome(TOOK, PATIENCE),
            Outcome::success(TOOK)
        );
    }

    #[test]
    fn a_rate_limit_counts_unless_its_hint_can_be_waited_for() {
        let plain = Outcome::Failure(Failure::new(Kind::RateLimit).code(429));
        let no_hint = Verdict::failure(Kind::RateLimit, Evidence::Status(429));
        assert_eq!(no_hint.outcome(TOOK, PATIENCE), plain);
        assert_eq!(with_hint(Kind::RateLimit, 0).outcome(TOOK, PATIENCE), plain);
        assert_eq!(
            with_hint(Kind::RateLimit, 30).outcome(TOOK, PATIENCE),
            Outcome::Neutral
        );
        let beyond = Outcome::Failure(failure(Kind::RateLimit, 31).open_now());
        assert_eq!(
            with_hint(Kind::RateLimit, 31).outcome(TOOK, PATIENCE),
            beyond
        );
    }

    #[test]
    fn report_36_a_hint_of_a_day_opens_now_for_a_day() {
        let day = Outcome::Failure(failure(Kind::RateLimit, 86_400).open_now());
        assert_eq!(
            with_hint(Kind::RateLimit, 86_400).outcome(TOOK, PATIENCE),
            day
        );
    }

    #[test]
    fn a_probe_that_meets_a_rate_limit_has_failed() {
        let counted = Outcome::Failure(failure(Kind::RateLimit, 5));
        assert_eq!(with_hint(Kind::RateLimit, 5).outcome(TOOK, None), counted);
    }

    #[test]
    fn a_spent_quota_is_a_failure_whatever_the_hint() {
        let soon = Outcome::Failure(failure(Kind::QuotaExhausted, 5));
        assert_eq!(
            with_hint(Kind::QuotaExhausted, 5).outcome(TOOK, PATIENCE),
            soon
        );
        let late = Outcome::Failure(failure(Kind::QuotaExhausted, 90).open_now());
        assert_eq!(
            with_hint(Kind::QuotaExhausted, 90).outcome(TOOK, PATIENCE),
            late
        );
    }

    #[test]
    fn a_server_errors_hint_lengthens_the_cooldown_and_no_more() {
        let late = Outcome::Failure(failure(Kind::ServerError, 90));
        assert_eq!(
            with_hint(Kind::ServerError, 90).outcome(TOOK, PATIENCE),
            late
        );
    }

    #[test]
    fn what_the_evidence_acquits_the_provider_of_is_neutral() {
        let acquitted = Verdict {
            provider_fault: false,
            ..Verdict::failure(Kind::EmptyResponse, Evidence::NoContent)
        };
        assert_eq!(acquitted.outcome(TOOK, PATIENCE), Outcome::Neutral);
        let usual = Verdict::failure(Kind::EmptyResponse, Evidence::NoContent);
        assert_eq!(
            usual.outcome(TOOK, PATIENCE),
            Outcome::Failure(Failure::new(Kind::EmptyResponse))
        );
    }

    #[test]
    fn only_keys_and_missing_connections_are_charged_against_the_table() {
        for kind in Kind::ALL {
            let verdict = Verdict::failure(kind, Evidence::Status(0));
            let key = matches!(
                kind,
                Kind::RateLimit | Kind::QuotaExhausted | Kind::Auth | Kind::Permission
            );
            assert_eq!(verdict.charged_to(), key.then_some(Scope::Key), "{kind}");
        }
        let connect = Verdict::failure(Kind::Timeout, Evidence::Fault(Fault::ConnectTimeout));
        assert_eq!(connect.charged_to(), Some(Scope::Provider));
    }
}
