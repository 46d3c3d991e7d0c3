//! The stage of a drill: scripted providers, the gateway in front of them, and the callers.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fuseline_llm::Protocol;
use fuseline_mock::Mock;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::progress::Progress;
use super::callers::{Call, Done, Line, line};
use super::incident::{Part, healthy};
use super::report::Report;
use super::watch::Watch;
use crate::Gateway;
use crate::config::Config;

/// How often the stage looks around.
const LOOK: Duration = Duration::from_millis(20);
/// Calls after the last circuit has closed.
const EPILOGUE: Duration = Duration::from_secs(1);
/// How long circuits may take to close once all is mended. Cooldowns grow to two minutes unless told otherwise.
const RECOVERY: Duration = Duration::from_secs(300);

/// What is to be played.
pub(super) struct Scene {
    config: Config,
    /// The model of the route that is called.
    model: String,
    protocol: Protocol,
    parts: Vec<Part>,
    /// Calls in a second.
    rate: u32,
}

impl Scene {
    /// Everything that leaves the machine, or stays on it, is taken out of the configuration.
    pub(super) fn new(
        mut config: Config,
        model: Option<&str>,
        parts: Vec<Part>,
        rate: u32,
    ) -> anyhow::Result<Self> {
        let route = match model {
            Some(model) => config
                .route(model)
                .with_context(|| format!("--model {model}: no route serves it"))?,
            None => config.routes.first().context("there are no routes")?,
        };
        let exact = || route.model.is_exact().then(|| route.model.as_str());
        let model = model.or_else(exact).unwrap_or("drill").to_owned();
        if !route.model.matches(&model) {
            bail!(
                "the first route serves {}; say for which model with --model",
                route.model.as_str()
            );
        }
        let target = route.targets.first().context("the route has no target")?;
        let provider = config.providers.get(&target.provider);
        let protocol = provider
            .context("the route's provider is not there")?
            .protocol;
        if !matches!(protocol, Protocol::OpenAi | Protocol::Anthropic) {
            bail!(
                "the scripted provider does not speak {protocol:?}; drill a route of openai or anthropic"
            );
        }
        let here = ([127, 0, 0, 1], 0).into();
        (config.listen, config.admin_listen) = (here, here);
        (config.state, config.fleet, config.admin_token) = (None, None, None);
        config.listener.identity = None;
        (config.otlp.traces, config.otlp.metrics) = (None, None);
        config.limits.drain_delay = Duration::ZERO;
        config.client_tokens.clear();
        config.webhooks.clear();
        Ok(Self {
            config,
            model,
            protocol,
            parts,
            rate,
        })
    }

    /// When the first trouble begins and the last one ends.
    fn trouble(&self) -> Option<(Duration, Duration)> {
        let troubles = self.parts.iter().filter_map(|part| part.trouble);
        troubles.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

struct Stage {
    /// By provider; they answer as long as they stand here.
    mocks: BTreeMap<String, Mock>,
    gateway: Gateway,
    line: Line,
    under_way: JoinSet<Done>,
    done: Vec<Done>,
    watch: Watch,
    started: Instant,
}

/// Plays it, and reports.
pub(super) async fn play(scene: Scene) -> anyhow::Result<Report> {
    let (begin, end) = scene.trouble().unwrap_or_default();
    let mut stage = Stage::build(&scene).await?;
    let whole = u64::try_from((end + EPILOGUE).as_millis()).unwrap_or(u64::MAX);
    let mut progress = Progress::new("rehearsed", Some(whole), 1_000);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let gap = Duration::from_secs(1) / scene.rate.max(1);
    let (mut due, mut calm_since, mut hits) = (Duration::ZERO, end, Hits::default());
    loop {
        let before = stage.started.elapsed();
        look.tick().await;
        let now = stage.started.elapsed();
        progress.add(u64::try_from((now - before).as_millis()).unwrap_or(0));
        while due <= now {
            stage.call(&scene, due);
            due += gap;
        }
        stage.gather();
        hits.note(&stage.mocks, now, (begin, end));
        if !stage.watch.is_calm() {
            calm_since = now;
        }
        let is_over = now >= end.max(calm_since) + EPILOGUE;
        if is_over || now >= end + RECOVERY {
            break;
        }
    }
    while let Some(ended) = stage.under_way.join_next().await {
        stage.done.extend(ended);
    }
    stage.watch.look();
    progress.finish();
    stage.done.sort_by_key(|done| done.at_ms);
    let report = Report::new(
        &scene.model,
        &scene.parts,
        (begin, end),
        stage.done,
        stage.watch,
        hits.in_trouble(),
    );
    stage.gateway.shutdown().await;
    Ok(report)
}

impl Stage {
    async fn build(scene: &Scene) -> anyhow::Result<Self> {
        let mut config = scene.config.clone();
        let mut mocks = BTreeMap::new();
        for (name, provider) in &mut config.providers {
            let mock = Mock::start(healthy()).await?;
            provider.base_url = provider.base_url.moved_to(mock.addr())?;
            mocks.insert(name.clone(), mock);
        }
        let gateway = Gateway::start(config).await?;
        // Troubles count from the first call.
        for part in &scene.parts {
            if let Some(mock) = mocks.get(&part.provider) {
                mock.set(part.script.clone()).await?;
            }
        }
        Ok(Self {
            watch: Watch::new(gateway.registry().clone()),
            mocks,
            gateway,
            line: line(),
            under_way: JoinSet::new(),
            done: Vec::new(),
            started: Instant::now(),
        })
    }

    fn call(&mut self, scene: &Scene, at: Duration) {
        let number = self.done.len() + self.under_way.len();
        let call = Call {
            url: format!("http://{}", self.gateway.addr()),
            model: scene.model.clone(),
            protocol: scene.protocol,
            is_streamed: number % 2 == 1,
            at,
        };
        self.under_way.spawn(call.make(self.line.clone()));
    }

    /// Takes note of what has ended and of what has changed.
    fn gather(&mut self) {
        while let Some(ended) = self.under_way.try_join_next() {
            self.done.extend(ended);
        }
        self.watch.look();
    }
}

/// Requests that reached each provider, and how many there were when the trouble began and ended.
#[derive(Default)]
struct Hits {
    begin: Option<BTreeMap<String, u64>>,
    end: Option<BTreeMap<String, u64>>,
}

impl Hits {
    fn note(
        &mut self,
        mocks: &BTreeMap<String, Mock>,
        now: Duration,
        (begin, end): (Duration, Duration),
    ) {
        let count = || {
            let hits = mocks.iter().map(|(name, mock)| (name.clone(), mock.hits()));
            Some(hits.collect())
        };
        if now >= begin && self.begin.is_none() {
            self.begin = count();
        }
        if now >= end && self.end.is_none() {
            self.end = count();
        }
    }

    /// Requests between the two.
    fn in_trouble(self) -> BTreeMap<String, u64> {
        let begin = self.begin.unwrap_or_default();
        let end = self.end.unwrap_or_default().into_iter();
        end.map(|(name, hits)| {
            let before = begin.get(&name).copied().unwrap_or(0);
            (name, hits.saturating_sub(before))
        })
        .collect()
    }
}
