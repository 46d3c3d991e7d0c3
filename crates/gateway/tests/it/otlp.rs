//! What is exported over OTLP: spans with their parents and attributes, metrics that are those of the Prometheus page, and
//! nothing that hurts a call.

mod collector;
mod trouble;

use std::collections::BTreeMap;

use bytes::Bytes;
use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Request;
use http_body_util::Full;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use tokio::time::Instant;

pub(crate) use collector::Collector;
use collector::{hex, text};

use crate::support::{chat, gateway, get, openai, route, send, stream};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Everything at once is exported every 20 ms.
fn otlp(url: &str) -> String {
    format!(
        "[otlp]\nendpoint = \"{url}\"\ntraces_interval = \"20ms\"\nmetrics_interval = \"20ms\"\n"
    )
}

/// A call within its caller's trace.
fn traced(mut call: Request<Full<Bytes>>, flags: &str) -> Request<Full<Bytes>> {
    let parent = format!("00-{TRACE}-{CALLER}-{flags}");
    let headers = call.headers_mut();
    headers.insert("traceparent", parent.parse().unwrap());
    headers.insert("tracestate", "vendor=1".parse().unwrap());
    call
}

fn code(span: &Span) -> StatusCode {
    span.status
        .as_ref()
        .map_or(StatusCode::Unset, |status| status.code())
}

fn one(spans: &[Span], is_it: impl Fn(&Span) -> bool) -> &Span {
    let mut found = spans.iter().filter(|span| is_it(span));
    let span = found.next().unwrap_or_else(|| panic!("{spans:#?}"));
    assert!(found.next().is_none(), "{spans:#?}");
    span
}

fn goes_to<'s>(spans: &'s [Span], provider: &str) -> &'s Span {
    let is_attempt = |span: &Span| {
        span.kind() == SpanKind::Client && text(&span.attributes, "fuseline.provider") == provider
    };
    one(spans, is_attempt)
}

#[tokio::test]
async fn a_call_is_a_span_in_its_callers_trace_with_a_child_for_each_attempt() {
    let used = r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"so"}}],"usage":{"prompt_tokens":1000,"completion_tokens":200}}"#;
    let (down, up) = (
        Mock::start(Reply::status(503)).await.unwrap(),
        Mock::start(Reply::ok().body(used)).await.unwrap(),
    );
    let collector = Collector::start().await;
    let priced = "[[routes]]\nmodel = \"m\"\nretries = 0\ntargets = [{ provider = \"a\" }, { provider = \"b\", model = \"n\", price = { input = 2, output = 10 } }]\n";
    let text_of = format!(
        "{}{}{}{priced}",
        otlp(&collector.url),
        openai("a", &down.url()),
        openai("b", &up.url())
    );
    let gateway = gateway(&text_of).await;
    let answer = send(gateway.addr(), traced(chat(), "01")).await;
    assert_eq!(answer.status, 200);
    let spans = collector.wait_for_spans(3).await;
    assert_eq!(spans.len(), 3);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));

    let call = one(&spans, |span| span.kind() == SpanKind::Server);
    assert_eq!(
        (call.name.as_str(), hex(&call.parent_span_id).as_str()),
        ("chat m", CALLER)
    );
    assert_eq!(
        (code(call), call.trace_state.as_str()),
        (StatusCode::Unset, "vendor=1")
    );
    let said = |key: &str| text(&call.attributes, key);
    assert_eq!(
        said("fuseline.request_id"),
        answer.header("x-fuseline-request-id")
    );
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "m"),
        ("http.response.status_code", "200"),
        ("fuseline.outcome", "success"),
        ("fuseline.target", "b/n"),
        ("fuseline.breaker_state", "closed"),
        ("fuseline.attempts", "2"),
        ("fuseline.fallback", "true"),
        ("fuseline.cost", "0.004"),
        // Whoever adds tokens up counts none twice.
        ("gen_ai.usage.input_tokens", ""),
        ("error.type", ""),
    ] {
        assert_eq!(said(key), value, "{key}");
    }
    assert!(said("fuseline.why").contains("a/m: overloaded"), "{call:?}");

    let (failed, good) = (goes_to(&spans, "a"), goes_to(&spans, "b"));
    for (span, mock, name) in [(failed, &down, "chat m"), (good, &up, "chat n")] {
        assert_eq!(
            (span.name.as_str(), &span.parent_span_id),
            (name, &call.span_id)
        );
        assert!(span.start_time_unix_nano >= call.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= call.end_time_unix_nano);
        let sent = &mock.requests()[0].headers;
        let of = |name: &str| {
            let found = sent.iter().find(|(other, _)| other.as_str() == name);
            String::from_utf8_lossy(&found.unwrap().1).into_owned()
        };
        let parent = format!("00-{TRACE}-{}-01", hex(&span.span_id));
        assert_eq!(
            (of("traceparent"), of("tracestate")),
            (parent, "vendor=1".to_owned())
        );
        let said = |key: &str| text(&span.attributes, key);
        assert_eq!(said("gen_ai.provider.name"), "openai");
        assert_eq!(said("server.address"), "127.0.0.1");
        assert_eq!(said("server.port"), mock.addr().port().to_string());
    }
    let said = |key: &str| text(&failed.attributes, key);
    assert_eq!(code(failed), StatusCode::Error);
    assert_eq!(
        (said("error.type"), said("http.response.status_code")),
        ("overloaded".into(), "503".into())
    );
    let said = |key: &str| text(&good.attributes, key);
    assert_eq!(code(good), StatusCode::Unset);
    assert_eq!(
        (
            said("gen_ai.usage.input_tokens"),
            said("gen_ai.usage.output_tokens")
        ),
        ("1000".into(), "200".into())
    );
}

#[tokio::test]
async fn a_refused_call_a_stream_and_a_trace_of_our_own() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"so\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let script = Script::always(Reply::status(500))
        .rule(Rule::model("m").reply(Reply::ok().chunks([token])));
    let mock = Mock::start(script).await.unwrap();
    let collector = Collector::start().await;
    let quick = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\n";
    let gateway = gateway(&format!(
        "{}{}{}{quick}",
        otlp(&collector.url),
        openai("a", &mock.url()),
        route(&["a"])
    ))
    .await;
    send(gateway.addr(), stream()).await;
    let broken = || crate::support::post(crate::support::CHAT, r#"{"model":"n","messages":[]}"#);
    send(gateway.addr(), broken()).await;
    assert_eq!(send(gateway.addr(), broken()).await.status, 503);
    // No call, and no span.
    send(gateway.addr(), get("/v1/models")).await;
    let spans = collector.wait_for_spans(5).await;
    gateway.shutdown().await;
    assert_eq!(collector.spans().len(), 5);
    let calls: Vec<&Span> = spans
        .iter()
        .filter(|span| span.kind() == SpanKind::Server)
        .collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|span| span.parent_span_id.is_empty()));
    let traces: std::collections::BTreeSet<_> = calls.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 3);
    let refused = one(&spans, |span| {
        text(&span.attributes, "fuseline.outcome") == "rejected"
    });
    let said = |key: &str| text(&refused.attributes, key);
    assert_eq!(code(refused), StatusCode::Error);
    assert_eq!(
        (said("error.type"), said("fuseline.breaker_state")),
        ("local".into(), "open".into())
    );
    assert!(
        !spans
            .iter()
            .any(|span| span.parent_span_id == refused.span_id)
    );
    let streamed = one(&spans, |span| {
        !text(&span.attributes, "gen_ai.request.stream").is_empty()
    });
    let said = |key: &str| text(&streamed.attributes, key);
    assert_eq!(
        (
            said("gen_ai.usage.input_tokens"),
            said("gen_ai.usage.output_tokens"),
            said("http.response.status_code")
        ),
        ("3".into(), "2".into(), "200".into())
    );
    // The clock has steps of 4 ms.
    let first_chunk: f64 = said("gen_ai.response.time_to_first_chunk").parse().unwrap();
    assert!((0.0..5.0).contains(&first_chunk), "{first_chunk}");
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_keep_goes_on_unexported_and_is_counted() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let collector = Collector::start().await;
    let text_of = format!(
        "{}{}{}",
        otlp(&collector.url),
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text_of).await;
    send(gateway.addr(), traced(chat(), "00")).await;
    gateway.shutdown().await;
    assert!(collector.spans().is_empty());
    let calls = &collector.metrics()["call_seconds"].counts;
    assert_eq!(calls.values().sum::<u64>(), 1);
    let sent = format!("{:?}", mock.requests()[0].headers);
    assert!(
        sent.contains(&format!("00-{TRACE}-")) && sent.contains("-00\""),
        "{sent}"
    );
    assert!(!sent.contains(CALLER), "{sent}");
}

#[tokio::test]
async fn without_a_collector_a_callers_trace_passes_as_it_came() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    send(gateway.addr(), traced(chat(), "01")).await;
    let sent = format!("{:?}", mock.requests()[0].headers);
    assert!(sent.contains(&format!("00-{TRACE}-{CALLER}-01")), "{sent}");
}

/// Series of the Prometheus page by metric, without `_total` and with their labels sorted.
fn of_page(page: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut metrics = BTreeMap::<String, BTreeMap<String, f64>>::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
        labels.sort_unstable();
        let name = name.strip_suffix("_total").unwrap_or(name).to_owned();
        let series = metrics.entry(name).or_default();
        series.insert(labels.join(","), value.parse().unwrap());
    }
    metrics
}

#[tokio::test]
async fn the_metrics_are_those_of_the_page() {
    let script = Script::always(Reply::ok())
        .rule(Rule::model("broken").reply(Reply::status(500)))
        .rule(Rule::model("wrong").reply(Reply::status(400)));
    let mock = Mock::start(script).await.unwrap();
    let collector = Collector::start().await;
    let text_of = format!(
        "{}{}{}",
        otlp(&collector.url),
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text_of).await;
    for model in ["m", "broken", "wrong"] {
        for _ in 0..7 {
            let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
            send(
                gateway.addr(),
                crate::support::post(crate::support::CHAT, body),
            )
            .await;
        }
    }
    send(gateway.addr(), stream()).await;
    let settled = async || {
        let page = send(gateway.admin_addr(), get("/metrics")).await.body;
        let page = String::from_utf8(page.to_vec()).unwrap();
        page.lines()
            .any(|line| line == "call_seconds_count 22")
            .then_some(page)
    };
    crate::support::until(async || settled().await.is_some()).await;
    let page = of_page(&settled().await.unwrap());
    gateway.shutdown().await;
    let exported = collector.metrics();
    let mut compared = 0;
    for (name, series) in &page {
        let histogram = ["_count", "_sum", "_bucket"].iter().find_map(|end| {
            name.strip_suffix(end)
                .filter(|base| exported.contains_key(*base))
        });
        if let Some(base) = histogram {
            let count = exported[base].counts.values().sum::<u64>() as f64;
            if name.ends_with("_count") {
                assert_eq!(count, series[""], "{name}");
                compared += 1;
            }
            continue;
        }
        let metric = exported
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not exported"));
        let keys = |of: &BTreeMap<String, f64>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&metric.values), keys(series), "{name}");
        for (labels, value) in series {
            let told = metric.values[labels];
            // One breaker is open, and time goes on.
            let slack = if name.ends_with("_seconds") { 5.0 } else { 0.0 };
            assert!(
                (told - value).abs() <= slack,
                "{name}{{{labels}}} {told} {value}"
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
    assert!(exported["calls"].is_monotonic && !exported["breaker_state"].is_monotonic);
    // Everything else that is exported is the conventions'.
    for name in exported.keys().filter(|name| !page.contains_key(*name)) {
        let is_histogram = page.contains_key(&format!("{name}_count"));
        assert!(is_histogram || name.starts_with("gen_ai.client."), "{name}");
    }
    let attempts = &exported["gen_ai.client.operation.duration"];
    assert_eq!(attempts.counts.values().sum::<u64>(), mock.hits());
    assert!(*attempts.bounds.last().unwrap() > 600.0);
    let broken = attempts
        .counts
        .iter()
        .find(|(labels, _)| labels.contains("server_error"));
    let (labels, count) = broken.unwrap();
    assert_eq!(*count, 5);
    assert_eq!(
        labels,
        "error.type=\"server_error\",fuseline.provider=\"a\",gen_ai.operation.name=\"chat\",gen_ai.provider.name=\"openai\",gen_ai.request.model=\"broken\""
    );
}

#[tokio::test]
async fn a_flood_of_calls_begins_so_many_traces_a_second_and_goes_on_in_its_callers() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let collector = Collector::start().await;
    let gateway = gateway(&format!(
        "{}traces_per_second = 1\n{}{}",
        otlp(&collector.url),
        openai("a", &mock.url()),
        route(&["a"])
    ))
    .await;
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    }
    let own = began.elapsed().as_secs() as usize + 2;
    for _ in 0..5 {
        send(gateway.addr(), traced(chat(), "01")).await;
    }
    let is_theirs = |span: &&Span| hex(&span.trace_id) == TRACE;
    let spans = loop {
        let spans = collector.wait_for_spans(12).await;
        if spans.iter().filter(is_theirs).count() == 10 {
            break spans;
        }
        tokio::task::yield_now().await;
    };
    // Two of a call.
    let begun = (spans.len() - 10) / 2;
    assert!((1..=own).contains(&begun), "{begun} of at most {own}");
}
