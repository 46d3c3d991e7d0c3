//! A collector that takes OTLP over HTTP as the protocol has it, and keeps what came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

use crate::support::{spawn, until};

/// Path, the header `x-key`, body.
type Letter = (String, String, Bytes);

/// Everything that came, in its order.
#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) url: String,
    letters: Arc<Mutex<Vec<Letter>>>,
    status: Arc<Mutex<StatusCode>>,
}

/// A metric as it was exported last: each series by its labels, sorted; of a histogram its count, sum and bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metric {
    pub(crate) is_monotonic: bool,
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) bounds: Vec<f64>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            letters: Arc::default(),
            status: Arc::new(Mutex::new(StatusCode::OK)),
        };
        let serving = collector.clone();
        spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = serving.clone();
                let service = service_fn(move |request| serving.clone().take(request));
                let http = hyper::server::conn::http1::Builder::new();
                spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        collector
    }

    async fn take(self, request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
        let path = request.uri().path().to_owned();
        assert_eq!(request.method(), "POST");
        assert_eq!(request.headers()["content-type"], "application/x-protobuf");
        let key = request.headers().get("x-key");
        let key = key.map_or("", |key| key.to_str().unwrap()).to_owned();
        let body = request.into_body().collect().await?.to_bytes();
        self.letters.lock().unwrap().push((path, key, body));
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = *self.status.lock().unwrap();
        Ok(answer)
    }

    /// From now on it answers so.
    pub(crate) fn answer(&self, status: StatusCode) {
        *self.status.lock().unwrap() = status;
    }

    pub(crate) fn raw(&self) -> Vec<Letter> {
        self.letters.lock().unwrap().clone()
    }

    /// Bodies that came to this path.
    fn at(&self, path: &str) -> Vec<Bytes> {
        let letters = self.raw().into_iter().filter(|(at, ..)| at == path);
        letters.map(|(.., body)| body).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for body in self.at("/v1/traces") {
            for resource in ExportTraceServiceRequest::decode(body)
                .unwrap()
                .resource_spans
            {
                let about = resource.resource.unwrap().attributes;
                assert_eq!(text(&about, "service.name"), "fuseline");
                for scope in resource.scope_spans {
                    assert_eq!(scope.scope.unwrap().name, "fuseline");
                    spans.extend(scope.spans);
                }
            }
        }
        spans
    }

    pub(crate) async fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        until(async || self.spans().len() >= count).await;
        self.spans()
    }

    /// The metrics of the last export, by name.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        let Some(body) = self.at("/v1/metrics").pop() else {
            return BTreeMap::new();
        };
        let export = ExportMetricsServiceRequest::decode(body).unwrap();
        let scopes = export
            .resource_metrics
            .into_iter()
            .flat_map(|of| of.scope_metrics);
        let metrics = scopes.flat_map(|scope| scope.metrics);
        metrics
            .map(|metric| {
                let name = metric.name.clone();
                (name, read(metric.data.unwrap()))
            })
            .collect()
    }
}

fn read(data: Data) -> Metric {
    let mut metric = Metric::default();
    let points = match data {
        Data::Sum(sum) => {
            metric.is_monotonic = sum.is_monotonic;
            sum.data_points
        }
        Data::Gauge(gauge) => gauge.data_points,
        Data::Histogram(histogram) => {
            for point in histogram.data_points {
                let labels = labels(&point.attributes);
                metric.counts.insert(labels.clone(), point.count);
                metric.values.insert(labels, point.sum.unwrap());
                metric.bounds = point.explicit_bounds;
            }
            return metric;
        }
        other => panic!("{other:?}"),
    };
    for point in points {
        let Some(Number::AsDouble(value)) = point.value else {
            panic!("{point:?}");
        };
        metric.values.insert(labels(&point.attributes), value);
    }
    metric
}

/// As on the Prometheus page, but sorted.
pub(crate) fn labels(attributes: &[KeyValue]) -> String {
    let mut labels: Vec<String> = attributes
        .iter()
        .map(|pair| format!("{}=\"{}\"", pair.key, shown(pair.value.as_ref())))
        .collect();
    labels.sort();
    labels.join(",")
}

fn shown(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        other => panic!("{other:?}"),
    }
}

/// An attribute as text; empty where there is none.
pub(crate) fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|pair| pair.key == key);
    found.map_or_else(String::new, |pair| shown(pair.value.as_ref()))
}

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
