//! One attempt of a course: its request, its terms and limits, and how long its answer took.

use std::time::Duration;

use bytes::Bytes;
use fuseline_core::{Count, Policy, Tick};
use fuseline_llm::{Evidence, Target, Terms};
use http::Request;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;

use super::super::client::Pool;
use super::super::driven::Driven;
use super::super::exchange::{Came, Exchange, Flow};
use super::super::limits::Limits;
use super::super::refusal::Refusal;
use super::super::roster::Roster;
use super::super::trace;
use super::super::watched::Judge;
use super::super::way::Way;
use super::Course;
use crate::config::Timeouts;

/// For how many seconds an SDK waits between bytes.
const READ_TIMEOUT: HeaderName = HeaderName::from_static("x-stainless-read-timeout");
/// By which a provider knows a request that it has carried out already.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that is about to be sent.
pub(super) struct Prepared<'c> {
    exchange: Exchange<'c>,
    pool: Pool,
    request: Request<Full<Bytes>>,
}

impl Prepared<'_> {
    /// Sends it and sees what comes back.
    pub(super) async fn run(self, mut attempt: Box<Driven>) -> (Box<Driven>, Came) {
        let came = self
            .exchange
            .run(&mut attempt, &self.pool, self.request)
            .await;
        (attempt, came)
    }
}

impl<'c> Course<'c> {
    /// The request to a target, as it is about to be sent.
    pub(super) fn prepare(&mut self, at: usize, attempt: &Driven) -> Result<Prepared<'c>, Refusal> {
        self.answers(at);
        let Some(way) = self.ways.get(at) else {
            return Err(Refusal::unsendable());
        };
        if self.context.is_first() {
            self.count_first();
        }
        self.context.attempt();
        let mut request = way
            .upstream
            .request(self.call, way.model, way.key)
            .map_err(|_| Refusal::unsendable())?;
        self.name(request.headers_mut());
        trace::begin(self.call, way, &mut request, self.context);
        tracing::debug!(request_id = self.context.id(), target = %way, host = request.uri().host(), path = request.uri().path(), "attempt");
        let exchange = Exchange {
            facts: &self.call.facts,
            judge: Judge {
                classifier: self.proxy.classifier().clone(),
                rules: way.upstream.rules.clone(),
                limits: attempt.limits.clone(),
            },
            heartbeat: self.proxy.config.heartbeats.of(self.call.facts.protocol()),
        };
        let reuse = std::mem::take(&mut self.reuse);
        let clients = &self.proxy.clients;
        Ok(Prepared {
            exchange,
            pool: clients.with_connect_timeout(way.aim.timeouts.connect, reuse),
            request,
        })
    }

    /// The answer will be this target's, as far as is known.
    pub(super) fn answers(&mut self, at: usize) {
        if let Some(way) = self.ways.get(at) {
            self.context.answered(way);
            self.context
                .caller()
                .set_write_idle(way.aim.timeouts.write_idle);
        }
    }

    /// What an attempt there goes by.
    pub(super) fn terms(&self, way: &Way<'_>, limits: &Limits) -> Terms {
        let policy = way
            .aim
            .scopes
            .as_ref()
            .map(|scopes| &scopes.policies().model);
        let shape = self.call.facts.shape();
        Terms {
            operation: self.call.facts.operation(),
            shape,
            count: policy.map_or(Count::Call, Policy::count),
            limit: limits.silence(shape),
            probe_proof: policy.map_or(Duration::ZERO, Policy::probe_proof),
            cancel_counts_after: self.proxy.config.limits.cancel_counts_after,
        }
    }

    /// How long an attempt that begins now may take.
    pub(super) fn limits(&self, timeouts: &Timeouts, now: Tick) -> Limits {
        let route = self.proxy.route(self.call);
        let read_timeout = self.call.headers.get(READ_TIMEOUT);
        let limits = Limits::new(
            timeouts,
            self.proxy.config.limits.cancel_counts_after,
            route.map_or(Duration::ZERO, |route| route.hold_back),
            self.plan.remaining(now),
        );
        let admits = |target: &Target| {
            self.ways
                .iter()
                .any(|way| way.aim.target == *target && way.admits(now))
        };
        let limits = if self.plan.has_others(admits) {
            limits.before_others()
        } else {
            limits
        };
        let said = read_timeout.and_then(|seconds| seconds.to_str().ok());
        limits.for_caller(said, self.is_hurried)
    }

    /// Retries are paid for by first attempts; a call that the caller's own SDK repeats is a retry itself.
    fn count_first(&self) {
        let now = self.context.now();
        if let Some(roster) = self.proxy.roster(self.call) {
            if self.call.is_repeated {
                roster.retries.charge(now);
            } else {
                roster.retries.earn(now);
            }
        }
    }

    /// Where requests of unknown outcome are sent again, all attempts of a call bear one name; the caller's own if he
    /// gave one.
    fn name(&self, headers: &mut HeaderMap) {
        let route = self.proxy.route(self.call);
        if route.is_some_and(|route| route.resend_unknown)
            && !headers.contains_key(IDEMPOTENCY_KEY)
            && let Ok(name) = HeaderValue::from_str(self.context.id())
        {
            headers.insert(IDEMPOTENCY_KEY, name);
        }
    }

    /// How long a committed stream's first content took.
    pub(super) fn time_stream(&self, at: usize, flow: &Flow, now: Tick) {
        if let Flow::Watched(stream) = flow
            && let Some(took) = stream.guard.first_token()
        {
            self.time(at, took, now);
        }
    }

    /// How long a good answer took, or how long it was waited for in vain. Other failures come fast and say nothing, and so
    /// does a caller's own hurry.
    pub(super) fn time_answer(&self, at: usize, attempt: &Driven, now: Tick) {
        let Some(verdict) = attempt.verdict() else {
            return;
        };
        let in_vain = verdict.provider_fault && matches!(verdict.evidence, Evidence::Late { .. });
        if verdict.is_success() || in_vain {
            self.time(at, attempt.took(), now);
        }
    }

    pub(super) fn time(&self, at: usize, took: Duration, now: Tick) {
        let roster = self.proxy.roster(self.call);
        let seat = self.ways.get(at).and_then(|way| way.seat.as_ref());
        if let Some(seat) = seat
            && roster.is_some_and(Roster::keeps_time)
        {
            seat.observe(self.call.facts.shape(), took, now);
        }
    }
}
