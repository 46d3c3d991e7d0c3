//! How one configuration takes the place of another in a running process: what cannot change before the next start.

use secrecy::{ExposeSecret as _, SecretString};

use super::document::Document;
use super::{Config, entry};
use crate::queue::is_wanted;

/// The keys that hold until the process ends.
pub(super) const LASTING: [&str; 11] = [
    "listen",
    "admin_listen",
    "state",
    "fleet",
    "fleet_prefix",
    "log",
    "log_format",
    "max_breakers",
    "listener.max_connections",
    "otlp",
    "queue",
];

impl Config {
    /// Takes over from the configuration in force what holds until the process ends; a note for each key that says
    /// otherwise.
    pub(super) fn take_over(&mut self, in_force: &Self, document: &mut Document<'_>) {
        let exposed = |secret: &Option<SecretString>| {
            secret
                .as_ref()
                .map(|secret| secret.expose_secret().to_owned())
        };
        let is_other_fleet = exposed(&self.fleet) != exposed(&in_force.fleet);
        self.fleet.clone_from(&in_force.fleet);
        let (own, theirs) = (&mut self.limits, &in_force.limits);
        let are_others = [
            keep(&mut self.listen, &in_force.listen),
            keep(&mut self.admin_listen, &in_force.admin_listen),
            keep(&mut self.state, &in_force.state),
            is_other_fleet,
            keep(&mut self.fleet_prefix, &in_force.fleet_prefix),
            keep(&mut self.log, &in_force.log),
            keep(&mut self.log_format, &in_force.log_format),
            keep(&mut own.max_breakers, &theirs.max_breakers),
            keep(
                &mut self.listener.max_connections,
                &in_force.listener.max_connections,
            ),
            keep(&mut self.otlp, &in_force.otlp),
            keep(&mut self.queue, &in_force.queue),
        ];
        for (key, is_other) in LASTING.into_iter().zip(are_others) {
            entry::copy(&mut self.entries, key, &in_force.entries);
            if is_other {
                document.note(key, "takes effect with the next start");
            }
        }
        if is_wanted(self) && !is_wanted(in_force) {
            document.note(
                "queue",
                "is opened with the next start; until then no call is queued",
            );
        }
    }

    /// The keys whose values differ from another configuration's.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        entry::differences(&self.entries, &other.entries)
    }
}

/// Keeps a value as it is in force, and says whether it was to be another.
fn keep<T: Clone + PartialEq>(own: &mut T, in_force: &T) -> bool {
    let is_other = own != in_force;
    own.clone_from(in_force);
    is_other
}
