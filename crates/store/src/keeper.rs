//! `Keeper`: what carries the breakers of a program to a file and a fleet, for programs that have no configuration of
//! theirs: each breaker has settings of its own, and who asks for one says which.

use std::io;
use std::path::{Path, PathBuf};

use fuseline_core::{Policy, Registry, Scope};

use crate::error::StoreError;
use crate::fleet::{Fleet, FleetConfig, FleetError, FleetHealth};
use crate::moment::Moment;
use crate::pump::Pump;
use crate::sqlite::Sqlite;
use crate::store::Store as _;

/// A state that nobody has used for so long is not restored: whoever it was about, it is another day.
const MAX_UNUSED_MS: u64 = 24 * 3_600 * 1_000;

/// Keeps a registry's breakers in a file, shares them with a fleet, or both, from threads of its own. No call waits for it.
///
/// What is restored, or learned from others, runs by the default settings until somebody asks for it with others.
///
/// ```
/// use fuseline_core::Registry;
/// use fuseline_store::Keeper;
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("state.db");
/// let registry = Registry::default();
/// let keeper = Keeper::start(&registry, Some(&file), None)?;
/// assert_eq!(keeper.health(), None, "it is in no fleet");
/// keeper.stop();
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Keeper {
    pump: Option<Pump>,
    fleet: Option<Fleet>,
}

/// Why breakers are not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    /// The file cannot be used.
    #[error("state is {}: {cause}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: StoreError,
    },
    /// The system gives no thread to keep the state from.
    #[error("state is not kept: {0}; allow this process another thread")]
    Thread(#[source] io::Error),
    /// There is no such fleet.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

impl Keeper {
    /// Restores the breakers that the file `state` holds and keeps them there, and joins `fleet`. Both are left out by none.
    ///
    /// # Errors
    /// The file cannot be used, or the fleet's address is none of Redis. A Redis that is away is no error: until it answers,
    /// this replica decides by itself.
    pub fn start(
        registry: &Registry,
        state: Option<&Path>,
        fleet: Option<&FleetConfig>,
    ) -> Result<Self, KeeperError> {
        let pump = state.map(|path| keep(registry, path)).transpose()?;
        let join = |config| {
            // Keys are known by their place in a configuration, which nobody else has.
            Fleet::join(registry, config, |name| {
                (name.scope() != Scope::Key).then(Policy::default)
            })
        };
        let fleet = fleet.map(join).transpose()?;
        Ok(Self { pump, fleet })
    }

    /// How the fleet fares; none without one.
    pub fn health(&self) -> Option<FleetHealth> {
        Some(self.fleet.as_ref()?.status().health())
    }

    /// Writes what is left and leaves the fleet; waits for both.
    pub fn stop(self) {
        if let Some(pump) = self.pump {
            pump.stop();
        }
        if let Some(fleet) = self.fleet {
            fleet.leave();
        }
    }
}

/// Restores what the file holds, and starts to keep.
fn keep(registry: &Registry, path: &Path) -> Result<Pump, KeeperError> {
    let unusable = |cause| KeeperError::State {
        path: path.to_owned(),
        cause,
    };
    let mut store = Sqlite::open(path).map_err(unusable)?;
    let records = store.load().map_err(unusable)?;
    let now = Moment::read(registry.clock());
    for record in &records {
        if record.unused_for(&now) <= MAX_UNUSED_MS {
            // Where there is no room the rest begins closed.
            let _ = registry.restore(&record.saved(&now), &Policy::default(), now.tick);
        }
    }
    Pump::start(registry, Box::new(store)).map_err(KeeperError::Thread)
}
