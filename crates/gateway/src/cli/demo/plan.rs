//! What the demo plays: its times, the scenes of the outage, and the gateway's configuration.

use std::path::Path;
use std::time::Duration;

use fuseline_mock::{Conduct, Mock, Phase, Reply, Script};

use crate::config::{Config, Overrides, Sources};

/// Every time of the demo is a multiple of this unit, so that a short one is the same story.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    unit: Duration,
}

impl Pace {
    pub(super) const SLOW: Self = Self {
        unit: Duration::from_secs(1),
    };
    pub(super) const FAST: Self = Self {
        unit: Duration::from_millis(280),
    };

    /// So many units.
    pub(super) fn units(self, count: f64) -> Duration {
        self.unit.mul_f64(count)
    }
}

/// How the primary behaves for a while.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scene {
    Failing,
    Overloaded,
    Gone,
    Repaired,
}

/// When each scene begins, in units. The outage lasts from the first to the last.
pub(super) const SCENES: [(f64, Scene); 4] = [
    (4.0, Scene::Failing),
    (6.5, Scene::Overloaded),
    (9.5, Scene::Gone),
    (14.0, Scene::Repaired),
];

/// The shortest time in units that the primary takes for an answer of any kind.
pub(super) const THINKING: f64 = 0.06;
/// The time that it takes to fail.
const FAILING: f64 = 0.4;

impl Scene {
    fn conduct(self, pace: Pace) -> Conduct {
        match self {
            Self::Failing => Reply::status(503).delay(pace.units(FAILING)).into(),
            Self::Overloaded => Reply::status(529).delay(pace.units(FAILING)).into(),
            Self::Gone => Conduct::refuse(),
            Self::Repaired => healthy(pace).into(),
        }
    }

    /// What the audience is told.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Failing => "the primary breaks: slow answers, and all of them 503",
            Self::Overloaded => "the primary is overloaded now: 529",
            Self::Gone => "the primary is gone: its port refuses connections",
            Self::Repaired => "the primary is repaired; nobody tells the gateway",
        }
    }
}

/// A provider in good health.
pub(super) fn healthy(pace: Pace) -> Reply {
    Reply::ok()
        .text("A fuse that has blown is cheaper than a house that has burned.")
        .delay(pace.units(THINKING))
        .gap(pace.units(0.005))
}

/// The primary's part.
pub(super) fn outage(pace: Pace) -> Script {
    let scenes = SCENES
        .iter()
        .map(|(at, scene)| Phase::at(pace.units(*at), scene.conduct(pace)));
    Script::phases(
        [Phase::at(Duration::ZERO, healthy(pace))]
            .into_iter()
            .chain(scenes),
    )
}

/// Failures in a row that open the circuit.
pub(super) const FAILURES: u32 = 5;
/// Good probes that close it.
pub(super) const GOOD_PROBES: u32 = 2;
/// Its first cooldown, in units.
pub(super) const COOLDOWN: f64 = 2.5;
/// What each failed probe multiplies the cooldown by.
pub(super) const BACKOFF: f64 = 1.5;

/// The gateway's configuration, written as its user would.
pub(super) fn config(primary: &Mock, spare: &Mock, pace: Pace) -> anyhow::Result<Config> {
    let text = format!(
        r#"
            listen = "127.0.0.1:0"
            admin_listen = "127.0.0.1:0"
            state = "off"

            [providers.primary]
            protocol = "openai"
            base_url = "{primary}/v1"
            api_key = "no-key-needed"

            [providers.spare]
            protocol = "openai"
            base_url = "{spare}/v1"
            api_key = "no-key-needed"

            [[routes]]
            model = "*"
            targets = [{{ provider = "primary" }}, {{ provider = "spare" }}]
            retries = 0

            [breaker]
            trip = [{{ rule = "consecutive", failures = {FAILURES} }}]
            per = "provider"
            cooldown = "{cooldown}ms"
            backoff = {BACKOFF:?}
            successes_to_close = {GOOD_PROBES}
            jitter = 0.0
        "#,
        primary = primary.url(),
        spare = spare.url(),
        cooldown = pace.units(COOLDOWN).as_millis(),
    );
    let sources = Sources {
        file: None,
        overrides: &Overrides::default(),
        env: &|_| None,
    };
    let report = sources.load_text(None, Path::new(""), &text);
    let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    report
        .config
        .ok_or_else(|| anyhow::anyhow!("the demo's own configuration: {}", findings.join("; ")))
}
