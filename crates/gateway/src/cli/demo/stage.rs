//! The stage: providers, gateway and callers, and the clock that moves them.

use std::io::{self, Write};
use std::ops::Range;
use std::time::Duration;

use fuseline_core::State;
use fuseline_mock::Mock;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::callers::{Answer, Call, Done, Line, Streamed, line, with_gateway, without_gateway};
use super::event::{Cast, Event};
use super::plan::{self, BACKOFF, COOLDOWN, FAILURES, GOOD_PROBES, Pace, SCENES, THINKING};
use super::tally::{Evidence, Tally};
use super::teller::Teller;
use super::watch::Watch;
use crate::Gateway;

/// How often the stage looks around.
const LOOK: Duration = Duration::from_millis(10);
/// Calls in a unit of time.
const RATE: f64 = 8.0;
/// Callers who come all at once as soon as a cooldown is over.
const CROWD: usize = 12;
/// The traffic after the circuit has closed, in units.
const EPILOGUE: f64 = 3.0;
/// In units; a circuit that has not closed by then does not.
const LONGEST: f64 = 35.0;

struct Stage {
    pace: Pace,
    primary: Mock,
    /// They answer as long as they stand here.
    _others: [Mock; 2],
    gateway: Gateway,
    callers: Callers,
    watch: Watch,
    tally: Tally,
    started: Instant,
    scenes_told: usize,
    next_call: Instant,
    next_traffic: Instant,
    crowd_at: Option<Instant>,
    /// The numbers of the crowd's calls.
    crowd: Option<Range<usize>>,
}

/// Those who call, and their calls under way.
struct Callers {
    rng: fastrand::Rng,
    with: (Line, String, JoinSet<Done>),
    without: (Line, String, JoinSet<Done>),
}

/// Plays everything and says whether all that must hold did.
pub(super) async fn play<W: Write>(
    pace: Pace,
    seed: u64,
    teller: &mut Teller<W>,
) -> anyhow::Result<bool> {
    let mut stage = Stage::build(pace, seed, teller).await?;
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stage.is_over(Instant::now()) {
        look.tick().await;
        stage.act(Instant::now());
        stage.tell(Instant::now(), teller)?;
    }
    stage.finish(teller).await
}

impl Stage {
    async fn build<W: Write>(
        pace: Pace,
        seed: u64,
        teller: &mut Teller<W>,
    ) -> anyhow::Result<Self> {
        let primary = Mock::start(plan::healthy(pace)).await?;
        let twin = Mock::start(plan::healthy(pace)).await?;
        let spare = Mock::start(plan::healthy(pace)).await?;
        let gateway = Gateway::start(plan::config(&primary, &spare, pace)?).await?;
        let cast = Cast {
            gateway: gateway.addr(),
            primary: primary.addr(),
            spare: spare.addr(),
            failures_to_open: FAILURES,
            cooldown: pace.units(COOLDOWN),
            backoff: BACKOFF,
            successes_to_close: GOOD_PROBES,
            seed,
        };
        teller.tell(Duration::ZERO, &Event::Started(cast))?;
        let started = Instant::now();
        primary.set(plan::outage(pace)).await?;
        twin.set(plan::outage(pace)).await?;
        Ok(Self {
            pace,
            callers: Callers {
                rng: fastrand::Rng::with_seed(seed),
                with: (line(), format!("http://{}", gateway.addr()), JoinSet::new()),
                without: (line(), twin.url(), JoinSet::new()),
            },
            watch: Watch::new(gateway.registry().clone()),
            primary,
            _others: [spare, twin],
            gateway,
            tally: Tally::default(),
            started,
            scenes_told: 0,
            next_call: started,
            next_traffic: started + pace.units(1.0),
            crowd_at: None,
            crowd: None,
        })
    }

    /// Sends the calls that are due and takes note of those that have ended.
    fn act(&mut self, now: Instant) {
        // Nobody else takes the probe that the crowd is to fight for.
        let crowd_is_near = self.crowd_at.is_some_and(|at| now + 4 * LOOK > at);
        if now >= self.next_call && !crowd_is_near {
            self.call(now);
            let gap = (0.6 + 0.8 * self.callers.rng.f64()) / RATE;
            self.next_call = now + self.pace.units(gap);
        }
        if self.crowd_at.is_some_and(|at| now >= at) {
            self.crowd_at = None;
            let first = self.tally.began.len();
            self.crowd = Some(first..first + CROWD);
            for _ in 0..CROWD {
                self.call(now);
            }
        }
        while let Some(ended) = self.callers.with.2.try_join_next() {
            ended.into_iter().for_each(|done| self.tally.with.add(done));
        }
        while let Some(ended) = self.callers.without.2.try_join_next() {
            ended
                .into_iter()
                .for_each(|done| self.tally.without.add(done));
        }
    }

    /// Sends the same call both ways.
    fn call(&mut self, now: Instant) {
        let call = Call {
            number: self.tally.began.len(),
            streamed: if self.callers.rng.bool() {
                Streamed::Yes
            } else {
                Streamed::No
            },
            began: now,
        };
        self.tally.began.push(now);
        let (line, url, under_way) = &mut self.callers.with;
        under_way.spawn(with_gateway(line.clone(), url.clone(), call.clone()));
        let lag = self.callers.rng.f64();
        let (line, url, under_way) = &mut self.callers.without;
        under_way.spawn(without_gateway(line.clone(), url.clone(), call, lag));
    }

    /// Tells what is new.
    fn tell<W: Write>(&mut self, now: Instant, teller: &mut Teller<W>) -> io::Result<()> {
        if now >= self.next_traffic {
            self.tell_traffic(self.next_traffic, teller)?;
            self.next_traffic += self.pace.units(1.0);
        }
        let begins = |(at, _): &(f64, _)| self.started + self.pace.units(*at);
        if let Some(scene) = SCENES
            .get(self.scenes_told)
            .filter(|scene| now >= begins(scene))
        {
            let text = scene.1.text();
            teller.tell(begins(scene) - self.started, &Event::Incident { text })?;
            self.scenes_told += 1;
        }
        for (at, event) in self.watch.news() {
            if let Event::Transition(change) = &event
                && let (State::Open, Some(cooldown)) = (change.to, change.open_for)
            {
                self.crowd_at = Some(at + cooldown + LOOK);
            }
            teller.tell(at.saturating_duration_since(self.started), &event)?;
        }
        if let Some(crowd) = &self.crowd
            && let Some(answers) = self.tally.with.group(crowd)
        {
            let to_primary = answers
                .iter()
                .filter(|answer| **answer != Answer::Spare)
                .count();
            let callers = answers.len();
            self.crowd = None;
            teller.tell(
                now - self.started,
                &Event::Crowd {
                    callers,
                    to_primary,
                },
            )?;
        }
        Ok(())
    }

    fn tell_traffic<W: Write>(&mut self, at: Instant, teller: &mut Teller<W>) -> io::Result<()> {
        let traffic = self.tally.traffic();
        teller.tell(
            at.saturating_duration_since(self.started),
            &Event::Traffic(traffic),
        )
    }

    fn is_over(&self, now: Instant) -> bool {
        let closed = match self.watch.standing() {
            Some((State::Closed, since)) => now >= since + self.pace.units(EPILOGUE),
            _ => false,
        };
        closed || now >= self.started + self.pace.units(LONGEST)
    }

    /// Waits for the calls under way, adds up and judges.
    async fn finish<W: Write>(mut self, teller: &mut Teller<W>) -> anyhow::Result<bool> {
        while let Some(ended) = self.callers.with.2.join_next().await {
            ended.into_iter().for_each(|done| self.tally.with.add(done));
        }
        while let Some(ended) = self.callers.without.2.join_next().await {
            ended
                .into_iter()
                .for_each(|done| self.tally.without.add(done));
        }
        let now = Instant::now();
        self.tell(now, teller)?;
        self.tell_traffic(now, teller)?;
        let [(first, _), .., (last, _)] = SCENES;
        let summary = self.tally.summary(&Evidence {
            watch: &self.watch,
            arrived: &self.primary.requests(),
            thinking: self.pace.units(THINKING),
            outage: (
                self.started + self.pace.units(first),
                self.started + self.pace.units(last),
            ),
        });
        let ok = summary.ok;
        teller.tell(now - self.started, &Event::Summary(summary))?;
        self.gateway.shutdown().await;
        Ok(ok)
    }
}
