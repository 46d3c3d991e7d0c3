//! `Live`: the configuration in force, and how another takes its place while calls go on.
//!
//! A configuration is read and checked as a whole, and everything that can fail is done before anything changes: a bad one
//! changes nothing. Then new calls go by the new one; those in flight end as they began.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use fuseline_telemetry::Reload;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::config::{Config, Finding, Report, Severity};
use crate::proxy::{BuildError, Proxy};
use crate::shutdown::Tasks;
use crate::webhook::Webhooks;

/// How often breakers are looked through for what calls under an earlier configuration have made, as long as there are any.
const ADJUST: Duration = Duration::from_secs(1);
/// Most keys and mistakes that the log names.
const MAX_NAMED: usize = 20;

/// Reads a configuration that may take the place of the one in force.
pub(crate) type Reader = Arc<dyn Fn(&Config) -> Report + Send + Sync>;

/// The configuration in force, with all that is done by it.
pub(crate) struct Live {
    proxy: RwLock<Arc<Proxy>>,
    webhooks: RwLock<Arc<Webhooks>>,
    /// None where there is nothing to read anew.
    reader: Option<Reader>,
    /// One reload at a time.
    turn: Mutex<()>,
    tasks: Tasks,
}

/// A configuration that has taken the place of another.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Reloaded {
    /// The keys whose values are others than before.
    pub changed: Vec<String>,
    /// What is worth knowing, such as keys that take effect with the next start.
    pub findings: Vec<Finding>,
}

/// Why the configuration in force stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The gateway was started with a configuration that stands nowhere.
    #[error("this gateway was started without anything to read its configuration from")]
    NoSource,
    /// The new one has mistakes.
    #[error("{}", told(.0))]
    Mistakes(Vec<Finding>),
    /// The new one cannot be carried out.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Reading it ended in a panic.
    #[error("the configuration could not be read")]
    Unread,
}

impl Live {
    pub(crate) fn new(proxy: Arc<Proxy>, reader: Option<Reader>, tasks: Tasks) -> Self {
        let webhooks = Webhooks::start(proxy.webhooks(), &proxy.pool(), &tasks);
        Self {
            proxy: RwLock::new(proxy),
            webhooks: RwLock::new(Arc::new(webhooks)),
            reader,
            turn: Mutex::default(),
            tasks,
        }
    }

    /// Who serves the next call.
    pub(crate) fn proxy(&self) -> Arc<Proxy> {
        Arc::clone(&self.proxy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who is told of the next transition.
    pub(crate) fn webhooks(&self) -> Arc<Webhooks> {
        Arc::clone(&self.webhooks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration anew. What comes of it is returned, logged and counted.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<Reloaded, ReloadError> {
        let _turn = self.turn.lock().await;
        let came_to = self.replace().await;
        match &came_to {
            Ok(reloaded) => reloaded.log(),
            Err(error) => tracing::error!(%error, "the configuration in force stays"),
        }
        let outcome = came_to
            .as_ref()
            .map_or(Reload::Refused, |_| Reload::Applied);
        self.proxy().metrics().reload(outcome);
        came_to
    }

    async fn replace(self: &Arc<Self>) -> Result<Reloaded, ReloadError> {
        let reader = self.reader.clone().ok_or(ReloadError::NoSource)?;
        let old = self.proxy();
        let in_force = Arc::clone(old.config());
        let read = tokio::task::spawn_blocking(move || reader(&in_force));
        let report = read.await.map_err(|_| ReloadError::Unread)?;
        let Some(config) = report.config else {
            return Err(ReloadError::Mistakes(report.findings));
        };
        let changed = config.differences(old.config());
        let new = Arc::new(old.successor(config)?);
        // Nothing fails, and nothing waits, from here on.
        *self.proxy.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        new.take_over(old.config());
        let webhooks = Arc::new(Webhooks::start(new.webhooks(), &new.pool(), &self.tasks));
        *self
            .webhooks
            .write()
            .unwrap_or_else(PoisonError::into_inner) = webhooks;
        let seeing_off = Arc::clone(self).see_off(Arc::downgrade(&old), Arc::clone(old.config()));
        self.tasks.spawn_until_cut(seeing_off);
        Ok(Reloaded {
            changed,
            findings: report.findings,
        })
    }

    /// Until the last call under an earlier configuration is over, sees to the breakers that such calls make.
    async fn see_off(self: Arc<Self>, old: Weak<Proxy>, config: Arc<Config>) {
        loop {
            let is_last = old.strong_count() == 0;
            self.proxy().adjust(&config);
            if is_last {
                return;
            }
            tokio::time::sleep(ADJUST).await;
        }
    }
}

impl Reloaded {
    fn log(&self) {
        for note in &self.findings {
            tracing::warn!("{note}");
        }
        let keys: Vec<&str> = self
            .changed
            .iter()
            .map(String::as_str)
            .take(MAX_NAMED)
            .collect();
        tracing::info!(
            keys = keys.join(", "),
            changed = self.changed.len(),
            "the configuration is reloaded"
        );
    }
}

/// The mistakes among the findings, the first of them in full.
fn told(findings: &[Finding]) -> String {
    let is_mistake = |finding: &&Finding| finding.severity == Severity::Mistake;
    let mistakes: Vec<_> = findings.iter().filter(is_mistake).collect();
    let named = mistakes.iter().take(MAX_NAMED).map(ToString::to_string);
    let mut told = named.collect::<Vec<_>>().join("\n");
    if let Some(more @ 1..) = mistakes.len().checked_sub(MAX_NAMED) {
        told.push_str(&format!("\nand {more} more; `fuseline check` shows all"));
    }
    told
}
