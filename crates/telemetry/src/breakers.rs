//! `Breakers`: what all breakers have counted and how they stand, read from their snapshots when somebody asks.

use std::sync::{Mutex, PoisonError};

use fuseline_core::{Reason, Registry, State};

use crate::catalogue::Names;
use crate::family::{Family, Series, Value};
use crate::names::{self, Counter};
use crate::sums::{Labels, Ledger, Sum};

#[derive(Debug)]
pub(crate) struct Breakers {
    registry: Registry,
    names: Names,
    ledger: Mutex<Ledger>,
}

type Sums = std::collections::BTreeMap<Labels, Sum>;

impl Breakers {
    pub(crate) fn new(registry: &Registry, names: Names) -> Self {
        Self {
            registry: registry.clone(),
            names,
            ledger: Mutex::default(),
        }
    }

    pub(crate) fn families(&self) -> Vec<Family> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = ledger.sums(&self.registry, &self.names.read());
        drop(ledger);
        let entered = [
            (names::OPENED, State::Open),
            (names::HALF_OPEN, State::HalfOpen),
            (names::CLOSED, State::Closed),
            (names::DEGRADED, State::Degraded),
        ];
        let entered = entered.map(|(counter, state)| {
            of_each(counter, &sums, |sum| {
                Value::Count(sum.counts.entered(state))
            })
        });
        let late = of_each(names::LATE, &sums, |sum| Value::Count(sum.counts.late));
        let open = of_each(names::OPEN_SECONDS, &sums, |sum| {
            Value::Amount(sum.counts.open_for.as_secs_f64())
        });
        let incident = sums.iter().map(|(labels, sum)| {
            let seconds = Value::Amount(sum.incident.as_secs_f64());
            Series::new(labels.pairs(), seconds)
        });
        let incident = Family::gauge(names::INCIDENT_SECONDS, incident.collect());
        let mut families = Vec::from(entered);
        families.extend([rejected(&sums), late, open, incident, states(&sums)]);
        families
    }
}

fn of_each(counter: Counter, sums: &Sums, value: impl Fn(&Sum) -> Value) -> Family {
    let series = sums
        .iter()
        .map(|(labels, sum)| Series::new(labels.pairs(), value(sum)));
    Family::counter(counter, series.collect())
}

fn rejected(sums: &Sums) -> Family {
    let series = sums.iter().flat_map(|(labels, sum)| {
        let counts = Reason::COUNTED.into_iter().zip(sum.counts.rejected);
        counts.map(|(reason, count)| {
            let [scope, provider, model] = labels.pairs();
            let reason = (names::REASON_LABEL, reason.as_str());
            Series::new([scope, provider, model, reason], Value::Count(count))
        })
    });
    Family::counter(names::REJECTED, series.collect())
}

fn states(sums: &Sums) -> Family {
    let series = sums.iter().flat_map(|(labels, sum)| {
        State::ALL.into_iter().map(|state| {
            // Where there is no breaker yet, calls pass.
            let is_in =
                sum.states.contains(&state) || (sum.states.is_empty() && state == State::Closed);
            let [scope, provider, model] = labels.pairs();
            let name = (names::STATE_LABEL, state.as_str());
            Series::new(
                [scope, provider, model, name],
                Value::Count(u64::from(is_in)),
            )
        })
    });
    Family::gauge(names::STATE, series.collect())
}

impl Labels {
    fn pairs(&self) -> [(&'static str, &str); 3] {
        [
            (names::SCOPE_LABEL, self.scope.as_str()),
            (names::PROVIDER_LABEL, &self.provider),
            (names::MODEL_LABEL, &self.model),
        ]
    }
}
