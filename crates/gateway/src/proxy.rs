//! The way of a call through the gateway.
//!
//! ```text
//! caller ─► ingress ─► course: plan ─► attempt ─► upstream ─┐
//!              │           ▲              verdict ◄──────────┤
//!              ▼           └── next step ◄───┘               ▼
//!           refusal ─────────────► respond ◄──────── answer, as it comes
//! ```

mod address;
mod aim;
mod alarm;
mod cache;
mod client;
mod coding;
mod context;
mod course;
mod doubts;
mod driven;
mod exchange;
mod exhausted;
mod framing;
mod gathered;
mod guard;
mod head;
mod headers;
mod heartbeat;
mod in_band;
mod ingress;
mod limits;
mod memory;
mod order;
mod outage;
mod own;
mod passing;
mod queue;
mod refusal;
mod replay;
mod respond;
mod roster;
mod steering;
mod story;
mod strangers;
mod streamed;
mod streaming;
mod succession;
mod trace;
mod upload;
mod upstream;
mod watched;
mod way;
mod whole;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fuseline_core::{Breaker, Registry, ScopeName, Tick};
use fuseline_llm::{Classifier, Limits, Operation};
use fuseline_telemetry::{Metrics, Otlp};
use http::{Request, Response};
use http_body_util::Either;
use hyper::body::Incoming;
use rustls::crypto::CryptoProvider;
use tokio::sync::Semaphore;

use crate::caller::{Awaited, Caller};
use crate::config::{Config, Listener, OnExhausted, Route, Webhook};
use crate::queue::Desk;
use crate::state;
use cache::{Cache, Keeper, Slot, Tenant};
pub(crate) use client::Pool;
use client::{Clients, Reuse};
use context::Context;
use course::{Course, Ending};
use guard::Guards;
use ingress::{Answered, Call, Lane};
use outage::Outage;
pub(crate) use queue::send_on;
use refusal::Refusal;
pub(crate) use refusal::unreadable;
use replay::ReplayMemory;
use respond::Body;
use roster::Roster;
use strangers::Strangers;
use upload::Uploads;
use upstream::Upstream;
use way::Way;

/// Everything that calls under one configuration share.
pub(crate) struct Proxy {
    config: Arc<Config>,
    upstreams: BTreeMap<String, Upstream>,
    guards: Guards,
    clients: Clients,
    /// By route, or by provider where they are passed through.
    rosters: Vec<Roster>,
    /// Where a route falls back on it.
    cache: Option<Arc<Cache>>,
    /// Whether a route queues calls.
    has_queue: bool,
    replay: ReplayMemory,
    uploads: Uploads,
    /// `listener.max_calls`
    places: Arc<Semaphore>,
    classifier: Arc<Classifier>,
    lasting: Lasting,
}

/// What outlives a configuration.
#[derive(Clone)]
struct Lasting {
    metrics: Metrics,
    outage: Arc<Outage>,
    strangers: Arc<Strangers>,
    /// Where spans are exported.
    otlp: Option<Otlp>,
    /// Where calls wait; none where it cannot be used.
    desk: Option<Desk>,
    salt: [u8; 16],
    seeds: Arc<AtomicU64>,
}

/// Why a configuration cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A key holds what no header may hold.
    #[error(
        "providers.{provider}.api_key[{at}]: holds a character that no HTTP header can carry, such as a line break; write the key alone"
    )]
    Key {
        /// The provider.
        provider: String,
        /// Which of its keys.
        at: usize,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// Answers one request of this caller. There is always an answer; the HTTP library wants room for a failure.
pub(crate) async fn handle(
    proxy: Arc<Proxy>,
    request: Request<Incoming>,
    caller: Caller,
) -> Result<Response<Awaited<Body, impl Unpin>>, Infallible> {
    let asking = caller.asks();
    let otlp = proxy.lasting.otlp.as_ref();
    let span = otlp.map(|otlp| otlp.call(request.headers()));
    let mut context = Context::begin(proxy.registry(), proxy.metrics(), caller.clone(), span);
    let (mut waiting, mut place) = (None, None);
    let keeps = proxy.cache.clone();
    let tenant = keeps.is_some().then(|| {
        Tenant::of(
            &proxy.lasting.salt,
            request.headers(),
            request.uri().query(),
        )
    });
    let owner = proxy
        .has_queue
        .then(|| queue::Tenant::of(request.headers(), request.uri().query()));
    let answer = match ingress::read(&proxy, request).await {
        Ok(mut call) => {
            waiting = Some(caller.waits());
            trace::name(&call, &mut context);
            place = call.place.take();
            call.tenant = owner;
            call.slot = tenant.and_then(|tenant| proxy.slot(&call, tenant));
            let mut course = Course::new(&proxy, &call, &mut context);
            let ending = tokio::select! {
                biased;
                ending = course.run() => ending,
                () = caller.ends() => Ending::Refused(Refusal::shutting_down()),
            };
            let keeper = keeps
                .zip(call.slot.take())
                .map(|(cache, slot)| Keeper::new(cache, slot));
            respond::respond(ending, call.facts.protocol(), context, keeper)
        }
        Err(Answered::Errand(errand, protocol)) => {
            let tenant = owner.as_ref();
            errand.run(&proxy, tenant, protocol, context).await
        }
        Err(Answered::Here(answer)) => respond::dressed(*answer, context),
        Err(Answered::Refused(refusal, protocol)) => respond::refused(refusal, protocol, context),
    };
    if matches!(answer.body(), Either::Left(_)) {
        // It is at hand: his call is over, however slowly he takes the answer.
        (waiting, place) = (None, None);
    }
    Ok(answer.map(|body| Awaited::new(body, (waiting, asking, place, proxy))))
}

impl Proxy {
    pub(crate) fn new(config: Config, otlp: Option<Otlp>) -> Result<Self, BuildError> {
        let (mut salt, mut seed) = ([0; 16], [0; 8]);
        // The system's: TLS's own source takes a tenth of a second to get ready.
        getrandom::fill(&mut salt).map_err(|_| BuildError::Random)?;
        getrandom::fill(&mut seed).map_err(|_| BuildError::Random)?;
        let seed = u64::from_ne_bytes(seed);
        let guards = Guards::new(&config, seed);
        Ok(Self {
            upstreams: Upstream::all(&config)?,
            clients: Clients::new(crypto(), &config.authorities.certificates, config.pool)?,
            rosters: Roster::all(&config),
            cache: wants_cache(&config).then(|| Arc::new(Cache::new(&config.cache))),
            has_queue: crate::queue::is_wanted(&config),
            replay: ReplayMemory::new(&config.limits),
            uploads: Uploads::new(&config),
            places: places(&config),
            classifier: config.classifier(),
            lasting: Lasting {
                metrics: Metrics::new(guards.registry(), config.catalogue()),
                outage: Arc::default(),
                strangers: Arc::default(),
                otlp,
                desk: None,
                salt,
                seeds: Arc::new(AtomicU64::new(seed)),
            },
            guards,
            config: Arc::new(config),
        })
    }

    /// With the queue that its routes name, if that could be opened.
    pub(crate) fn with_queue(mut self, desk: Option<Desk>) -> Self {
        self.lasting.desk = desk;
        self
    }

    /// The queue.
    pub(crate) fn desk(&self) -> Option<&Desk> {
        self.lasting.desk.as_ref()
    }

    /// The breakers.
    pub(crate) fn registry(&self) -> &Registry {
        self.guards.registry()
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.lasting.metrics
    }

    /// By what all this is done.
    pub(crate) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Who is told of transitions.
    pub(crate) fn webhooks(&self) -> &[Webhook] {
        &self.config.webhooks
    }

    /// Connections for what is no call.
    pub(crate) fn pool(&self) -> Pool {
        let connect = self.config.usual_timeouts().connect;
        self.clients.with_connect_timeout(connect, Reuse::Allowed)
    }

    /// The breaker of this name as it is written out. One of a provider, or of a model of one, is made if need be: an
    /// operator may know of an incident before the first call does.
    pub(crate) fn breaker(&self, name: &str, now: Tick) -> Option<Breaker> {
        self.guards.breaker(&self.config, name, now)
    }

    /// What bounds the callers' side.
    pub(crate) fn listener(&self) -> &Listener {
        &self.config.listener
    }

    /// The breaker of this name, as another replica knows it; made if need be.
    pub(crate) fn shared_breaker(&self, name: &ScopeName, now: Tick) -> Option<Breaker> {
        let policy = state::policy(&self.config, name)?;
        self.registry().get_breaker(name, &policy, now).ok()
    }

    /// How long a caller may leave unread what no provider's, model's or route's limit is for.
    pub(crate) fn write_idle(&self) -> Duration {
        self.config.usual_timeouts().write_idle
    }

    /// What judges answers.
    fn classifier(&self) -> &Arc<Classifier> {
        &self.classifier
    }

    fn route(&self, call: &Call) -> Option<&Route> {
        match call.lane {
            Lane::Route(index) => self.config.routes.get(index),
            Lane::Provider(_) => None,
        }
    }

    /// What the calls along the same lane share.
    fn roster(&self, call: &Call) -> Option<&Roster> {
        let (Lane::Route(index) | Lane::Provider(index)) = call.lane;
        self.rosters.get(index)
    }

    /// What a call over these ways may spend. A budget that nobody wrote leaves each of them the time for its first
    /// token.
    fn limits_over(&self, call: &Call, ways: &[Way<'_>]) -> Limits {
        let mut limits = self.limits(call);
        let written = self.route(call).and_then(|route| route.budget);
        if written.is_none() {
            // And half as much again for whoever comes after it.
            let first_tokens = ways.iter().map(|way| way.aim.timeouts.first_token);
            let needed = first_tokens.map(|time| time.saturating_mul(3) / 2);
            limits.budget = needed.fold(limits.budget, Duration::max);
        }
        limits.budget = limits.budget.min(call.budget);
        limits
    }

    /// What a call may spend. What is no create call, or too long to be kept, is sent once.
    fn limits(&self, call: &Call) -> Limits {
        let mut limits = Limits::default();
        if let Some(route) = self.route(call) {
            limits.budget = route.budget.unwrap_or(limits.budget);
            limits.retries = route.retries;
            limits.max_attempts = route.max_attempts;
            limits.max_wait = route.max_wait;
            limits.resend_unknown = route.resend_unknown;
        }
        if call.facts.operation() == Operation::Other {
            limits.budget = Duration::MAX;
            limits.max_attempts = 1;
        }
        if call.replay.once().is_some() {
            limits.max_attempts = 1;
        }
        limits
    }

    /// Where the answer may be kept, on a route that falls back on answers of the past.
    fn slot(&self, call: &Call, tenant: Tenant) -> Option<Slot> {
        let route = self.route(call)?;
        if falls_back(route) && call.replay.once().is_none() {
            Slot::of(call, route.model.as_str(), tenant)
        } else {
            None
        }
    }

    /// A new one for each call, so that retries do not line up.
    fn seed(&self) -> u64 {
        self.lasting
            .seeds
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

/// Who does the arithmetic of TLS.
fn crypto() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// As many calls as there may be at once.
fn places(config: &Config) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(config.listener.max_calls))
}

/// Whether answers of the past are given out anywhere.
fn wants_cache(config: &Config) -> bool {
    config.routes.iter().any(falls_back)
}

/// Whether answers of the past are given out on this route.
fn falls_back(route: &Route) -> bool {
    route.on_exhausted.contains(&OnExhausted::Cache)
}
