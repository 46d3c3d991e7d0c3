//! `Event`: a transition as those who listen are told of it, with the time of day.

use std::time::SystemTime;

use fuseline_core::Tick;
use fuseline_telemetry::Observed;
use serde::Serialize;

use super::{Why, millis};

/// One transition, for the live feed and for webhooks.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    event: &'static str,
    /// When it took effect, as RFC 3339.
    at: String,
    breaker: String,
    scope: &'static str,
    provider: String,
    part: Option<String>,
    number: u64,
    #[serde(flatten)]
    why: Why,
    /// The length of the incident that it ends.
    incident_ms: Option<u64>,
    /// Transitions of this breaker before it that came too fast to be told.
    missed: u64,
}

impl Event {
    pub(crate) fn of(observed: &Observed, now: Tick, wall: SystemTime) -> Self {
        let (name, transition) = (&observed.name, &observed.transition);
        let at = wall
            .checked_sub(now.since(transition.at))
            .unwrap_or(SystemTime::UNIX_EPOCH);
        Self {
            event: "transition",
            at: humantime::format_rfc3339_millis(at).to_string(),
            breaker: name.to_string(),
            scope: name.scope().as_str(),
            provider: name.provider_name().to_owned(),
            part: name.part().map(str::to_owned),
            number: transition.number,
            why: Why::of(transition, now),
            incident_ms: observed.incident.map(millis),
            missed: observed.missed,
        }
    }
}
