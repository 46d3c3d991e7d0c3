//! `AttemptSpan`: one request that was sent for a call, which is what the conventions call a client's operation. Tokens and
//! `gen_ai.provider.name` stand here and nowhere else: who adds them up counts nothing twice.

use std::time::Duration;

use fuseline_core::Kind;
use opentelemetry::trace::{Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};

use super::Otlp;
use crate::names::attribute;
use crate::prometheus::Metrics;

/// What is known of an attempt at its end.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct AttemptReport {
    /// What went wrong, if anything did.
    pub kind: Option<Kind>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// From its request to the end of its answer.
    pub took: Duration,
    /// To its first content, for streams that had one.
    pub first_token: Option<Duration>,
    /// As the provider has counted them.
    pub input_tokens: Option<u64>,
    /// As the provider has counted them.
    pub output_tokens: Option<u64>,
}

/// An attempt's span. One that is dropped without a report was no attempt, its connection was dead: it says so, and is in
/// no metric.
#[derive(Debug)]
pub struct AttemptSpan {
    pub(super) otlp: Otlp,
    /// None where its call is not traced.
    pub(super) span: Option<Context>,
    pub(super) operation: &'static str,
    pub(super) provider: String,
    pub(super) name: String,
    pub(super) model: String,
}

impl AttemptSpan {
    /// It is over, and counted: `metrics` knows which models may be labels.
    pub fn end(self, metrics: &Metrics, report: &AttemptReport) {
        self.record(metrics, report);
        let Some(context) = &self.span else { return };
        let span = context.span();
        if !span.is_recording() {
            return;
        }
        let count =
            |name, count: u64| KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX));
        let status = report.status.map(i64::from);
        let first_chunk = report.first_token.map(|time| time.as_secs_f64());
        let attributes = [
            status.map(|status| KeyValue::new(attribute::STATUS, status)),
            first_chunk.map(|seconds| KeyValue::new(attribute::FIRST_CHUNK, seconds)),
            report
                .input_tokens
                .map(|tokens| count(attribute::INPUT_TOKENS, tokens)),
            report
                .output_tokens
                .map(|tokens| count(attribute::OUTPUT_TOKENS, tokens)),
            report
                .kind
                .map(|kind| KeyValue::new(attribute::ERROR, kind.as_str())),
        ];
        span.set_attributes(attributes.into_iter().flatten());
        if let Some(kind) = report.kind
            && kind != Kind::Cancelled
        {
            span.set_status(Status::error(kind.as_str()));
        }
        span.end();
    }

    fn record(&self, metrics: &Metrics, report: &AttemptReport) {
        let instruments = &self.otlp.0.instruments;
        let model = metrics.label(&self.name, &self.model).to_owned();
        let mut attributes = vec![
            KeyValue::new(attribute::OPERATION, self.operation),
            KeyValue::new(attribute::PROVIDER, self.provider.clone()),
            KeyValue::new(attribute::TARGET_PROVIDER, self.name.clone()),
            KeyValue::new(attribute::MODEL, model),
        ];
        for (kind, tokens) in [
            ("input", report.input_tokens),
            ("output", report.output_tokens),
        ] {
            if let Some(tokens) = tokens {
                attributes.push(KeyValue::new(attribute::TOKEN_TYPE, kind));
                instruments.tokens.record(tokens, &attributes);
                attributes.pop();
            }
        }
        if let Some(kind) = report.kind {
            attributes.push(KeyValue::new(attribute::ERROR, kind.as_str()));
        }
        let seconds = report.took.as_secs_f64();
        instruments.operation.record(seconds, &attributes);
        if let Some(first_token) = report.first_token {
            let seconds = first_token.as_secs_f64();
            instruments.first_chunk.record(seconds, &attributes);
        }
    }
}

impl Drop for AttemptSpan {
    fn drop(&mut self) {
        let Some(context) = &self.span else { return };
        let span = context.span();
        if span.is_recording() {
            span.set_attribute(KeyValue::new(attribute::ERROR, "stale_connection"));
            span.set_status(Status::error("stale_connection"));
            span.end();
        }
    }
}
