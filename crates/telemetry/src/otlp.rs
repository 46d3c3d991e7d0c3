//! `Otlp`: spans and metrics for a collector. Only the modules below this one name OpenTelemetry, whose minor releases break.
//!
//! A span that ends is put into a bounded queue, and where that is full it is lost: nobody waits for a collector. Threads of
//! the exporter's own empty the queue and read the metrics; what they have to send, and how long that may take, is the
//! business of whoever gave the [`Post`]. Sampler, resource, queue and headers are also read from the standard `OTEL_*`
//! variables.

mod attempt;
mod client;
mod instruments;
mod pace;
mod spans;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{
    Instrument, InstrumentKind, PeriodicReader, SdkMeterProvider, Stream,
};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};

use crate::family::Family;
use client::Client;
use instruments::Instruments;
use pace::Pace;

pub use attempt::{AttemptReport, AttemptSpan};
pub use client::{Post, PostError, PostFuture};
pub use spans::{CallReport, CallSpan, Upstream};

/// The instrumentation scope of all that is exported.
const SCOPE: &str = "fuseline";
/// Label sets of one metric; the catalogue bounds them long before.
const MAX_SERIES: usize = 100_000;
/// How long what is left may take to be sent at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// Where to and how often.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct OtlpSettings {
    /// The whole URL for spans, such as `http://127.0.0.1:4318/v1/traces`; none exports none.
    pub traces: Option<String>,
    /// The whole URL for metrics, such as `http://127.0.0.1:4318/v1/metrics`; none exports none.
    pub metrics: Option<String>,
    /// How long a span may wait for others that are sent with it; `OTEL_BSP_SCHEDULE_DELAY` stands above it.
    pub traces_interval: Duration,
    /// How often metrics are sent; `OTEL_METRIC_EXPORT_INTERVAL` stands above it.
    pub metrics_interval: Duration,
    /// Which share of the traces is kept that begin here, from 0 to 1, none being all; others are kept if their caller
    /// keeps them. `OTEL_TRACES_SAMPLER` stands above it.
    pub sample: Option<f64>,
    /// How many traces may begin here in a second, so that a flood of calls does not become one of spans, most of which the
    /// queue would lose. Traces that a caller has begun are not counted.
    pub traces_per_second: u32,
}

/// Why nothing can be exported.
#[derive(Debug, thiserror::Error)]
#[error("the OTLP exporter cannot be built: {0}; check the OTEL_* variables of the environment")]
pub struct OtlpError(#[from] opentelemetry_otlp::ExporterBuildError);

/// An exporter. Clones share it; dropping the last one sends what is left from a thread of its own.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use fuseline_telemetry::{Otlp, OtlpSettings, Post, PostError};
///
/// let nobody: Post = Arc::new(|_request| Box::pin(async { Err(PostError) }));
/// let settings = OtlpSettings {
///     traces: Some("http://127.0.0.1:4318/v1/traces".to_owned()),
///     metrics: None,
///     traces_interval: Duration::from_secs(5),
///     metrics_interval: Duration::from_secs(60),
///     sample: Some(0.1),
///     traces_per_second: 1_000,
/// };
/// let otlp = Otlp::start(&settings, &nobody)?;
/// let mut call = otlp.call(&http::HeaderMap::new());
/// call.asks("chat", "gpt-5");
/// otlp.shutdown();
/// # Ok::<(), fuseline_telemetry::OtlpError>(())
/// ```
#[derive(Clone)]
pub struct Otlp(Arc<Inner>);

struct Inner {
    spans: SdkTracerProvider,
    meters: SdkMeterProvider,
    tracer: SdkTracer,
    instruments: Instruments,
    pace: Pace,
}

impl Otlp {
    /// Starts the exporter's threads. `post` sends a request and gives its answer; it is called from these threads, which
    /// belong to no async runtime.
    ///
    /// # Errors
    /// When an address is no URL, or the environment asks for what there is not.
    pub fn start(settings: &OtlpSettings, post: &Post) -> Result<Self, OtlpError> {
        let resource = resource();
        let spans = spans(settings, post, &resource)?;
        let meters = meters(settings, post, resource)?;
        Ok(Self(Arc::new(Inner {
            tracer: spans.tracer(SCOPE),
            instruments: Instruments::new(&meters.meter(SCOPE)),
            pace: Pace::new(settings.traces_per_second),
            spans,
            meters,
        })))
    }

    /// Exports what `read` gives from now on: every metric that it gives today, by the same name.
    pub fn observe(&self, read: impl Fn() -> Vec<Family> + Send + Sync + 'static) {
        instruments::observe(&self.0.meters.meter(SCOPE), read);
    }

    /// A call has come in, with these headers: its trace goes on where they name one.
    pub fn call(&self, headers: &HeaderMap) -> CallSpan {
        CallSpan::new(self.clone(), headers)
    }

    /// Sends what is left, and ends. It blocks for 10 seconds at most: 5 for the spans and as long for the metrics.
    pub fn shutdown(&self) {
        self.0.shutdown();
    }
}

impl Inner {
    fn shutdown(&self) {
        // Whatever fails has been told by whoever posts.
        let _spans = self.spans.shutdown_with_timeout(FLUSH);
        let _metrics = self.meters.shutdown_with_timeout(FLUSH);
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").finish_non_exhaustive()
    }
}

/// The providers would block whoever drops them, who may be the one that has to send.
impl Drop for Inner {
    fn drop(&mut self) {
        let (spans, meters) = (self.spans.clone(), self.meters.clone());
        let flush = move || {
            drop(spans.shutdown_with_timeout(FLUSH));
            drop(meters.shutdown_with_timeout(FLUSH));
        };
        // Where there is no thread to be had, what is left is lost.
        let _flushing = std::thread::Builder::new()
            .name("otlp-flush".to_owned())
            .spawn(flush);
    }
}

fn spans(
    settings: &OtlpSettings,
    post: &Post,
    resource: &Resource,
) -> Result<SdkTracerProvider, OtlpError> {
    let mut provider = SdkTracerProvider::builder().with_resource(resource.clone());
    if let Some(url) = &settings.traces {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(url)
            .with_http_client(Client::new(post))
            .build()?;
        let mut batches = BatchConfigBuilder::default();
        if is_unset("OTEL_BSP_SCHEDULE_DELAY") {
            batches = batches.with_scheduled_delay(settings.traces_interval);
        }
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(batches.build());
        provider = provider.with_span_processor(batches.build());
    }
    if let Some(share) = settings.sample
        && is_unset("OTEL_TRACES_SAMPLER")
    {
        let of_ours = Box::new(Sampler::TraceIdRatioBased(share));
        provider = provider.with_sampler(Sampler::ParentBased(of_ours));
    }
    Ok(provider.build())
}

fn meters(
    settings: &OtlpSettings,
    post: &Post,
    resource: Resource,
) -> Result<SdkMeterProvider, OtlpError> {
    let mut provider = SdkMeterProvider::builder()
        .with_resource(resource)
        .with_view(unbounded);
    if let Some(url) = &settings.metrics {
        let exporter = MetricExporter::builder()
            .with_http()
            .with_endpoint(url)
            .with_http_client(Client::new(post))
            .build()?;
        let mut reader = PeriodicReader::builder(exporter);
        if is_unset("OTEL_METRIC_EXPORT_INTERVAL") {
            reader = reader.with_interval(settings.metrics_interval);
        }
        provider = provider.with_reader(reader.build());
    }
    Ok(provider.build())
}

fn is_unset(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value.is_empty())
}

/// What the environment says of this process; by itself it is called `fuseline`.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let name = said.iter().find(|(key, _)| key.as_str() == "service.name");
    let is_named = name.is_some_and(|(_, name)| !name.as_str().starts_with("unknown_service"));
    if is_named {
        said
    } else {
        Resource::builder().with_service_name(SCOPE).build()
    }
}

fn unbounded(instrument: &Instrument) -> Option<Stream> {
    matches!(
        instrument.kind(),
        InstrumentKind::ObservableCounter | InstrumentKind::ObservableGauge
    )
    .then(|| {
        Stream::builder()
            .with_cardinality_limit(MAX_SERIES)
            .build()
            .ok()
    })
    .flatten()
}
