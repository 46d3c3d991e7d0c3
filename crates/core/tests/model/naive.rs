//! A breaker as plainly as it can be said: one thread, every sample kept, every rule judged at every outcome.
//!
//! Written from the rules of the design, not from the crate's code: no words, no shards, no running totals.

use core::time::Duration;
use std::collections::BTreeMap;

use fuseline_core::{Kind, KindRule, OnSuccess, PolicySpec, Reason, State, TripRule};

/// Settings, every key said. Jitter is 0.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) shadow: bool,
    pub(crate) trip: Vec<TripRule>,
    pub(crate) on_success: OnSuccess,
    pub(crate) degraded_at: f64,
    pub(crate) cooldown: u64,
    pub(crate) backoff: f64,
    pub(crate) backoff_after: u32,
    pub(crate) max_cooldown: u64,
    pub(crate) max_retry_after: u64,
    pub(crate) probes: u32,
    pub(crate) successes_to_close: u32,
    pub(crate) probe_timeout: u64,
    pub(crate) ramp: u64,
    pub(crate) max_in_flight: u32,
    pub(crate) kinds: BTreeMap<Kind, KindRule>,
}

impl Settings {
    pub(crate) fn spec(&self) -> PolicySpec {
        let ms = |ms| Some(Duration::from_millis(ms));
        let row = |rule: &KindRule| fuseline_core::KindSpec {
            count: Some(rule.count),
            threshold: rule.threshold,
            immediate_open: rule.immediate_open,
            cooldown: rule.cooldown,
        };
        PolicySpec {
            mode: Some(if self.shadow {
                fuseline_core::Mode::Shadow
            } else {
                fuseline_core::Mode::Enforce
            }),
            trip: Some(self.trip.clone()),
            on_success: Some(self.on_success),
            degraded_at: Some(self.degraded_at),
            cooldown: ms(self.cooldown),
            backoff: Some(self.backoff),
            backoff_after: Some(self.backoff_after),
            max_cooldown: ms(self.max_cooldown),
            jitter: Some(0.0),
            max_retry_after: ms(self.max_retry_after),
            probes: Some(self.probes),
            successes_to_close: Some(self.successes_to_close),
            probe_timeout: ms(self.probe_timeout),
            ramp: ms(self.ramp),
            max_in_flight: Some(self.max_in_flight),
            kinds: self
                .kinds
                .iter()
                .map(|(kind, rule)| (*kind, row(rule)))
                .collect(),
            ..PolicySpec::default()
        }
    }

    fn kind(&self, kind: Kind) -> KindRule {
        self.kinds
            .get(&kind)
            .copied()
            .unwrap_or_else(|| kind.rule())
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Closed { ramp_from: Option<(u64, u64)> },
    Open { end: u64 },
    HalfOpen { good: u32, live: Vec<(usize, u64)> },
    Forced { open: bool, until: Option<u64> },
}

/// What a call in the model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Call {
    id: usize,
    pub(crate) generation: u64,
    pub(crate) probe: bool,
    pub(crate) ghost: Option<Reason>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: u64,
    failed: bool,
    took: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Result_ {
    Success {
        took: u64,
    },
    Failure {
        kind: Kind,
        hint: Option<u64>,
        open_now: bool,
    },
    Neutral,
}

#[derive(Debug)]
pub(crate) struct Naive {
    pub(crate) settings: Settings,
    phase: Phase,
    pub(crate) generation: u64,
    samples: Vec<Sample>,
    pub(crate) run: u32,
    pub(crate) kinds: BTreeMap<Kind, u32>,
    pub(crate) episodes: u32,
    pub(crate) late: u64,
    pub(crate) in_flight: u32,
    pub(crate) rejected: BTreeMap<Reason, u64>,
    ids: usize,
}

impl Naive {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Closed { ramp_from: None },
            generation: 0,
            samples: Vec::new(),
            run: 0,
            kinds: BTreeMap::new(),
            episodes: 0,
            late: 0,
            in_flight: 0,
            rejected: BTreeMap::new(),
            ids: 0,
        }
    }

    pub(crate) fn acquire(&mut self, now: u64) -> Result<Call, (Reason, u64)> {
        self.pass_time(now);
        self.ids += 1;
        let call = Call {
            id: self.ids,
            generation: 0,
            probe: false,
            ghost: None,
        };
        match self.decide(now) {
            Ok(probe) => {
                if self.settings.max_in_flight > 0 {
                    self.in_flight += 1;
                }
                if let (true, Phase::HalfOpen { live, .. }) = (probe, &mut self.phase) {
                    live.push((call.id, now + self.settings.probe_timeout));
                }
                Ok(Call {
                    generation: self.generation,
                    probe,
                    ..call
                })
            }
            Err((reason, wait)) => {
                *self.rejected.entry(reason).or_default() += 1;
                if self.settings.shadow {
                    Ok(Call {
                        ghost: Some(reason),
                        ..call
                    })
                } else {
                    Err((reason, wait))
                }
            }
        }
    }

    fn decide(&mut self, now: u64) -> Result<bool, (Reason, u64)> {
        match self.phase {
            Phase::Open { end } if now < end => return Err((Reason::Open, end - now)),
            Phase::Open { .. } => self.enter(Phase::HalfOpen {
                good: 0,
                live: Vec::new(),
            }),
            Phase::Forced { open: true, until } => {
                return Err((Reason::Forced, until.map_or(60_000, |until| until - now)));
            }
            _ => {}
        }
        if self.settings.max_in_flight > 0 && self.in_flight >= self.settings.max_in_flight {
            return Err((Reason::Saturated, 1_000));
        }
        match &mut self.phase {
            Phase::HalfOpen { live, .. } if live.len() >= self.settings.probes as usize => {
                let left = live.iter().map(|(_, end)| end - now).min().unwrap();
                Err((Reason::Probing, left.min(1_000)))
            }
            Phase::HalfOpen { .. } => Ok(true),
            Phase::Closed {
                ramp_from: Some((since, calls)),
            } if now < *since + self.settings.ramp => {
                *calls += 1;
                let elapsed = (now - *since).max(self.settings.ramp / 10);
                let share = |calls: u64| calls * elapsed / self.settings.ramp;
                let passes = *calls == 1 || share(*calls) > share(*calls - 1);
                if passes {
                    Ok(false)
                } else {
                    Err((Reason::Ramping, 1_000))
                }
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn settle(&mut self, call: Call, result: Result_, now: u64) {
        if call.ghost.is_some() {
            return;
        }
        if self.settings.max_in_flight > 0 {
            self.in_flight -= 1;
        }
        self.pass_time(now);
        let counts = match result {
            Result_::Success { .. } => true,
            Result_::Failure { kind, .. } => self.settings.kind(kind).count,
            Result_::Neutral => false,
        };
        let current =
            call.generation == self.generation && !matches!(self.phase, Phase::Forced { .. });
        if !counts {
            return self.free(call);
        }
        if !current {
            self.late += 1;
            return;
        }
        if call.probe {
            self.settle_probe(call, result, now)
        } else {
            self.settle_closed(result, now)
        }
    }

    fn settle_probe(&mut self, call: Call, result: Result_, now: u64) {
        match result {
            Result_::Success { took } if !self.is_slow(took) => {
                self.free(call);
                let Phase::HalfOpen { good, .. } = &mut self.phase else {
                    unreachable!()
                };
                *good += 1;
                if *good >= self.settings.successes_to_close {
                    self.episodes = 0;
                    let ramp_from = (self.settings.ramp > 0).then_some((now, 0));
                    self.enter(Phase::Closed { ramp_from });
                }
            }
            Result_::Failure { kind, hint, .. } => self.reopen(Some(kind), hint, now),
            Result_::Success { .. } | Result_::Neutral => self.reopen(None, None, now),
        }
    }

    fn settle_closed(&mut self, result: Result_, now: u64) {
        let (failed, took) = match result {
            Result_::Success { took } => (false, took),
            Result_::Failure { .. } | Result_::Neutral => (true, 0),
        };
        self.samples.push(Sample {
            at: now,
            failed,
            took,
        });
        let mut opened = false;
        let (mut by, mut by_hint) = (None, None);
        if let Result_::Failure {
            kind,
            hint,
            open_now,
        } = result
        {
            (by, by_hint) = (Some(kind), hint);
            self.run += 1;
            let of_kind = self.kinds.entry(kind).or_default();
            *of_kind += 1;
            let rule = self.settings.kind(kind);
            opened = open_now
                || rule.immediate_open
                || rule
                    .threshold
                    .is_some_and(|threshold| *of_kind >= threshold);
        } else {
            let take = if self.settings.on_success == OnSuccess::Reset {
                u32::MAX
            } else {
                1
            };
            self.run = self.run.saturating_sub(take);
            self.kinds
                .values_mut()
                .for_each(|count| *count = count.saturating_sub(take));
        }
        opened |=
            (0..self.settings.trip.len()).any(|rule| self.pressure_of(rule, now) >= 1.0 - 1e-9);
        if opened {
            self.open(by, by_hint, now);
        }
    }

    /// Hits and calls in a rule's window.
    pub(crate) fn observe(&self, rule: usize, now: u64) -> (u64, u64) {
        let rule = self.settings.trip[rule];
        let Some(window) = rule.window() else {
            return (u64::from(self.run), 0);
        };
        let window = window.as_millis() as u64;
        let bucket = |at: u64| at * 60 / window;
        let live = self
            .samples
            .iter()
            .filter(|sample| bucket(now) - bucket(sample.at) <= 60);
        let is_hit = |sample: &&Sample| match rule {
            TripRule::Slow { slower_than, .. } => {
                !sample.failed && sample.took > slower_than.as_millis() as u64
            }
            _ => sample.failed,
        };
        (
            live.clone().filter(is_hit).count() as u64,
            live.count() as u64,
        )
    }

    /// The sum of a `cusum` rule, one outcome after the other.
    pub(crate) fn sum(&self, rule: TripRule) -> f64 {
        let TripRule::Cusum { well, ill, .. } = rule else {
            return 0.0;
        };
        let success = ((1.0 - ill) / (1.0 - well)).ln() / (ill / well).ln();
        let after = |sum: f64, sample: &Sample| match sample.failed {
            true => sum + 1.0,
            false => (sum + success).max(0.0),
        };
        self.samples.iter().fold(0.0, after)
    }

    fn pressure_of(&self, rule: usize, now: u64) -> f64 {
        let (hits, calls) = self.observe(rule, now);
        match self.settings.trip[rule] {
            TripRule::Consecutive { failures } | TripRule::Window { failures, .. } => {
                hits as f64 / f64::from(failures)
            }
            TripRule::Rate {
                threshold,
                min_calls,
                ..
            }
            | TripRule::Slow {
                threshold,
                min_calls,
                ..
            } => {
                if calls < u64::from(min_calls) {
                    0.0
                } else {
                    hits as f64 / calls as f64 / threshold
                }
            }
            rule @ TripRule::Cusum {
                well,
                ill,
                calls_per_false_alarm,
            } => self.sum(rule) / (calls_per_false_alarm.ln() / (ill / well).ln()),
            _ => unreachable!("no other rules"),
        }
    }

    fn is_slow(&self, took: u64) -> bool {
        self.settings.trip.iter().any(
            |rule| matches!(rule, TripRule::Slow { slower_than, .. } if took > slower_than.as_millis() as u64),
        )
    }

    pub(crate) fn progress(&mut self, call: Call, now: u64) {
        self.pass_time(now);
        if let Phase::HalfOpen { live, .. } = &mut self.phase
            && call.generation == self.generation
        {
            let end = now + self.settings.probe_timeout;
            live.iter_mut()
                .filter(|(id, _)| *id == call.id)
                .for_each(|(_, lease)| *lease = end);
        }
    }

    pub(crate) fn force(&mut self, open: bool, until: Option<u64>, now: u64) {
        self.pass_time(now);
        self.fresh(Phase::Forced { open, until });
    }

    pub(crate) fn reset(&mut self, now: u64) {
        self.pass_time(now);
        self.fresh(Phase::Closed { ramp_from: None });
    }

    pub(crate) fn release(&mut self, now: u64) {
        self.pass_time(now);
        if matches!(self.phase, Phase::Forced { .. }) {
            self.fresh(Phase::Closed { ramp_from: None });
        }
    }

    /// The state that the next operation would find.
    pub(crate) fn state(&mut self, now: u64) -> State {
        self.pass_time(now);
        match self.phase {
            Phase::Closed { .. } => {
                let all = (0..self.settings.trip.len()).map(|rule| self.pressure_of(rule, now));
                let pressure = all.fold(0.0, f64::max);
                let at = self.settings.degraded_at;
                if at < 1.0 && pressure >= at * (1.0 - 1e-9) {
                    State::Degraded
                } else {
                    State::Closed
                }
            }
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::Forced { open: true, .. } => State::ForcedOpen,
            Phase::Forced { open: false, .. } => State::ForcedClosed,
        }
    }

    pub(crate) fn probes(&self) -> (usize, u32) {
        match &self.phase {
            Phase::HalfOpen { good, live } => (live.len(), *good),
            _ => (0, 0),
        }
    }

    fn pass_time(&mut self, now: u64) {
        match &self.phase {
            Phase::HalfOpen { live, .. } => {
                let first = live.iter().map(|(_, end)| *end).min();
                if let Some(end) = first.filter(|end| *end <= now) {
                    self.reopen(Some(Kind::Timeout), None, end);
                }
            }
            Phase::Forced {
                until: Some(until), ..
            } if *until <= now => {
                self.fresh(Phase::Closed { ramp_from: None });
            }
            _ => {}
        }
    }

    fn free(&mut self, call: Call) {
        if let Phase::HalfOpen { live, .. } = &mut self.phase
            && call.generation == self.generation
        {
            live.retain(|(id, _)| *id != call.id);
        }
    }

    fn reopen(&mut self, kind: Option<Kind>, hint: Option<u64>, at: u64) {
        self.episodes += 1;
        self.open(kind, hint, at);
    }

    fn open(&mut self, kind: Option<Kind>, hint: Option<u64>, at: u64) {
        let settings = &self.settings;
        let own = kind
            .and_then(|kind| settings.kind(kind).cooldown)
            .map(|cooldown| cooldown.as_millis() as u64);
        let base = own.unwrap_or(settings.cooldown);
        let exponent = self.episodes.saturating_sub(settings.backoff_after);
        let grown = base as f64 * settings.backoff.powi(exponent as i32);
        let capped = grown.min(base.max(settings.max_cooldown) as f64) as u64;
        let length = capped.max(hint.unwrap_or(0).min(settings.max_retry_after));
        self.enter(Phase::Open { end: at + length });
    }

    fn fresh(&mut self, phase: Phase) {
        self.episodes = 0;
        self.enter(phase);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
        self.samples.clear();
        self.run = 0;
        self.kinds.clear();
    }
}
