//! State that survives a restart: breakers restored before anybody is served, and kept from then on.
//!
//! Whatever is wrong with the store is said in the log, and service goes on without it.

use std::cmp::Reverse;
use std::time::Duration;

use fuseline_core::{Policy, Registry, Scope, ScopeName, State};
use fuseline_store::{Moment, Pump, Record, Sqlite, Store as _, Tally};
use fuseline_telemetry::KeptState;

use crate::config::{Config, Credential};

/// A state that nobody has used for so long is not restored: whoever it was about, it is another day.
const MAX_UNUSED: u64 = 24 * 3_600 * 1_000;
/// How long the last state may take to be written when the process ends.
const FLUSH: Duration = Duration::from_secs(5);

/// An open store, and what it holds for the breakers of this configuration.
pub(crate) struct Kept {
    store: Sqlite,
    records: Vec<(Record, Policy)>,
    /// Breakers that may be restored, so that each provider's own still has room.
    room: usize,
}

/// Opens the store; none where none is wanted, or where it cannot be used.
pub(crate) fn open(config: &Config) -> Option<Kept> {
    let path = config.state.as_deref()?;
    let mut store = Sqlite::open(path)
        .inspect_err(|error| {
            tracing::warn!(
                key = "state",
                %error,
                "breaker states are not kept until the next start; calls are served as ever"
            );
        })
        .ok()?;
    let records = store.load().unwrap_or_else(|error| {
        tracing::warn!(key = "state", %error, "breakers begin closed");
        Vec::new()
    });
    tracing::debug!(state = %path.display(), records = records.len(), "state is kept");
    let of_config = records.into_iter().filter_map(|record| {
        let policy = policy(config, &record.name)?;
        Some((record, policy))
    });
    Some(Kept {
        store,
        records: of_config.collect(),
        room: config
            .limits
            .max_breakers
            .saturating_sub(config.providers.len()),
    })
}

/// The settings of a breaker of this name; none where the configuration has no such breaker any more. The names of
/// callers' own keys are salted anew in each process, so that those of another mean nothing.
pub(crate) fn policy(config: &Config, name: &ScopeName) -> Option<Policy> {
    let provider = config.providers.get(name.provider_name())?;
    let is_salted = name.scope() == Scope::Key && matches!(provider.credential, Credential::Caller);
    config.policy_of(name).filter(|_| !is_salted)
}

impl Kept {
    /// Restores the breakers, and starts to keep them.
    pub(crate) fn restore(self, registry: &Registry) -> Option<Pump> {
        let now = Moment::read(registry.clock());
        let mut records = self.records;
        records.retain(|(record, _)| record.unused_for(&now) <= MAX_UNUSED);
        // Where there is no room for all: the operator's first, then providers', and what changed last.
        records.sort_by_key(|(record, _)| {
            let is_forced = matches!(record.state, State::ForcedOpen | State::ForcedClosed);
            let is_closed = matches!(record.state, State::Closed | State::Degraded);
            let scope = record.name.scope();
            (!is_forced, is_closed, scope, Reverse(record.since_ms))
        });
        let all = records.len();
        let restored = records
            .iter()
            .take(self.room)
            .filter(|(record, policy)| {
                let saved = record.saved(&now);
                registry.restore(&saved, policy, now.tick).is_ok()
            })
            .count();
        if restored > 0 {
            tracing::info!(breakers = restored, "breakers are restored");
        }
        if restored < all {
            tracing::warn!(
                left_out = all - restored,
                "more breakers were kept than max_breakers has room for; the rest begin closed"
            );
        }
        Pump::start(registry, Box::new(self.store))
            .inspect_err(
                |error| tracing::warn!(key = "state", %error, "breaker states are not kept"),
            )
            .ok()
    }
}

/// How the keeping fares, for the metrics page.
pub(crate) struct Meter {
    is_wanted: bool,
    /// None where nothing is kept.
    tally: Option<Tally>,
}

impl Meter {
    pub(crate) fn new(is_wanted: bool, pump: Option<&Pump>) -> Self {
        let tally = pump.map(Pump::tally);
        Self { is_wanted, tally }
    }

    /// None where no state is to be kept.
    pub(crate) fn read(&self) -> Option<KeptState> {
        let unkept = self.is_wanted.then_some(KeptState {
            is_failing: true,
            ..KeptState::default()
        });
        let Some(tally) = &self.tally else {
            return unkept;
        };
        let kept = tally.kept();
        Some(KeptState {
            stored: kept.transitions,
            dropped: kept.dropped,
            failures: kept.failures,
            is_failing: kept.is_failing,
        })
    }
}

/// Writes what is left. A store that takes too long is left behind.
pub(crate) async fn flush(pump: Pump) {
    let (done, flushed) = tokio::sync::oneshot::channel();
    // Not the runtime's: that would wait for it at the end of the process, however long it takes.
    let flush = move || done.send(pump.stop());
    let spawned = std::thread::Builder::new()
        .name("fuseline-flush".to_owned())
        .spawn(flush);
    match spawned {
        Ok(_) => match tokio::time::timeout(FLUSH, flushed).await {
            Ok(Ok(kept)) if !kept.is_failing => tracing::debug!(?kept, "state is written"),
            _ => tracing::warn!("the last state could not be written"),
        },
        Err(error) => tracing::warn!(%error, "the last state could not be written"),
    }
}
