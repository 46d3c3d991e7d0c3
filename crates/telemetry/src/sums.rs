//! `Ledger`: what all breakers of one label set have counted together, those included that were forgotten since.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fuseline_core::{Breaker, Reason, Registry, Scope, ScopeName, Snapshot, State};

use crate::catalogue::Catalogue;

/// What never decreases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    entered: [u64; State::ALL.len()],
    pub(crate) rejected: [u64; Reason::COUNTED.len()],
    pub(crate) late: u64,
    pub(crate) open_for: Duration,
}

/// Counts, and how things stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) counts: Counts,
    /// States that any of them is in.
    pub(crate) states: Vec<State>,
    /// The longest incident that goes on.
    pub(crate) incident: Duration,
}

/// Scope, provider, model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Labels {
    pub(crate) scope: Scope,
    pub(crate) provider: String,
    pub(crate) model: String,
}

/// A registry forgets idle breakers. Their counts stay here: a counter that falls would be taken for a restart. One that is
/// forgotten, made anew and has counted as much again before anybody looks is taken for the old one.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seen: HashMap<ScopeName, Counts>,
    gone: BTreeMap<Labels, Counts>,
}

impl Ledger {
    /// The sums now. Every label set of the catalogue is among them, so that its first increase is seen.
    pub(crate) fn sums(
        &mut self,
        registry: &Registry,
        catalogue: &Catalogue,
    ) -> BTreeMap<Labels, Sum> {
        let now = registry.now();
        let mut before = std::mem::take(&mut self.seen);
        let mut sums = BTreeMap::<Labels, Sum>::new();
        let known = |breaker: &Breaker| catalogue.holds(breaker.name().provider_name());
        for breaker in registry.breakers().into_iter().filter(known) {
            let snapshot = breaker.snapshot(now);
            let counts = Counts::of(&snapshot);
            if let Some(last) = before.remove(&snapshot.name)
                && counts.is_behind(&last)
            {
                self.bury(Labels::of(&snapshot.name, catalogue), &last);
            }
            let sum = sums
                .entry(Labels::of(&snapshot.name, catalogue))
                .or_default();
            sum.counts.add(&counts);
            sum.states.push(snapshot.state);
            let incident = snapshot.incident_since.map(|since| now.since(since));
            sum.incident = sum.incident.max(incident.unwrap_or_default());
            self.seen.insert(snapshot.name, counts);
        }
        // Whoever is in the catalogue no more has no series.
        before.retain(|name, _| catalogue.holds(name.provider_name()));
        self.gone
            .retain(|labels, _| catalogue.allows(&labels.provider, &labels.model));
        for (name, last) in before {
            self.bury(Labels::of(&name, catalogue), &last);
        }
        for labels in Labels::all(catalogue) {
            sums.entry(labels).or_default();
        }
        for (labels, counts) in &self.gone {
            sums.entry(labels.clone()).or_default().counts.add(counts);
        }
        sums
    }

    fn bury(&mut self, labels: Labels, last: &Counts) {
        self.gone.entry(labels).or_default().add(last);
    }
}

impl Counts {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            entered: snapshot.entered,
            rejected: snapshot.rejected.map(|(_, count)| count),
            late: snapshot.late,
            open_for: snapshot.open_for,
        }
    }

    fn add(&mut self, other: &Self) {
        let sums = self.entered.iter_mut().chain(&mut self.rejected);
        for (sum, count) in sums.zip(other.entered.iter().chain(&other.rejected)) {
            *sum += count;
        }
        self.late += other.late;
        self.open_for = self.open_for.saturating_add(other.open_for);
    }

    /// Whether these are of a breaker that was made anew since.
    fn is_behind(&self, last: &Self) -> bool {
        let counts = self.entered.iter().chain(&self.rejected);
        let mut pairs = counts.zip(last.entered.iter().chain(&last.rejected));
        pairs.any(|(now, last)| now < last) || self.late < last.late
    }

    pub(crate) fn entered(&self, state: State) -> u64 {
        let states = State::ALL.into_iter().zip(self.entered);
        states
            .filter(|(of, _)| *of == state)
            .map(|(_, count)| count)
            .sum()
    }
}

impl Labels {
    fn of(name: &ScopeName, catalogue: &Catalogue) -> Self {
        let provider = name.provider_name();
        let model = match (name.scope(), name.part()) {
            (Scope::Model, Some(model)) => catalogue.label(provider, model),
            _ => "",
        };
        Self {
            scope: name.scope(),
            provider: provider.to_owned(),
            model: model.to_owned(),
        }
    }

    fn all(catalogue: &Catalogue) -> impl Iterator<Item = Self> {
        let labels = |scope, provider: &str, model: &str| Self {
            scope,
            provider: provider.to_owned(),
            model: model.to_owned(),
        };
        let models = catalogue.pairs().into_iter();
        let models = models.map(move |(provider, model)| labels(Scope::Model, &provider, &model));
        let whole = catalogue.providers().flat_map(move |provider| {
            [Scope::Provider, Scope::Key].map(|scope| labels(scope, provider, ""))
        });
        whole.chain(models)
    }
}

#[cfg(test)]
mod tests {
    use fuseline_core::{Policy, RegistryConfig};

    use super::*;

    #[test]
    fn what_was_forgotten_is_still_counted_and_so_is_what_came_back() {
        let registry = Registry::new(RegistryConfig::default());
        let (name, policy) = (ScopeName::model("p", "made-up"), Policy::default());
        let catalogue: Catalogue = [("p", None)].into_iter().collect();
        let mut ledger = Ledger::default();
        let labels = Labels::of(&name, &catalogue);
        assert_eq!(labels.model, "other");
        let mut counted = |registry: &Registry| {
            let counts = ledger.sums(registry, &catalogue)[&labels].counts.clone();
            (
                counts.entered(State::ForcedOpen),
                counts.rejected.iter().sum(),
            )
        };
        let live = |refused: u64| {
            let now = registry.now();
            let breaker = registry.get_breaker(&name, &policy, now).unwrap();
            breaker.force_open(None, now);
            for _ in 0..refused {
                assert!(breaker.try_acquire(now).is_err());
            }
        };
        assert_eq!(counted(&registry), (0, 0));
        live(3);
        assert_eq!(counted(&registry), (1, 3));
        // Made anew before anybody looks.
        registry.remove(&name);
        live(1);
        assert_eq!(counted(&registry), (2, 4));
        assert_eq!(counted(&registry), (2, 4));
        registry.remove(&name);
        assert_eq!(counted(&registry), (2, 4));
        live(9);
        assert_eq!(counted(&registry), (3, 13));
    }
}
