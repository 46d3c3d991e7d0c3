//! `Limits`: how long one attempt may take to do what.

use std::time::Duration;

use fuseline_core::Tick;
use fuseline_llm::{Shape, StreamTimers, read_timeout};

use crate::config::Timeouts;

/// The time limits of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Until the answer is committed: what is left of the call's budget.
    budget: Duration,
    /// What of it this target may take until it answers.
    share: Duration,
    /// For a plain answer, all of it.
    answer: Duration,
    pub(crate) stream: StreamTimers,
    /// How long after its first content a stream is kept back.
    pub(crate) hold_back: Duration,
    /// What the caller's own patience has shortened limits to, where that is less than ours for him.
    impatience: Option<Duration>,
    /// Whether the budget is the caller's own.
    is_hurried: bool,
}

/// A limit, and its name in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) after: Duration,
}

impl Limits {
    /// What the configuration says, within what is left of the call's budget.
    pub(crate) fn new(
        timeouts: &Timeouts,
        cancel_counts_after: Duration,
        hold_back: Duration,
        budget: Duration,
    ) -> Self {
        let budget = whole_millis(budget);
        Self {
            budget,
            share: budget,
            answer: timeouts.answer,
            stream: StreamTimers {
                first_token: timeouts.first_token,
                stall: timeouts.stall,
                idle: timeouts.idle,
                total: timeouts.total,
                min_tokens_per_second: timeouts.min_tokens_per_second,
                cancel_counts_after,
            },
            hold_back,
            impatience: None,
            is_hurried: false,
        }
    }

    /// The limits of a target that others could still take the place of: it leaves them a third of the budget.
    pub(crate) fn before_others(self) -> Self {
        let share = whole_millis(self.budget.saturating_sub(self.budget / 3));
        Self { share, ..self }
    }

    /// The limits for a caller who says in `x-stainless-read-timeout` how long he waits for bytes, which makes no limit
    /// longer, and who may have set the budget himself.
    pub(crate) fn for_caller(self, said: Option<&str>, is_hurried: bool) -> Self {
        let mut limits = Self { is_hurried, ..self };
        let Some((said, wait)) = said.and_then(|said| Some((said, read_timeout(said)?))) else {
            return limits;
        };
        let stream = &limits.stream;
        let ours = [limits.answer, stream.first_token, stream.stall, stream.idle];
        limits.impatience = ours.iter().any(|limit| *limit > wait).then_some(wait);
        limits.answer = limits.answer.min(wait);
        limits.stream = limits.stream.for_read_timeout(said);
        limits
    }

    /// Whether a limit of this length that has passed was the caller's own: he would have left, and that says nothing of
    /// the provider. Where he has waited for `cancel_counts_after`, it does.
    pub(crate) fn is_callers(&self, after: Duration) -> bool {
        let is_budget = self.budget == after || self.share == after;
        let is_his = self.impatience == Some(after) || (self.is_hurried && is_budget);
        is_his && after < self.stream.cancel_counts_after
    }

    /// How long the head may take, and all of an answer that is read before it is passed on.
    pub(crate) fn until_read(&self, shape: Shape) -> Limit {
        let limit = match shape {
            Shape::Plain => Limit::new("answer", self.answer),
            Shape::Stream => {
                let (at, timer) = self.stream.head_deadline(Tick::ZERO);
                Limit::new(timer.as_str(), at.since(Tick::ZERO))
            }
        };
        if self.share < limit.after {
            Limit::new("budget", self.share)
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

/// What is told of a limit is to be read by people.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

impl Limit {
    const fn new(name: &'static str, after: Duration) -> Self {
        Self { name, after }
    }
}
