//! `Outage`: what attempts meet while a provider is in trouble, and while it is well.
//!
//! A call is streamed. In health its first content comes after 0.3 to 0.9 s and 50 tokens a second follow; one attempt in
//! a hundred fails with a 500 after half a second, as at any provider on any day.

use core::fmt;
use core::time::Duration;

use fuseline_core::Kind;

use crate::chance::chance;

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outage {
    /// Every attempt gets a 503 within 0.3 s.
    Down,
    /// Three attempts in ten get a 500 within 1.2 s. With one retry that is a call in eleven.
    Errors,
    /// Six attempts in ten get a 500 within 1.2 s. With one retry that is a call in three.
    MostErrors,
    /// Attempts are accepted and nothing comes: the caller's limit of 60 s for the first token ends them.
    Stall,
    /// Nine attempts in ten get a 429 that asks for 40 to 80 s.
    Storm,
    /// Streams begin well and break off halfway.
    Cut,
    /// Down or well, anew every 20 s, as chance has it.
    Flapping,
    /// The first content takes 8 to 20 s, and each token three times as long.
    Slow,
    /// No incident: a healthy provider that stumbles for 3 s in every 5 minutes, when six attempts in ten fail.
    Bumps,
}

/// What an attempt meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// What went wrong, if anything.
    pub(crate) failure: Option<Kind>,
    /// Until the first content.
    pub(crate) first: Duration,
    /// Until its end.
    pub(crate) took: Duration,
    /// The same answer's time in health.
    pub(crate) ideal: Duration,
    /// The wait that the provider asks for.
    pub(crate) hint: Option<Duration>,
    /// Whether the caller has seen a part of it, so that nobody else can answer.
    pub(crate) is_committed: bool,
}

const MS: fn(u64) -> Duration = Duration::from_millis;
/// The gateway's default limit for the first content.
pub(crate) const FIRST_TOKEN: Duration = Duration::from_secs(60);

impl Outage {
    /// Every kind of incident.
    pub const INCIDENTS: [Self; 8] = [
        Self::Down,
        Self::MostErrors,
        Self::Errors,
        Self::Stall,
        Self::Storm,
        Self::Cut,
        Self::Flapping,
        Self::Slow,
    ];

    /// Whether the provider is in trouble, this long after its troubles began. The course of a run follows its seed.
    fn is_ill(self, since: Duration, seed: u64) -> bool {
        match self {
            Self::Flapping => {
                let stretch = since.as_secs() / 20;
                stretch == 0 || chance(&[seed, stretch]).bool()
            }
            Self::Bumps => since.as_secs() % 300 < 3,
            _ => true,
        }
    }

    /// What an attempt meets that is sent this long after the beginning of the incident; none outside of it.
    pub(crate) fn answer(
        self,
        since: Option<Duration>,
        seed: u64,
        tokens: u32,
        chance: &mut fastrand::Rng,
    ) -> Answer {
        let good = Answer::good(tokens, chance);
        if since.is_none_or(|since| !self.is_ill(since, seed)) {
            return if chance.u32(0..100) == 0 {
                good.failed(Kind::ServerError, MS(500))
            } else {
                good
            };
        }
        let mut within = |from, to| MS(chance.u64(from..to));
        match self {
            Self::Down | Self::Flapping => good.failed(Kind::Overloaded, within(100, 300)),
            Self::Stall => good.failed(Kind::Timeout, FIRST_TOKEN),
            Self::Cut => Answer {
                is_committed: true,
                ..good.failed(Kind::StreamTruncated, good.took / 2)
            },
            Self::Slow => {
                let first = within(8_000, 20_000);
                Answer {
                    first,
                    took: first + MS(60) * tokens,
                    ..good
                }
            }
            Self::Errors | Self::MostErrors | Self::Storm | Self::Bumps => {
                let after = within(200, 1_200);
                let wait = within(40_000, 80_000);
                let lot = chance.u32(0..10);
                match self {
                    Self::Storm if lot < 9 => Answer {
                        hint: Some(wait),
                        ..good.failed(Kind::RateLimit, after / 8)
                    },
                    Self::Errors if lot < 3 => good.failed(Kind::ServerError, after),
                    Self::MostErrors | Self::Bumps if lot < 6 => {
                        good.failed(Kind::ServerError, after)
                    }
                    _ => good,
                }
            }
        }
    }
}

impl Answer {
    fn good(tokens: u32, chance: &mut fastrand::Rng) -> Self {
        let first = MS(chance.u64(300..900));
        let took = first + MS(20) * tokens;
        Self {
            failure: None,
            first,
            took,
            ideal: took,
            hint: None,
            is_committed: false,
        }
    }

    /// The same, given up after this long.
    pub(crate) fn failed(self, kind: Kind, after: Duration) -> Self {
        Self {
            failure: Some(kind),
            took: after,
            ..self
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "hard down",
            Self::Errors => "30 % errors",
            Self::MostErrors => "60 % errors",
            Self::Stall => "accepts and stalls",
            Self::Storm => "429 with hints",
            Self::Cut => "streams break off",
            Self::Flapping => "flapping",
            Self::Slow => "slow",
            Self::Bumps => "healthy, with bumps",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(outage: Outage, since: Option<Duration>) -> usize {
        let mut chance = fastrand::Rng::with_seed(1);
        let answers = (0..1_000).map(|_| outage.answer(since, 1, 100, &mut chance));
        answers.filter(|answer| answer.failure.is_some()).count()
    }

    #[test]
    fn each_outage_fails_the_share_that_it_says() {
        let begun = Some(Duration::from_secs(1));
        for (outage, share) in [
            (Outage::Down, 1_000..=1_000),
            (Outage::Errors, 260..=340),
            (Outage::MostErrors, 560..=640),
            (Outage::Stall, 1_000..=1_000),
            (Outage::Storm, 870..=930),
            (Outage::Cut, 1_000..=1_000),
            (Outage::Flapping, 1_000..=1_000),
            (Outage::Slow, 0..=0),
            (Outage::Bumps, 560..=640),
        ] {
            let found = failures(outage, begun);
            assert!(share.contains(&found), "{outage}: {found}");
            let healthy = failures(outage, None);
            assert!((1..=25).contains(&healthy), "{outage}: {healthy}");
        }
    }

    #[test]
    fn flapping_and_bumps_come_and_go() {
        let ill = |outage: Outage, secs| outage.is_ill(Duration::from_secs(secs), 1);
        assert!((0..20).all(|secs| ill(Outage::Flapping, secs)));
        let down = (0..2_000).filter(|secs| ill(Outage::Flapping, *secs));
        assert!((700..1_300).contains(&down.count()));
        assert!(ill(Outage::Bumps, 302) && !ill(Outage::Bumps, 303));
    }
}
