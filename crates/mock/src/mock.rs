//! `Mock`: the handle on a running scripted provider.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{ScriptError, TimedOut};
use crate::server::{self, Door, Shared};
use crate::{Counts, Departure, Recorded, Script};

/// A scripted provider on a port of this machine. Dropping it stops it.
#[derive(Debug)]
pub struct Mock {
    addr: SocketAddr,
    shared: Arc<Shared>,
    news: mpsc::Sender<oneshot::Sender<()>>,
    server: JoinSet<()>,
}

impl Mock {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Where no port can be had, or the script cannot be played.
    pub async fn start(script: impl Into<Script>) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), script).await
    }

    /// Starts on this address; its clock starts with it.
    ///
    /// # Errors
    /// Where the address cannot be had, or the script cannot be played.
    pub async fn start_at(addr: SocketAddr, script: impl Into<Script>) -> io::Result<Self> {
        let script = script.into();
        script
            .check()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut door = Door::bind(addr)?;
        // Where another program listens, it shows only now.
        door.open()?;
        let (news, heard) = mpsc::channel(1);
        let shared = Arc::new(Shared::new(script));
        let addr = door.addr();
        let mut server = JoinSet::new();
        server.spawn(server::run(Arc::clone(&shared), door, heard));
        let mock = Self {
            addr,
            shared,
            news,
            server,
        };
        mock.settled().await;
        Ok(mock)
    }

    /// Plays another script from its start. When this returns, the port refuses or accepts as the new script says.
    ///
    /// # Errors
    /// Where the script cannot be played; the old one then goes on.
    pub async fn set(&self, script: impl Into<Script>) -> Result<(), ScriptError> {
        let script = script.into();
        script.check()?;
        self.shared.play(script);
        self.settled().await;
        Ok(())
    }

    /// Stops listening, lets answers finish for up to a second, and frees the port.
    pub async fn stop(mut self) {
        drop(self.news);
        let _ = self.server.join_next().await;
    }

    async fn settled(&self) {
        let (done, heard) = oneshot::channel();
        if self.news.send(done).await.is_ok() {
            let _ = heard.await;
        }
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address as a URL without a path: `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All counts of one moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.ledger.counts()
    }

    /// Request heads received.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.counts().hits
    }

    /// Request heads received for exactly this path, the query left aside. Only the first thousand paths are told apart.
    #[must_use]
    pub fn hits_at(&self, path: &str) -> u64 {
        self.shared.ledger.hits_at(path)
    }

    /// Whole requests received for exactly this model. Only the first thousand models are told apart.
    #[must_use]
    pub fn hits_for(&self, model: &str) -> u64 {
        self.shared.ledger.hits_for(model)
    }

    /// Connections accepted, those reset on accept included.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.counts().connections
    }

    /// Requests whose answer is not finished now.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.counts().in_flight
    }

    /// Callers who left before their answer was finished.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.counts().left
    }

    /// The last thousand requests.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests()
    }

    /// The last thousand callers who left, and when the mock saw it.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        self.shared.ledger.departures()
    }

    /// Waits until this many request heads have come.
    ///
    /// # Errors
    /// Where they have not come in time.
    pub async fn wait_for_hits(&self, hits: u64, within: Duration) -> Result<(), TimedOut> {
        self.wait_until(within, |counts| counts.hits >= hits).await
    }

    /// Waits until this many callers have left.
    ///
    /// # Errors
    /// Where they have not left in time.
    pub async fn wait_for_left(&self, left: u64, within: Duration) -> Result<(), TimedOut> {
        self.wait_until(within, |counts| counts.left >= left).await
    }

    /// Waits until the counts are as asked.
    ///
    /// # Errors
    /// Where they are not so in time.
    pub async fn wait_until(
        &self,
        within: Duration,
        holds: impl FnMut(&Counts) -> bool,
    ) -> Result<(), TimedOut> {
        let mut counts = self.shared.ledger.watch();
        match timeout(within, counts.wait_for(holds)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(TimedOut {
                after: within,
                counts: self.counts(),
            }),
        }
    }
}
