//! Shutdown in three steps: nothing new comes in, what runs may finish, what is left is cut.
//!
//! Every task of the gateway is spawned through [`Tasks`], so that nothing outlives it unseen.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The gateway's tasks. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    running: TaskTracker,
    draining: CancellationToken,
    cut: CancellationToken,
}

impl Tasks {
    /// Runs a task until it ends or is cut.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        tokio::spawn(self.running.track_future(async move {
            cut.run_until_cancelled(task).await;
        }));
    }

    /// Runs a task until it is cut; a drain does not wait for it.
    #[expect(clippy::disallowed_methods, reason = "the other place that spawns")]
    pub(crate) fn spawn_until_cut(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        tokio::spawn(async move {
            cut.run_until_cancelled(task).await;
        });
    }

    /// Resolves once nothing new may be begun.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Whether nothing new may be begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Lets the tasks finish for this long, then cuts what is left and says how many that were.
    pub(crate) async fn drain(&self, limit: Duration) -> usize {
        self.draining.cancel();
        self.running.close();
        let unfinished = match tokio::time::timeout(limit, self.running.wait()).await {
            Ok(()) => 0,
            Err(_) => self.running.len(),
        };
        self.cut();
        unfinished
    }

    /// Ends every task at its next await.
    pub(crate) fn cut(&self) {
        self.draining.cancel();
        self.cut.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_finishes_in_time_is_waited_for_and_the_rest_is_cut() {
        let tasks = Tasks::default();
        let (finished, waits) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            finished.send(()).unwrap();
        });
        tasks.spawn(std::future::pending());
        assert!(!tasks.is_draining());
        assert_eq!(tasks.drain(Duration::from_secs(10)).await, 1);
        waits.await.unwrap();
        assert!(tasks.is_draining());
        tasks.running.wait().await;
    }
}
