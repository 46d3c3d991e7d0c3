//! `Gateway`: both listeners, from start to drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fuseline_core::Registry;
use fuseline_store::{Fleet, Pump};
use fuseline_telemetry::{Otlp, OtlpError};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::config::{Config, Report};
use crate::crew::Crew;
use crate::fleet::Gauge;
use crate::live::{Live, Reader, ReloadError, Reloaded};
use crate::observe::{self, Feed};
use crate::proxy::Proxy;
use crate::queue::Desk;
use crate::shutdown::Tasks;
use crate::state::Meter;
use crate::traffic::Traffic;
use crate::{admin, door, fleet, otlp, proxy, queue, state};

/// A running gateway. Dropping it cuts every call; [`shutdown`](Self::shutdown) lets them finish.
pub struct Gateway {
    addr: SocketAddr,
    admin_addr: SocketAddr,
    registry: Registry,
    tasks: Tasks,
    live: Arc<Live>,
    /// None where no state is kept.
    pump: Option<Pump>,
    /// None where this replica stands alone.
    fleet: Option<Fleet>,
    /// None where no call is queued.
    desk: Option<Desk>,
    /// Who serves the callers; none where the runtime does that it was started in.
    crew: Option<Crew>,
    /// None where nothing is exported.
    otlp: Option<Otlp>,
    /// The exporter's, which has something to send when all others are done.
    courier: Tasks,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("addr", &self.addr)
            .field("admin_addr", &self.admin_addr)
            .finish_non_exhaustive()
    }
}

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address could not be taken.
    #[error("{key} = \"{address}\": {cause}; stop who holds it, or choose another address")]
    Listen {
        /// The key in the configuration.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The configuration cannot be carried out.
    #[error(transparent)]
    Proxy(#[from] proxy::BuildError),
    /// Spans and metrics cannot be exported.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
}

impl Gateway {
    /// Binds both listeners, restores the breakers that `state` keeps, and serves until it is shut down or dropped.
    /// State that cannot be read or kept is reported in the log, and is no reason not to serve.
    ///
    /// # Errors
    /// When an address is taken, or a key cannot be sent as a header.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::run(config, None, None).await
    }

    /// As [`start`](Self::start), with what reads the configuration anew at each [`reload`](Self::reload). It is given the
    /// one in force, and called where it may block.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_reloadable(
        config: Config,
        read: impl Fn(&Config) -> Report + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        Self::run(config, Some(Arc::new(read)), None).await
    }

    /// As [`start_reloadable`](Self::start_reloadable), with threads of their own for the callers. Everything else is done
    /// by the runtime that this is called in.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(
        crew: Crew,
        config: Config,
        read: impl Fn(&Config) -> Report + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        Self::run(config, Some(Arc::new(read)), Some(crew)).await
    }

    async fn run(
        config: Config,
        reader: Option<Reader>,
        crew: Option<Crew>,
    ) -> Result<Self, StartError> {
        let callers = door::bind("listen", config.listen)?;
        let operators = door::bind("admin_listen", config.admin_listen)?;
        let (is_kept, is_fleet) = (config.state.is_some(), config.fleet.is_some());
        let kept = state::open(&config);
        let exporter = config.otlp.settings();
        let exporter = exporter.as_ref().map(otlp::start).transpose()?;
        let (otlp, courier) = exporter.unzip();
        let settings = config.clone();
        let proxy = Proxy::new(config, otlp.clone())?;
        let registry = proxy.registry().clone();
        let desk = queue::open(&settings, registry.clock());
        let proxy = Arc::new(proxy.with_queue(desk.clone()));
        let pump = kept.and_then(|kept| kept.restore(&registry));
        let tasks = Tasks::default();
        let live = Arc::new(Live::new(proxy, reader, tasks.clone()));
        // What is restored comes first: what the fleet says is newer.
        let fleet = fleet::join(&live);
        let gateway = Self {
            addr: door::address("listen", &callers)?,
            admin_addr: door::address("admin_listen", &operators)?,
            registry,
            tasks,
            live: Arc::clone(&live),
            pump,
            fleet,
            desk,
            crew,
            otlp,
            courier: Tasks::default(),
        };
        if let (Some(otlp), Some(courier)) = (&gateway.otlp, courier) {
            let proxy = live.proxy();
            gateway.courier.spawn_until_cut(courier.work(proxy.pool()));
            let metrics = proxy.metrics().clone();
            let meter = Meter::new(is_kept, gateway.pump.as_ref());
            let gauge = Gauge::new(is_fleet, gateway.fleet.as_ref());
            let desk = gateway.desk.clone();
            let queue = move || desk.as_ref().map(Desk::state);
            otlp.observe(move || metrics.families(meter.read(), gauge.read(), queue()));
        }
        let feed = Feed::default();
        let router = admin::router(admin::Admin::new(
            Arc::clone(&live),
            gateway.tasks.clone(),
            feed.clone(),
            Meter::new(is_kept, gateway.pump.as_ref()),
            Gauge::new(is_fleet, gateway.fleet.as_ref()),
        ));
        // The admin listener answers until the end of a drain, so it is not among the tasks that a drain waits for.
        gateway.tasks.spawn_until_cut(async move {
            if let Err(error) = axum::serve(operators, router).await {
                tracing::error!(%error, "the admin listener ended");
            }
        });
        let observing = observe::observe(Arc::clone(&live), feed);
        gateway.tasks.spawn_until_cut(observing);
        let sending = proxy::send_on(Arc::clone(&live), gateway.tasks.clone());
        gateway.tasks.spawn(sending);
        let traffic = Traffic::new(live, gateway.tasks.clone());
        gateway.accept(&Arc::new(traffic), callers)?;
        tracing::info!(listen = %gateway.addr, admin_listen = %gateway.admin_addr, "serving");
        Ok(gateway)
    }

    /// Lets each of the crew accept callers, or where there is none, this runtime.
    fn accept(&self, traffic: &Arc<Traffic>, callers: TcpListener) -> Result<(), StartError> {
        let unusable = |cause| StartError::Listen {
            key: "listen",
            address: self.addr,
            cause,
        };
        let callers = callers.into_std().map_err(unusable)?;
        let here = Handle::current();
        let hands = match &self.crew {
            Some(crew) => crew.hands(),
            None => std::slice::from_ref(&here),
        };
        for hand in hands {
            let callers = callers.try_clone().map_err(unusable)?;
            let _its = hand.enter();
            self.tasks.spawn(Arc::clone(traffic).accept(callers));
        }
        Ok(())
    }

    /// Reads the configuration anew and goes by it from the next call on; calls in flight end as they began. Breakers keep
    /// their states, with new settings where these changed; those to which no call leads any more are forgotten. Keys that
    /// cannot change in a running process keep their values, with a note for each.
    ///
    /// # Errors
    /// Whatever is wrong with the new configuration: then nothing has changed.
    pub async fn reload(&self) -> Result<Reloaded, ReloadError> {
        self.live.reload().await
    }

    /// Where callers connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where operators and scrapers connect.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The breakers.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Turns readiness off, and after `drain_delay` takes no new calls; lets those in flight finish for up to `drain`, and
    /// ends the rest, streams with an error event; then the state is written. Dropping the future cuts at once.
    pub async fn shutdown(mut self) {
        let (drain_delay, drain) = {
            let proxy = self.live.proxy();
            let limits = &proxy.config().limits;
            (limits.drain_delay, limits.drain)
        };
        tracing::info!(delay = ?drain_delay, ?drain, "draining");
        self.tasks.announce();
        if !drain_delay.is_zero() {
            tokio::time::sleep(drain_delay).await;
        }
        match self.tasks.drain(drain).await {
            0 => tracing::info!("drained"),
            cut => tracing::warn!(cut, "drain ended with connections still busy"),
        }
        if let Some(fleet) = self.fleet.take() {
            // Its exchanges are bounded. One that panicked has nothing to give back.
            drop(tokio::task::spawn_blocking(|| fleet.leave()).await);
        }
        if let Some(desk) = self.desk.take() {
            desk.close().await;
        }
        if let Some(pump) = self.pump.take() {
            state::flush(pump).await;
        }
        if let Some(otlp) = self.otlp.take() {
            otlp::flush(otlp).await;
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.tasks.cut();
        self.courier.cut();
    }
}
