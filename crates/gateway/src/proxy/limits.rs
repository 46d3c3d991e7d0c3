//! `Limits`: how long one attempt may take to do what.

use std::time::Duration;

use fuseline_llm::{Shape, StreamTimers, read_timeout};

use crate::config::Timeouts;

/// The time limits of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Until the answer is committed: what is left of the call's budget.
    budget: Duration,
    /// For a plain answer, all of it.
    answer: Duration,
    pub(crate) stream: StreamTimers,
    /// How long after its first content a stream is kept back.
    pub(crate) hold_back: Duration,
}

/// A limit, and its name in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) after: Duration,
}

impl Limits {
    /// `patience` is what the caller says in `x-stainless-read-timeout`; it makes no limit longer.
    pub(crate) fn new(
        timeouts: &Timeouts,
        cancel_counts_after: Duration,
        hold_back: Duration,
        budget: Duration,
        patience: Option<&str>,
    ) -> Self {
        let stream = StreamTimers {
            first_token: timeouts.first_token,
            stall: timeouts.stall,
            idle: timeouts.idle,
            total: timeouts.total,
            min_tokens_per_second: timeouts.min_tokens_per_second,
            cancel_counts_after,
        };
        Self {
            budget,
            answer: patience
                .and_then(read_timeout)
                .map_or(timeouts.answer, |wait| wait.min(timeouts.answer)),
            stream: match patience {
                Some(seconds) => stream.for_read_timeout(seconds),
                None => stream,
            },
            hold_back,
        }
    }

    /// How long the head may take, and all of an answer that is read before it is passed on.
    pub(crate) fn until_read(&self, shape: Shape) -> Limit {
        let limit = match (shape, self.stream.total) {
            (Shape::Plain, _) => Limit::new("answer", self.answer),
            (Shape::Stream, Some(total)) if total < self.stream.first_token => {
                Limit::new("total", total)
            }
            (Shape::Stream, _) => Limit::new("first_token", self.stream.first_token),
        };
        if self.budget < limit.after {
            self.until_committed()
        } else {
            limit
        }
    }

    /// How long another target may still take this one's place.
    pub(crate) fn until_committed(&self) -> Limit {
        Limit::new("budget", self.budget)
    }

    /// The longest that a probe may show no sign of life without having failed.
    pub(crate) fn silence(&self, shape: Shape) -> Duration {
        match shape {
            Shape::Plain => self.until_read(shape).after,
            Shape::Stream => self.until_read(shape).after.max(self.stream.stall),
        }
    }
}

impl Limit {
    const fn new(name: &'static str, after: Duration) -> Self {
        Self { name, after }
    }
}
