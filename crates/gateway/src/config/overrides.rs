//! `Overrides`: what stands above the file.

use std::net::SocketAddr;

use secrecy::SecretString;
use tracing::level_filters::LevelFilter;

use super::Config;
use super::entry::{self, Shown};
use super::load::{FORMATS, LogFormat, state_file};

/// What flags and the environment say; each stands above the file's key of the same name.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Overrides {
    /// Where callers connect [default: 127.0.0.1:8080]
    #[arg(long, env = "FUSELINE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where operators and scrapers connect [default: 127.0.0.1:8081]
    #[arg(long, env = "FUSELINE_ADMIN_LISTEN", value_name = "ADDRESS")]
    pub admin_listen: Option<SocketAddr>,
    /// The file that keeps breaker states, or "off" [default: fuseline.db]
    #[arg(long, env = "FUSELINE_STATE", value_name = "FILE")]
    pub state: Option<String>,
    /// The Redis by which replicas act as one
    #[arg(
        long,
        env = "FUSELINE_FLEET",
        value_name = "URL",
        hide_env_values = true
    )]
    pub fleet: Option<SecretString>,
    /// How much is logged: off, error, warn, info, debug or trace [default: info]
    #[arg(long, env = "FUSELINE_LOG", value_name = "LEVEL")]
    pub log: Option<LevelFilter>,
    /// How lines of the log are written: auto is for people at a terminal, else JSON [default: auto]
    #[arg(
        long,
        env = "FUSELINE_LOG_FORMAT",
        value_name = "FORMAT",
        hide_possible_values = true,
        value_enum
    )]
    pub log_format: Option<LogFormat>,
    /// The collector that spans and metrics are exported to
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Where spans go, if not below --otlp-endpoint
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        value_name = "URL",
        hide = true
    )]
    pub otlp_traces_endpoint: Option<String>,
    /// Where metrics go, if not below --otlp-endpoint
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        value_name = "URL",
        hide = true
    )]
    pub otlp_metrics_endpoint: Option<String>,
    /// How spans are exported: otlp, or none
    #[arg(long, env = "OTEL_TRACES_EXPORTER", value_name = "NAME", hide = true)]
    pub otel_traces_exporter: Option<String>,
    /// How metrics are exported: otlp, or none
    #[arg(long, env = "OTEL_METRICS_EXPORTER", value_name = "NAME", hide = true)]
    pub otel_metrics_exporter: Option<String>,
    /// Export nothing, where it says true
    #[arg(long, env = "OTEL_SDK_DISABLED", value_name = "BOOLEAN", hide = true)]
    pub otel_sdk_disabled: Option<String>,
}

impl Config {
    pub(super) fn override_with(&mut self, over: &Overrides) {
        self.listen = over.listen.unwrap_or(self.listen);
        self.admin_listen = over.admin_listen.unwrap_or(self.admin_listen);
        self.log = over.log.unwrap_or(self.log);
        self.log_format = over.log_format.unwrap_or(self.log_format);
        self.otlp.override_with(over);
        if let Some(state) = &over.state {
            self.state = state_file(state);
        }
        if let Some(fleet) = &over.fleet {
            self.fleet = Some(fleet.clone());
            let secret = Shown::Secret(fleet.clone());
            entry::put(&mut self.entries, "fleet", secret);
        }
        let format = |format: LogFormat| FORMATS.iter().find(|(_, other)| *other == format);
        let format = over.log_format.and_then(format);
        let texts = [
            ("listen", over.listen.map(|listen| listen.to_string())),
            (
                "admin_listen",
                over.admin_listen.map(|listen| listen.to_string()),
            ),
            ("state", over.state.clone()),
            ("otlp.endpoint", over.otlp_endpoint.clone()),
            ("log", over.log.map(|level| level.to_string())),
            ("log_format", format.map(|(name, _)| (*name).to_owned())),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                entry::put(&mut self.entries, key, Shown::Plain(text.into()));
            }
        }
    }
}
