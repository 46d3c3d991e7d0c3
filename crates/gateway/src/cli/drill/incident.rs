//! What goes wrong in a drill, and when: made up here, or read from a script.

use std::path::Path;
use std::time::Duration;

use fuseline_mock::{Conduct, Phase, Reply, Script};

/// Health before an incident that is made up here.
const LEAD: Duration = Duration::from_secs(3);
/// How long a flapping provider stays as it is.
const FLAP: Duration = Duration::from_secs(3);
/// The time of a healthy answer.
const THINKING: Duration = Duration::from_millis(60);

/// What a provider can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Incident {
    /// Answers 503
    Down,
    /// Refuses connections
    Gone,
    /// Answers every third call with 500
    Errors,
    /// Accepts calls and says nothing
    Stall,
    /// Answers 429 and asks to come back in 40 s
    RateLimit,
    /// Breaks streams off after three events
    Cut,
    /// Down and well in turn, 3 s each
    Flapping,
    /// Takes 8 s to begin
    Slow,
}

/// What one provider does during the drill.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) provider: String,
    pub(super) script: Script,
    /// When its troubles begin and end; none where it has none.
    pub(super) trouble: Option<(Duration, Duration)>,
}

/// A provider in good health.
pub(super) fn healthy() -> Reply {
    Reply::ok()
        .text("All is well, and this answer has twelve words to prove it so.")
        .delay(THINKING)
        .gap(Duration::from_millis(5))
}

impl Incident {
    /// Health, this for so long, health.
    pub(super) fn part(self, provider: String, length: Duration) -> Part {
        let end = LEAD + length;
        let ill = match self {
            Self::Down => Reply::status(503).delay(THINKING).into(),
            Self::Gone => Conduct::refuse(),
            Self::Errors => Conduct::cycle([Reply::status(500), healthy(), healthy()]),
            Self::Stall => Reply::stall().into(),
            Self::RateLimit => Reply::status(429).retry_after(40).into(),
            Self::Cut => healthy().cut_after(3).into(),
            Self::Flapping => return Self::flapping(provider, end),
            Self::Slow => healthy().delay(Duration::from_secs(8)).into(),
        };
        let phases = [
            Phase::at(Duration::ZERO, healthy()),
            Phase::at(LEAD, ill),
            Phase::at(end, healthy()),
        ];
        Part {
            provider,
            script: Script::phases(phases),
            trouble: Some((LEAD, end)),
        }
    }

    fn flapping(provider: String, end: Duration) -> Part {
        let mut phases = vec![Phase::at(Duration::ZERO, healthy())];
        let mut at = LEAD;
        while at < end {
            phases.push(Phase::at(at, Reply::status(503)));
            at = end.min(at + FLAP);
            phases.push(Phase::at(at, healthy()));
            at += FLAP;
        }
        Part {
            provider,
            script: Script::phases(phases),
            trouble: Some((LEAD, end)),
        }
    }
}

impl Part {
    /// Reads `PROVIDER=FILE`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (provider, file) = text
            .split_once('=')
            .ok_or("must be PROVIDER=FILE, such as openai=outage.toml")?;
        let script = Script::load(Path::new(file)).map_err(|error| error.to_string())?;
        let changes: Vec<Duration> = script.changes().collect();
        Ok(Self {
            provider: provider.to_owned(),
            script,
            trouble: changes.first().copied().zip(changes.last().copied()),
        })
    }
}
