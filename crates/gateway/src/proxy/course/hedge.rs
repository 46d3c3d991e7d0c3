//! An attempt, and a second one beside it at another target where the first takes longer than most answers do.

use std::time::Duration;

use fuseline_llm::{Reason, Standing, Step};
use tokio::time::timeout;

use super::super::driven::Driven;
use super::super::exchange::Came;
use super::super::refusal::Refusal;
use super::super::way::admit;
use super::Course;

impl Course<'_> {
    /// Makes the attempt, and a second one if it takes long. What comes of it, and by which way; who is not waited for any
    /// more is dropped, and counts for nothing.
    pub(super) async fn attempt(
        &mut self,
        at: usize,
        attempt: Box<Driven>,
    ) -> Result<(usize, Box<Driven>, Came), Refusal> {
        let began = self.context.now();
        let mut first = Box::pin(self.prepare(at, &attempt)?.run(attempt));
        if let Some(patience) = self.hedge_after(at) {
            if let Ok((attempt, came)) = timeout(patience, &mut first).await {
                return Ok((at, attempt, came));
            }
            if let Some((other, attempt)) = self.hedge(at, patience) {
                let mut second = Box::pin(self.prepare(other, &attempt)?.run(attempt));
                let (is_first, (attempt, came)) = tokio::select! {
                    done = &mut first => (true, done),
                    done = &mut second => (false, done),
                };
                let (done, rest) = if is_first { (at, other) } else { (other, at) };
                if is_good(&came) {
                    if !is_first {
                        // At least so long; otherwise only the fast ones would be known.
                        let now = self.context.now();
                        self.time(at, now.since(began), now);
                    }
                    self.answers(done);
                    return Ok((done, attempt, came));
                }
                self.lose(done, attempt, came, rest);
                self.answers(rest);
                let (attempt, came) = if is_first { second.await } else { first.await };
                return Ok((rest, attempt, came));
            }
        }
        let (attempt, came) = first.await;
        Ok((at, attempt, came))
    }

    /// After how long a second attempt is worth its price.
    fn hedge_after(&self, at: usize) -> Option<Duration> {
        let share = self.proxy.roster(self.call)?.hedge?;
        let seat = self.ways.get(at)?.seat.as_ref()?;
        seat.quantile(self.call.facts.shape(), share)
    }

    /// Leave for a second attempt, and where.
    fn hedge(&mut self, first: usize, after: Duration) -> Option<(usize, Box<Driven>)> {
        let now = self.context.now();
        let at = self.plan.hedge(
            |target| admit(&mut self.ways, self.context, target, now),
            now,
        )?;
        let attempt = self.leave(at, now)?;
        if let (Some(first), Some(second)) = (self.ways.get(first), self.ways.get(at)) {
            let after = humantime::format_duration(after);
            self.context.because(format_args!(
                "{first}: no answer within {after}, so {second} was asked as well"
            ));
        }
        Some((at, Box::new(attempt)))
    }

    /// One of the two has failed, and the other one is waited for.
    fn lose(&mut self, at: usize, mut attempt: Box<Driven>, came: Came, survivor: usize) {
        let now = self.context.now();
        let verdict = match came {
            Came::Opened(_) => return,
            Came::Answered(answer, verdict) => {
                self.context.used(answer.usage);
                self.kept = Some((at, answer));
                verdict
            }
            Came::Nothing(verdict) => verdict,
        };
        self.note(at, &verdict);
        let is_probe = attempt.standing(now) == Standing::Probe;
        if self.is_ours(at, Some(&verdict.evidence), now) && is_probe {
            attempt.acquit();
        }
        self.plan.lost(at, &verdict, survivor);
        let step = Step::GiveUp(Reason::Exhausted);
        attempt.settle(step, self.plan.patience(now), now);
    }
}

fn is_good(came: &Came) -> bool {
    match came {
        Came::Opened(_) => true,
        Came::Answered(_, verdict) => verdict.is_success(),
        Came::Nothing(_) => false,
    }
}
