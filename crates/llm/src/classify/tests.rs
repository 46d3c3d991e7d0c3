//! The two tables row by row, and the field reports that they answer.

use std::time::Duration;

use fuseline_core::Scope;

use super::*;
use crate::evidence::Fault;

const NONE: &[(&str, &str)] = &[];

fn on_status(status: u16, headers: &[(&str, &str)]) -> Verdict {
    classify_head(&Head::new(status, &headers), SystemTime::UNIX_EPOCH).unwrap()
}

#[test]
fn each_status_has_its_kind() {
    for (kind, statuses) in [
        (
            Kind::BadRequest,
            &[400, 405, 409, 412, 413, 415, 418, 422, 424, 498][..],
        ),
        (Kind::Auth, &[401]),
        (Kind::QuotaExhausted, &[402]),
        (Kind::Permission, &[403]),
        (Kind::NotFound, &[404]),
        (Kind::Timeout, &[408, 504, 522, 524]),
        (Kind::RateLimit, &[429]),
        (Kind::Cancelled, &[499]),
        (
            Kind::ServerError,
            &[425, 500, 501, 502, 503, 520, 521, 523, 525, 526, 530, 599],
        ),
        (
            Kind::ServerError,
            &[0, 101, 300, 301, 302, 303, 307, 308, 600, 999],
        ),
        (Kind::Overloaded, &[529]),
    ] {
        for status in statuses {
            assert_eq!(on_status(*status, &[]).kind, Some(kind), "{status}");
        }
    }
    for status in [200, 201, 204, 299, 304] {
        assert_eq!(
            classify_head(&Head::new(status, &NONE), SystemTime::UNIX_EPOCH),
            None
        );
    }
}

#[test]
fn report_22_overload_and_unlisted_5xx_are_the_providers_fault() {
    for (status, kind) in [
        (529, Kind::Overloaded),
        (520, Kind::ServerError),
        (599, Kind::ServerError),
    ] {
        let verdict = on_status(status, &[]);
        assert_eq!(verdict.kind, Some(kind));
        assert!(verdict.provider_fault && verdict.retryable && kind.rule().count);
    }
}

#[test]
fn report_25_and_40_the_callers_own_mistakes_count_for_nothing() {
    for status in [400, 401, 403, 404, 413, 415, 422] {
        let verdict = on_status(status, &[("retry-after", "10")]);
        assert!(!verdict.provider_fault && !verdict.retryable, "{status}");
        assert_eq!(
            verdict.retry_after, None,
            "advice on a request that no wait will mend"
        );
        assert!(!verdict.kind.unwrap().rule().count, "{status}");
    }
}

#[test]
fn report_42_a_proxys_408_is_the_providers_and_worth_another_try() {
    for status in [408, 425] {
        let verdict = on_status(status, &[]);
        assert!(verdict.provider_fault && verdict.retryable && verdict.kind.unwrap().rule().count);
    }
}

#[test]
fn report_141_a_redirect_is_an_upstream_error_that_no_retry_mends() {
    for status in [301, 302, 303, 307, 308] {
        let verdict = on_status(
            status,
            &[
                ("location", "https://elsewhere.test/"),
                ("retry-after", "1"),
            ],
        );
        assert_eq!(
            (verdict.evidence, verdict.retryable),
            (Evidence::Redirect(status), false)
        );
        assert_eq!(verdict.retry_after, None);
    }
}

#[test]
fn hints_are_read_where_waiting_may_help() {
    for (status, hint) in [
        (429, Some(7)),
        (402, Some(7)),
        (503, Some(7)),
        (529, Some(7)),
        (408, Some(7)),
        (400, None),
    ] {
        let verdict = on_status(status, &[("retry-after", "7")]);
        assert_eq!(
            verdict.retry_after,
            hint.map(Duration::from_secs),
            "{status}"
        );
    }
}

#[test]
fn the_evidence_names_what_is_unhealthy() {
    for (status, scope) in [
        (429, Scope::Key),
        (402, Scope::Key),
        (401, Scope::Key),
        (529, Scope::Model),
        (408, Scope::Model),
        (500, Scope::Provider),
    ] {
        assert_eq!(on_status(status, &[]).scope, scope, "{status}");
    }
}

#[test]
fn faults_mean_what_the_moment_makes_of_them() {
    let stream = Phase::Body(Shape::Stream);
    let plain = Phase::Body(Shape::Plain);
    for (fault, phase, kind, scope) in [
        (
            Fault::Dns,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::Refused,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::Tls,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::Stale,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::NotProcessed,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::Reset,
            Phase::BeforeHead,
            Kind::Network,
            Scope::Provider,
        ),
        (
            Fault::ConnectTimeout,
            Phase::BeforeHead,
            Kind::Timeout,
            Scope::Provider,
        ),
        (
            Fault::Deadline,
            Phase::BeforeHead,
            Kind::Timeout,
            Scope::Model,
        ),
        (Fault::Reset, plain, Kind::Network, Scope::Provider),
        (Fault::Deadline, plain, Kind::Timeout, Scope::Model),
        (Fault::Stall, plain, Kind::Timeout, Scope::Model),
        (Fault::Reset, stream, Kind::StreamTruncated, Scope::Provider),
        (Fault::Deadline, stream, Kind::Timeout, Scope::Model),
        (Fault::Stall, stream, Kind::StreamStall, Scope::Model),
    ] {
        let verdict = classify_fault(fault, phase);
        assert_eq!(
            (verdict.kind, verdict.scope),
            (Some(kind), scope),
            "{fault:?} {phase:?}"
        );
        assert!(verdict.provider_fault && verdict.retryable);
        assert_eq!(verdict.evidence, Evidence::Fault(fault));
    }
}

#[test]
fn a_connection_that_has_answered_is_not_replaced() {
    let verdict = classify_fault(Fault::NotProcessed, Phase::Body(Shape::Stream));
    assert_eq!(
        (verdict.kind, verdict.evidence),
        (Some(Kind::StreamTruncated), Evidence::Fault(Fault::Reset))
    );
}

#[test]
fn an_empty_answer_is_none_where_one_was_asked_for() {
    assert_eq!(
        classify_end(Operation::Create, 0).kind,
        Some(Kind::EmptyResponse)
    );
    assert_eq!(classify_end(Operation::Create, 1), Verdict::success());
    assert_eq!(classify_end(Operation::Other, 0), Verdict::success());
}
