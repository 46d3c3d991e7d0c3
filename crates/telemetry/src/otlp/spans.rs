//! `CallSpan`: a call, the parent of its attempts. Attributes are names and numbers, nothing that a caller or a model wrote
//! but for the model's name.

use std::time::SystemTime;

use fuseline_core::Kind;
use http::HeaderMap;
use http::header::HeaderName;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::Otlp;
use super::attempt::AttemptSpan;
use crate::names::attribute;
use crate::traffic::{CallOutcome, EndedCall};

/// Longer texts are cut: a caller may write anything in the place of a model's name.
const MAX_TEXT: usize = 512;
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// A call's span. It is begun when something is to be told of it, as of the moment that it came in; one that never ends
/// was no call, and is not told of.
#[derive(Debug)]
pub struct CallSpan {
    otlp: Otlp,
    parent: Context,
    came: SystemTime,
    operation: &'static str,
    model: String,
    /// Otherwise it is counted, and that is all.
    is_traced: bool,
    begun: Option<Context>,
}

/// What is known of a call at its end.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct CallReport<'c> {
    /// The id that the caller was told.
    pub request_id: &'c str,
    /// The status of his answer; none where he left before it.
    pub status: Option<u16>,
    /// Who answered, as `provider/model`.
    pub target: &'c str,
    /// The worst state among that target's breakers.
    pub breaker_state: &'static str,
    /// Requests that were sent.
    pub attempts: u32,
    /// What the answer was instead of what he would usually get.
    pub degraded: Option<&'static str>,
    /// What the answer cost, in US dollars.
    pub cost: Option<f64>,
    /// Why it ended as it did.
    pub why: &'c str,
}

/// Where an attempt goes.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Upstream<'u> {
    /// The provider's name in the configuration.
    pub name: &'u str,
    /// The provider's name in the semantic conventions.
    pub provider: &'u str,
    /// The model as it is asked for there.
    pub model: &'u str,
    /// The host of its base URL.
    pub host: &'u str,
    /// The port of its base URL.
    pub port: u16,
    /// Whether a stream is asked for.
    pub is_stream: bool,
}

impl CallSpan {
    #[expect(clippy::disallowed_methods, reason = "spans are of the time of day")]
    pub(super) fn new(otlp: Otlp, headers: &HeaderMap) -> Self {
        let propagator = TraceContextPropagator::new();
        let parent = propagator.extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let came = SystemTime::now();
        Self {
            is_traced: parent.has_active_span() || otlp.0.pace.has_room(came),
            otlp,
            parent,
            came,
            operation: "",
            model: String::new(),
            begun: None,
        }
    }

    /// What is asked for, in the conventions' words, and of which model.
    pub fn asks(&mut self, operation: &'static str, model: &str) {
        (self.operation, self.model) = (operation, shortened(model));
    }

    /// A request is about to be sent: its headers get this trace in place of the caller's.
    pub fn attempt(&mut self, to: &Upstream<'_>, headers: &mut HeaderMap) -> AttemptSpan {
        AttemptSpan {
            otlp: self.otlp.clone(),
            span: self.is_traced.then(|| self.trace(to, headers)),
            operation: self.operation,
            provider: to.provider.to_owned(),
            name: to.name.to_owned(),
            model: to.model.to_owned(),
        }
    }

    fn trace(&mut self, to: &Upstream<'_>, headers: &mut HeaderMap) -> Context {
        let mut attributes = vec![
            KeyValue::new(attribute::OPERATION, self.operation),
            KeyValue::new(attribute::PROVIDER, to.provider.to_owned()),
            KeyValue::new(attribute::TARGET_PROVIDER, to.name.to_owned()),
            KeyValue::new(attribute::MODEL, shortened(to.model)),
            KeyValue::new(attribute::HOST, to.host.to_owned()),
            KeyValue::new(attribute::PORT, i64::from(to.port)),
        ];
        if to.is_stream {
            attributes.push(KeyValue::new(attribute::STREAM, true));
        }
        let name = format!("{} {}", self.operation, shortened(to.model));
        let builder = SpanBuilder::from_name(name)
            .with_kind(SpanKind::Client)
            .with_attributes(attributes);
        let tracer = &self.otlp.0.tracer.clone();
        let call = self.begin();
        let span = call.with_span(tracer.build_with_context(builder, call));
        TraceContextPropagator::new().inject_context(&span, &mut HeaderInjector(headers));
        if headers
            .get(TRACE_STATE)
            .is_some_and(|state| state.is_empty())
        {
            headers.remove(TRACE_STATE);
        }
        span
    }

    /// It is over.
    pub fn end(&mut self, call: &EndedCall, report: &CallReport<'_>) {
        let instruments = &self.otlp.0.instruments;
        instruments
            .call_seconds
            .record(call.took.as_secs_f64(), &[]);
        if let Some(first_token) = call.first_token {
            let seconds = first_token.as_secs_f64();
            instruments.first_token_seconds.record(seconds, &[]);
        }
        if !self.is_traced {
            return;
        }
        let span = self.begin().span();
        if !span.is_recording() {
            return;
        }
        let attempts = i64::from(report.attempts);
        let mut attributes = vec![
            KeyValue::new(attribute::REQUEST_ID, report.request_id.to_owned()),
            KeyValue::new(attribute::TARGET, shortened(report.target)),
            KeyValue::new(attribute::BREAKER_STATE, report.breaker_state),
            KeyValue::new(attribute::OUTCOME, call.outcome.as_str()),
            KeyValue::new(attribute::ATTEMPTS, attempts),
            KeyValue::new(attribute::FALLBACK, call.by_fallback),
        ];
        let status = report.status.map(i64::from);
        attributes.extend(status.map(|status| KeyValue::new(attribute::STATUS, status)));
        let degraded = report.degraded;
        attributes.extend(degraded.map(|what| KeyValue::new(attribute::DEGRADED, what)));
        attributes.extend(report.cost.map(|cost| KeyValue::new(attribute::COST, cost)));
        if !report.why.is_empty() {
            attributes.push(KeyValue::new(attribute::WHY, shortened(report.why)));
        }
        if matches!(call.outcome, CallOutcome::Failure | CallOutcome::Rejected) {
            let kind = call.kind.map_or("other", Kind::as_str);
            attributes.push(KeyValue::new(attribute::ERROR, kind));
            span.set_status(Status::error(kind));
        }
        span.set_attributes(attributes);
        span.end();
    }

    fn begin(&mut self) -> &Context {
        self.begun.get_or_insert_with(|| {
            let mut attributes = Vec::new();
            let mut name = "request".to_owned();
            if !self.operation.is_empty() {
                attributes.push(KeyValue::new(attribute::OPERATION, self.operation));
                attributes.push(KeyValue::new(attribute::MODEL, self.model.clone()));
                name = format!("{} {}", self.operation, self.model);
            }
            let builder = SpanBuilder::from_name(name)
                .with_kind(SpanKind::Server)
                .with_start_time(self.came)
                .with_attributes(attributes);
            let tracer = &self.otlp.0.tracer;
            let span = tracer.build_with_context(builder, &self.parent);
            if span.is_recording() && !self.parent.has_active_span() {
                self.otlp.0.pace.begun(self.came);
            }
            self.parent.with_span(span)
        })
    }
}

/// At most so many characters of it.
fn shortened(text: &str) -> String {
    let end = text.char_indices().nth(MAX_TEXT);
    let end = end.map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default().to_owned()
}
