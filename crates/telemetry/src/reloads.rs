//! `Reloads`: how often the configuration was read anew, and what came of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::family::{Family, Series, Value};
use crate::names;

/// What came of reading the configuration anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum Reload {
    /// It is in force.
    Applied,
    /// It is not, and nothing has changed.
    Refused,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    applied: AtomicU64,
    refused: AtomicU64,
    is_refused: AtomicBool,
}

impl Reloads {
    pub(crate) fn note(&self, came_to: Reload) {
        let count = match came_to {
            Reload::Applied => &self.applied,
            Reload::Refused => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let is_refused = came_to == Reload::Refused;
        self.is_refused.store(is_refused, Ordering::Relaxed);
    }

    pub(crate) fn families(&self) -> [Family; 2] {
        let counts = [("applied", &self.applied), ("refused", &self.refused)];
        let counts = counts.map(|(outcome, count)| {
            let count = Value::Count(count.load(Ordering::Relaxed));
            Series::new([(names::OUTCOME_LABEL, outcome)], count)
        });
        let is_good = !self.is_refused.load(Ordering::Relaxed);
        let is_good = Series::alone(Value::Count(u64::from(is_good)));
        [
            Family::counter(names::RELOADS, counts.into()),
            Family::gauge(names::RELOADED, is_good),
        ]
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::Registry;

    use super::*;
    use crate::{Catalogue, Metrics};

    #[test]
    fn the_last_one_tells_whether_what_is_written_is_in_force() {
        let metrics = Metrics::new(&Registry::default(), Catalogue::default());
        let seen = || {
            let page = metrics.page(None, None, None).unwrap();
            let value = |name: &str| {
                let lines = page.lines().find_map(|line| line.strip_prefix(name));
                lines.unwrap().trim().parse::<u64>().unwrap()
            };
            (
                value(r#"config_reloads_total{outcome="applied"}"#),
                value(r#"config_reloads_total{outcome="refused"}"#),
                value("config_last_reload_successful"),
            )
        };
        assert_eq!(seen(), (0, 0, 1));
        metrics.reload(Reload::Refused);
        assert_eq!(seen(), (0, 1, 0));
        metrics.reload(Reload::Applied);
        assert_eq!(seen(), (1, 1, 1));
    }
}
