//! Shutdown in four steps: it is announced, nothing new comes in and what runs may finish, calls that are left are told
//! to end, what is left even then is cut.
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
    announced: CancellationToken,
    draining: CancellationToken,
    ending: CancellationToken,
    cut: CancellationToken,
}

/// What a call is given to say its last word, once it is told to end.
const LAST_WORD: Duration = Duration::from_millis(500);

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

    /// Resolves once calls are to end, whole or not.
    pub(crate) async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Whether a shutdown has begun, which whoever sends calls should take for a reason to send no more.
    pub(crate) fn is_draining(&self) -> bool {
        self.announced.is_cancelled()
    }

    /// Says that a shutdown has begun. Everything still goes on.
    pub(crate) fn announce(&self) {
        self.announced.cancel();
    }

    /// Begins nothing new and lets the tasks finish for this long; then ends what is left, and says how many that were.
    pub(crate) async fn drain(&self, limit: Duration) -> usize {
        self.announce();
        self.draining.cancel();
        self.running.close();
        let mut unfinished = 0;
        if tokio::time::timeout(limit, self.running.wait())
            .await
            .is_err()
        {
            unfinished = self.running.len();
            self.ending.cancel();
            // Whoever has not ended by then is cut.
            drop(tokio::time::timeout(LAST_WORD, self.running.wait()).await);
        }
        self.cut();
        // Each drops what it holds, a probe for instance, at its next turn: what the gateway gives back next counts on that.
        drop(tokio::time::timeout(LAST_WORD, self.running.wait()).await);
        unfinished
    }

    /// Ends every task at its next await.
    pub(crate) fn cut(&self) {
        for token in [&self.announced, &self.draining, &self.ending, &self.cut] {
            token.cancel();
        }
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
        let told = tasks.clone();
        tasks.spawn(async move { told.ending().await });
        assert!(!tasks.is_draining());
        assert_eq!(tasks.drain(Duration::from_secs(10)).await, 2);
        waits.await.unwrap();
        assert!(tasks.is_draining());
        tasks.running.wait().await;
    }
}
