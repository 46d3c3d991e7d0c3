//! Loading: file < environment < flags, then the checks.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tracing::level_filters::LevelFilter;

use super::cache::CacheSpec;
use super::check::Survey;
use super::document::Document;
use super::finding::{Finding, Report, Severity};
use super::heartbeats::Heartbeats;
use super::limits::Limits;
use super::listener::Listener;
use super::model::ModelRule;
use super::otlp::{self, OtlpSpec};
use super::overrides::Overrides;
use super::pool::PoolSpec;
use super::provider::Provider;
use super::queue::QueueSpec;
use super::reader::{Choices, Section};
use super::reference::Row;
use super::route::{OnExhausted, Route};
use super::secret::Secrets;
use super::timeouts::TimeoutSpec;
use super::webhook::Webhook;
use super::{Config, authorities, breaker, classify, doors, zero};

/// Longest configuration file.
const MAX_FILE: u64 = 4 << 20;

const LEVELS: &Choices<LevelFilter> = &[
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

pub(super) const FORMATS: &Choices<LogFormat> = &[
    ("auto", LogFormat::Auto),
    ("json", LogFormat::Json),
    ("human", LogFormat::Human),
];

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people at a terminal, else as JSON.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Human,
}

/// Where a configuration comes from.
#[derive(Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Sources<'a> {
    /// The file; none runs without one.
    pub file: Option<&'a Path>,
    /// What stands above the file.
    pub overrides: &'a Overrides,
    /// A variable of the environment, for secrets.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("file", &self.file)
            .field("overrides", self.overrides)
            .finish_non_exhaustive()
    }
}

impl Sources<'_> {
    /// Reads and checks everything; tells every mistake at once.
    pub fn load(self) -> Report {
        self.load_over(None)
    }

    /// The same for a process that runs under another configuration already: what cannot change before its next start
    /// stays as it is, with a note for each key that says otherwise.
    pub fn load_after(self, in_force: &Config) -> Report {
        self.load_over(Some(in_force))
    }

    fn load_over(self, in_force: Option<&Config>) -> Report {
        let Some(path) = self.file else {
            return self.read(None, Path::new(""), "", in_force);
        };
        let name = path.display().to_string();
        match read_bounded(path, MAX_FILE) {
            Ok(text) => self.read(
                Some(&name),
                path.parent().unwrap_or_else(|| Path::new("")),
                &text,
                in_force,
            ),
            Err(why) => {
                let finding = Finding {
                    severity: Severity::Mistake,
                    file: Some(name),
                    line: None,
                    key: None,
                    value: None,
                    problem: format!("cannot be read: {why}"),
                    remedy: Some("give the path of a readable file with --config".to_owned()),
                };
                Report {
                    findings: vec![finding],
                    config: None,
                }
            }
        }
    }

    pub(crate) fn load_text(self, name: Option<&str>, folder: &Path, text: &str) -> Report {
        self.read(name, folder, text, None)
    }

    fn read(
        self,
        name: Option<&str>,
        folder: &Path,
        text: &str,
        in_force: Option<&Config>,
    ) -> Report {
        let (mut document, root) = Document::parse(
            name,
            text,
            Secrets {
                folder,
                env: self.env,
            },
        );
        let mut survey = Survey::default();
        let mut config = Section::root(&mut document, &root, |section| {
            Config::read(section, &mut survey)
        });
        config.entries = document.entries();
        config.override_with(self.overrides);
        if let Some(in_force) = in_force {
            config.take_over(in_force, &mut document);
        }
        config
            .entries
            .sort_unstable_by(|one, other| one.key.cmp(&other.key));
        if document.is_whole() {
            survey.check(&config.classifier(), &mut document);
            doors::check(&config, &survey, self.overrides, &mut document);
            doors::fleet(&config, &mut document);
            doors::queue(&config, self.overrides, &mut document);
            otlp::check(self.overrides, &mut document);
        }
        let findings = document.into_findings();
        let sound = !findings
            .iter()
            .any(|finding| finding.severity == Severity::Mistake);
        Report {
            findings,
            config: sound.then_some(config),
        }
    }
}

impl Config {
    fn read(section: &mut Section<'_, '_>, survey: &mut Survey) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        let admin = SocketAddr::from(([127, 0, 0, 1], 8081));
        let mut config = Self {
            listen: section.get("listen", listen, "where callers connect"),
            admin_listen: section.get(
                "admin_listen",
                admin,
                "where operators and scrapers connect",
            ),
            admin_token: section.secret(
                "admin_token",
                "what the admin listener asks for; needed beyond loopback",
            ),
            state: section
                .opt(
                    "state",
                    Some("fuseline.db".to_owned()),
                    "the file that keeps breaker states, or \"off\"",
                )
                .map_or_else(
                    || state_file("fuseline.db"),
                    |state: String| state_file(&state),
                ),
            fleet: section.secret(
                "fleet",
                "the Redis by which replicas act as one: redis://user:password@host:port/database",
            ),
            fleet_prefix: section
                .opt(
                    "fleet_prefix",
                    Some(FLEET_PREFIX.to_owned()),
                    "what every key of the fleet in Redis begins with",
                )
                .unwrap_or_else(|| FLEET_PREFIX.to_owned()),
            log: section
                .choice("log", LEVELS, Some("info"), "how much is logged")
                .unwrap_or(LevelFilter::INFO),
            log_format: section
                .choice(
                    "log_format",
                    FORMATS,
                    Some("auto"),
                    "how lines of the log are written; \"auto\" is for people at a terminal, else JSON",
                )
                .unwrap_or_default(),
            client_tokens: section.secrets(
                "client_tokens",
                "callers must show one of these; needed beyond loopback",
            ),
            authorities: authorities::read(section),
            limits: Limits::read(section),
            listener: section.table("listener", Listener::read),
            pool: section.table("pool", PoolSpec::read),
            timeouts: section.table("timeouts", TimeoutSpec::read),
            heartbeats: section.table("heartbeats", Heartbeats::read),
            otlp: section.table("otlp", OtlpSpec::read),
            webhooks: section.list("webhooks", Webhook::read),
            cache: section.table("cache", CacheSpec::read),
            queue: section.table("queue", QueueSpec::read),
            breaker: section.table("breaker", breaker::read),
            pass_through: false,
            providers: section.named("providers", |name, section| {
                Provider::read(name, section, survey)
            }),
            routes: section.list("routes", |section| Route::read(section, survey)),
            models: section.list("models", ModelRule::read),
            rules: section.table("classify", classify::read),
            entries: Vec::new(),
        };
        survey.allow_anonymous = section.get(
            "allow_anonymous",
            false,
            "let anybody call, beyond loopback too",
        );
        survey.models_have_contexts = config.models.iter().any(|rule| rule.context.is_some());
        if section.is_listing() {
            return config;
        }
        let steps = || config.routes.iter().flat_map(|route| &route.on_exhausted);
        for (key, step, problem) in [
            (
                "cache",
                OnExhausted::Cache,
                "no route's on_exhausted names \"cache\"",
            ),
            (
                "queue",
                OnExhausted::Queue,
                "no route's on_exhausted names \"queue\"",
            ),
        ] {
            if section.has(key) && !steps().any(|found| *found == step) {
                section.document.note(key, problem);
            }
        }
        if !section.has("providers") && !section.has("routes") {
            config.pass_through = true;
            config.providers = zero::providers();
        } else if !section.has("routes") {
            let remedy = "write [[routes]] with model = \"*\" and targets; without providers and routes, known ones are passed through";
            section.document.mistake("routes", "is missing", remedy);
        }
        config
    }
}

/// What every key of a fleet begins with.
const FLEET_PREFIX: &str = "fuseline";

/// Every key there is, in the order of the sections.
pub(super) fn rows() -> Vec<Row> {
    let (mut document, root) = Document::parse(
        None,
        "",
        Secrets {
            folder: Path::new(""),
            env: &|_| None,
        },
    );
    document.reference = Some(Vec::new());
    Section::root(&mut document, &root, |section| {
        Config::read(section, &mut Survey::default())
    });
    document.reference.unwrap_or_default()
}

pub(super) fn state_file(text: &str) -> Option<PathBuf> {
    (text != "off").then(|| text.into())
}

/// The text of a file of at most so many bytes.
pub(super) fn read_bounded(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(limit + 1)
        .read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read > limit) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {limit} bytes"),
        ));
    }
    Ok(text)
}
