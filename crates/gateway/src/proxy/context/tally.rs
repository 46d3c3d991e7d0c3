//! `Tally`: one call's attempts that are under way, each counted once, as it ends, and its span ended with it.

use std::time::Duration;

use fuseline_core::{Kind, Tick};
use fuseline_llm::{Target, Usage};
use fuseline_telemetry::{AttemptReport, AttemptSpan, EndedCall, Metrics};

/// What is to be counted of one call. Two attempts may be under way at once.
pub(super) struct Tally {
    metrics: Metrics,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    target: Target,
    since: Tick,
    /// Where calls are traced.
    span: Option<AttemptSpan>,
}

/// What came of an attempt; no kind is a success.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) kind: Option<Kind>,
    pub(super) status: Option<u16>,
    pub(super) usage: Usage,
    pub(super) first_token: Option<Duration>,
    pub(super) now: Tick,
}

impl Tally {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            metrics: metrics.clone(),
            under_way: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, target: &Target, now: Tick) {
        self.under_way.push(UnderWay {
            target: target.clone(),
            since: now,
            span: None,
        });
    }

    /// The attempt that was begun last has this span.
    pub(super) fn trace(&mut self, span: AttemptSpan) {
        if let Some(attempt) = self.under_way.last_mut() {
            attempt.span = Some(span);
        }
    }

    /// What came of the attempt at this target, if one is under way.
    pub(super) fn end(&mut self, target: &Target, told: &Told) {
        if let Some(attempt) = self.take(target) {
            attempt.end(&self.metrics, told);
        }
    }

    /// It was no attempt.
    pub(super) fn forget(&mut self, target: &Target) {
        drop(self.take(target));
    }

    pub(super) const fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The call is over, and whatever is still under way is given up.
    pub(super) fn close(&mut self, call: &EndedCall, now: Tick) {
        let given_up = Told {
            kind: Some(Kind::Cancelled),
            status: None,
            usage: Usage::default(),
            first_token: None,
            now,
        };
        for attempt in std::mem::take(&mut self.under_way) {
            attempt.end(&self.metrics, &given_up);
        }
        self.metrics.call(call);
    }

    fn take(&mut self, target: &Target) -> Option<UnderWay> {
        let mut under_way = self.under_way.iter();
        let at = under_way.position(|attempt| attempt.target == *target)?;
        Some(self.under_way.swap_remove(at))
    }
}

impl UnderWay {
    fn end(self, metrics: &Metrics, told: &Told) {
        let (provider, model) = (self.target.provider(), self.target.model());
        metrics.attempt(provider, model, told.kind);
        let Some(span) = self.span else { return };
        let report = AttemptReport {
            kind: told.kind,
            status: told.status,
            took: told.now.since(self.since),
            first_token: told.first_token,
            input_tokens: told.usage.input_tokens,
            output_tokens: told.usage.output_tokens,
        };
        span.end(metrics, &report);
    }
}
