//! `[otlp]`: the collector that spans and metrics are exported to, and how often.

use std::time::Duration;

use fuseline_telemetry::OtlpSettings;
use http::Uri;

use super::Overrides;
use super::document::Document;
use super::reader::Section;

const REMEDY: &str =
    "write the collector's URL such as \"http://127.0.0.1:4318\", without a user or password";

/// Where spans and metrics go. Nothing is exported where neither the file nor the environment names a collector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OtlpSpec {
    /// The URL of spans.
    pub traces: Option<String>,
    /// The URL of metrics.
    pub metrics: Option<String>,
    /// How long a span may wait for others that are sent with it.
    pub traces_interval: Duration,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// The share of the traces beginning here that is kept.
    pub sample: Option<f64>,
    /// How many traces may begin here in a second.
    pub traces_per_second: u32,
}

impl OtlpSpec {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let doc = "the collector's URL, to which /v1/traces and /v1/metrics are added; OTEL_EXPORTER_OTLP_ENDPOINT stands above it";
        let endpoint: Option<String> = section.opt("endpoint", None, doc);
        if endpoint.as_deref().is_some_and(|url| !is_url(url)) {
            let path = section.path("endpoint");
            let document = &mut section.document;
            document.secret_mistake(&path, "is no URL of a collector", REMEDY);
        }
        let traces_interval = section.get(
            "traces_interval",
            Duration::from_secs(5),
            "how long spans are gathered before they are sent; OTEL_BSP_SCHEDULE_DELAY stands above it",
        );
        section.ensure_positive(traces_interval, "traces_interval");
        let metrics_interval = section.get(
            "metrics_interval",
            Duration::from_secs(60),
            "how often metrics are sent; OTEL_METRIC_EXPORT_INTERVAL stands above it",
        );
        section.ensure_positive(metrics_interval, "metrics_interval");
        let doc = "the share of the traces beginning here that is kept, 0 to 1; OTEL_TRACES_SAMPLER stands above it";
        let sample = section.opt("sample", Some(1.0), doc);
        let is_share = sample.is_none_or(|share: f64| (0.0..=1.0).contains(&share));
        section.ensure(is_share, "sample", "is no share", "write 0 to 1");
        let doc = "how many traces may begin here in a second; those that callers have begun are not counted";
        let traces_per_second = section.get("traces_per_second", 1_000, doc);
        Self {
            traces: endpoint.as_deref().map(|base| below(base, "traces")),
            metrics: endpoint.as_deref().map(|base| below(base, "metrics")),
            traces_interval,
            metrics_interval,
            sample,
            traces_per_second,
        }
    }

    pub(super) fn override_with(&mut self, over: &Overrides) {
        if let Some(base) = said(&over.otlp_endpoint) {
            self.traces = Some(below(base, "traces"));
            self.metrics = Some(below(base, "metrics"));
        }
        for (url, over) in [
            (&mut self.traces, &over.otlp_traces_endpoint),
            (&mut self.metrics, &over.otlp_metrics_endpoint),
        ] {
            if let Some(said) = said(over) {
                *url = Some(said.to_owned());
            }
        }
        let is_off =
            said(&over.otel_sdk_disabled).is_some_and(|off| off.eq_ignore_ascii_case("true"));
        if is_off || !is_by_otlp(&over.otel_traces_exporter) {
            self.traces = None;
        }
        if is_off || !is_by_otlp(&over.otel_metrics_exporter) {
            self.metrics = None;
        }
    }

    /// What to export by; none where there is no collector.
    pub(crate) fn settings(&self) -> Option<OtlpSettings> {
        if self.traces.is_none() && self.metrics.is_none() {
            return None;
        }
        Some(OtlpSettings {
            traces: self.traces.clone(),
            metrics: self.metrics.clone(),
            traces_interval: self.traces_interval,
            metrics_interval: self.metrics_interval,
            sample: self.sample,
            traces_per_second: self.traces_per_second,
        })
    }
}

/// Flags and variables hold URLs, too.
pub(super) fn check(over: &Overrides, document: &mut Document<'_>) {
    for (flag, url) in [
        ("--otlp-endpoint", &over.otlp_endpoint),
        ("--otlp-traces-endpoint", &over.otlp_traces_endpoint),
        ("--otlp-metrics-endpoint", &over.otlp_metrics_endpoint),
    ] {
        if said(url).is_some_and(|url| !is_url(url)) {
            document.secret_mistake(flag, "is no URL of a collector", REMEDY);
        }
    }
    for (flag, exporters) in [
        ("--otel-traces-exporter", &over.otel_traces_exporter),
        ("--otel-metrics-exporter", &over.otel_metrics_exporter),
    ] {
        if !is_by_otlp(exporters) && !exporters_in(exporters).all(|name| name == "none") {
            document.note(
                flag,
                "nothing is exported: of the exporters there is otlp alone",
            );
        }
    }
}

/// Whether `otlp` is among the exporters asked for, as it is where none is named.
fn is_by_otlp(exporters: &Option<String>) -> bool {
    let mut named = exporters_in(exporters).peekable();
    named.peek().is_none() || named.any(|name| name == "otlp")
}

fn exporters_in(exporters: &Option<String>) -> impl Iterator<Item = &str> {
    let names = said(exporters)
        .into_iter()
        .flat_map(|names| names.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}

/// A variable that is set to nothing says nothing.
fn said(variable: &Option<String>) -> Option<&str> {
    variable.as_deref().filter(|said| !said.is_empty())
}

fn below(base: &str, signal: &str) -> String {
    format!("{}/v1/{signal}", base.trim_end_matches('/'))
}

fn is_url(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    uri.is_some_and(|uri| {
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        is_web && uri.host().is_some_and(|host| !host.is_empty()) && !url.contains('@')
    })
}
