//! The call is over, whichever way: it is counted, its span ends, and it has one line in the log.

use fuseline_core::Kind;
use fuseline_llm::StreamEnding;
use fuseline_telemetry::{CallOutcome, CallReport, EndedCall};

use super::text::millis;
use super::{Answerer, Context, Delivered, Purpose};
use crate::caller::CLIENT_SLOW;

/// Costs are told in billionths of a dollar.
const BILLION: f64 = 1e9;
/// Bytes of a path that are told; the rest is somebody's invention.
const MOST_OF_PATH: usize = 200;

impl Drop for Context {
    fn drop(&mut self) {
        let took = self.now().since(self.began);
        let status = self.status.map(|status| status.as_u16());
        let is_ours =
            self.attempts == 0 && !matches!(self.answerer, Answerer::Cache | Answerer::Queue);
        let is_at_hand = is_ours && status.is_some_and(|status| status < 400);
        if is_at_hand || matches!(self.purpose, Purpose::Errand) {
            let took_ms = millis(took);
            return tracing::debug!(request_id = self.id, status, took_ms, "answered here");
        }
        self.ended(self.kind);
        self.purpose.tell(Delivered {
            kind: self.kind,
            attempts: self.attempts - self.replaced,
        });
        let outcome = self.outcome();
        let streamed = self.streamed.as_ref();
        let call = EndedCall {
            outcome,
            kind: self.kind,
            took,
            first_token: streamed.and_then(|stream| stream.first_token),
            by_fallback: outcome == CallOutcome::Success && self.answerer != Answerer::First,
        };
        self.tally.close(&call, self.registry.now());
        if is_ours && status == Some(401) {
            self.end_span(&call, status);
            // Anybody can cause it; the log tells of all of them together.
            let took_ms = millis(took);
            return tracing::debug!(
                request_id = self.id,
                status,
                took_ms,
                why = self.why,
                "call"
            );
        }
        let mut kind = self.kind.map(Kind::as_str);
        if let (Some(Kind::Cancelled), Some(limit)) = (self.kind, self.caller.slow()) {
            self.because(format_args!("the caller took nothing for {limit:?}"));
            kind = Some(CLIENT_SLOW);
        }
        self.end_span(&call, status);
        self.log(&call, status, kind);
    }
}

impl Context {
    fn end_span(&mut self, call: &EndedCall, status: Option<u16>) {
        let Some(mut span) = self.span.take() else {
            return;
        };
        let report = CallReport {
            request_id: &self.id,
            status,
            target: &self.target_name(),
            breaker_state: self.breaker_state(),
            attempts: self.attempts - self.replaced,
            degraded: self.answerer.degraded(),
            cost: self.cost(),
            why: &self.why,
        };
        span.end(call, &report);
    }

    fn log(&self, call: &EndedCall, status: Option<u16>, kind: Option<&str>) {
        let streamed = self.streamed.as_ref();
        if let Some(stream) = streamed.filter(|_| call.outcome == CallOutcome::Failure) {
            stream.tell_failure(&self.id, &self.target_name());
        }
        let usage = self.usage();
        tracing::info!(
            request_id = self.id,
            status,
            target = self.target_name(),
            breaker_state = self.breaker_state(),
            attempts = self.attempts - self.replaced,
            degraded = self.answerer.degraded(),
            kind,
            took_ms = millis(call.took),
            first_token_ms = call.first_token.map(millis),
            stream = streamed
                .and_then(|stream| stream.ending)
                .map(StreamEnding::as_str),
            left_out = streamed
                .map(|stream| stream.left_out)
                .filter(|events| *events > 0),
            input_tokens = usage.input_tokens,
            output_tokens = usage.output_tokens,
            cost = self.cost(),
            url = self.address_not_found(),
            story = self.story.line(),
            why = self.why,
            "call"
        );
    }

    /// The address at which nothing was found, without its query, which may hold a key: a base URL that is wrong shows in it.
    fn address_not_found(&self) -> Option<String> {
        let address = self.not_found.as_ref()?;
        let (scheme, authority) = (address.scheme_str()?, address.authority()?);
        let path = address.path().get(..MOST_OF_PATH);
        let path = path.unwrap_or_else(|| address.path());
        (self.kind == Some(Kind::NotFound)).then(|| format!("{scheme}://{authority}{path}"))
    }

    /// What the answer cost, in US dollars, where its target has a price and its provider has counted.
    fn cost(&self) -> Option<f64> {
        let cost = self.price?.of_usage(self.usage())?;
        Some((cost * BILLION).round() / BILLION)
    }
}
