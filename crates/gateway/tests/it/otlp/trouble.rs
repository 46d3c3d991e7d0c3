//! A collector that is away, slow or unwilling: no call is hurt, the log says it once, and a shutdown ends.

use std::io::Write as _;
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_gateway::config::{Config, Overrides, Report, Sources};
use fuseline_mock::{Mock, Reply};
use http::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::{Collector, otlp};
use crate::logs::{Lines, filtered_log};
use crate::support::{chat, gateway, openai, route, send, until, within};

/// Makes so many calls, and tells how long one took on the average.
async fn calls(gateway: &Gateway, count: u32) -> Duration {
    let began = Instant::now();
    for _ in 0..count {
        assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    }
    began.elapsed() / count
}

#[tokio::test]
async fn a_collector_that_is_away_or_silent_costs_no_call_anything_and_no_shutdown_hangs() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let providers = format!("{}{}", openai("a", &mock.url()), route(&["a"]));
    let alone = gateway(&providers).await;
    calls(&alone, 20).await;
    let usual = calls(&alone, 200).await;
    // One refuses connections. The other takes them and says nothing, until the queue of 2048 spans is full.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for (url, count) in [("http://127.0.0.1:9", 100), (silent.as_str(), 1_050)] {
        let exporting = gateway(&format!("{}{providers}", otlp(url))).await;
        let took = calls(&exporting, count).await;
        let most = usual * 3 + Duration::from_millis(2);
        assert!(took < most, "{took:?} instead of {usual:?} with {url}");
        let began = Instant::now();
        if url == silent {
            // Dropped: whoever drops it does not wait for the exporter.
            drop(exporting);
            assert!(began.elapsed() < Duration::from_secs(1));
        } else {
            within(exporting.shutdown()).await;
            assert!(began.elapsed() < Duration::from_secs(7));
        }
    }
}

#[tokio::test]
async fn an_outage_of_the_collector_is_two_lines_in_the_log() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(filtered_log(&lines, "off,fuseline=trace"));
    let told = |what: &str| -> Vec<Value> {
        let has = |line: &Value| {
            let said = line["message"].as_str();
            said.is_some_and(|said| said.contains(what))
        };
        lines.all().into_iter().filter(has).collect()
    };

    let mock = Mock::start(Reply::ok()).await.unwrap();
    let collector = Collector::start().await;
    collector.answer(StatusCode::BAD_REQUEST);
    let text = format!(
        "{}{}{}",
        otlp(&collector.url),
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    calls(&gateway, 3).await;
    until(async || collector.raw().len() > 6).await;
    assert_eq!(told("takes no spans").len(), 1);
    assert_eq!(
        told("takes no spans")[0]["why"],
        "it answered 400 Bad Request"
    );
    collector.answer(StatusCode::OK);
    until(async || !told("takes spans and metrics again").is_empty()).await;
    assert!(
        told("takes spans and metrics again")[0]["failed"]
            .as_u64()
            .unwrap()
            > 5
    );
    assert_eq!(told("takes no spans").len(), 1);
}

fn report(text: &str, overrides: &Overrides) -> Report {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{text}").unwrap();
    let sources = Sources {
        file: Some(file.path()),
        overrides,
        env: &|_| None,
    };
    sources.load()
}

fn load(text: &str, overrides: &Overrides) -> Result<Config, Vec<String>> {
    let report = report(text, overrides);
    let findings = report.findings.iter().map(ToString::to_string).collect();
    report.config.ok_or(findings)
}

#[test]
fn the_environment_stands_above_the_file_and_switches_it_off() {
    let url = |text: &str| Some(text.to_owned());
    let file = "[otlp]\nendpoint = \"http://file:1/\"\n";
    let none = Overrides::default();
    assert_eq!(load("", &none).unwrap().otlp.traces, None);
    let of_file = load(file, &none).unwrap().otlp;
    assert_eq!(of_file.traces, url("http://file:1/v1/traces"));
    assert_eq!(of_file.metrics, url("http://file:1/v1/metrics"));
    let over = Overrides {
        otlp_endpoint: url("https://env:2"),
        otlp_metrics_endpoint: url("https://env:3/own"),
        otlp_traces_endpoint: url(""),
        ..Overrides::default()
    };
    for text in ["", file] {
        let otlp = load(text, &over).unwrap().otlp;
        assert_eq!(otlp.traces, url("https://env:2/v1/traces"));
        assert_eq!(otlp.metrics, url("https://env:3/own"));
    }
    for (said, is_off) in [("true", true), ("TRUE", true), ("1", false), ("", false)] {
        let off = Overrides {
            otel_sdk_disabled: url(said),
            ..over.clone()
        };
        let otlp = load(file, &off).unwrap().otlp;
        assert_eq!(
            (otlp.traces.is_none(), otlp.metrics.is_none()),
            (is_off, is_off),
            "{said}"
        );
    }
    let wrong = Overrides {
        otlp_endpoint: url("https://user:secret@host"),
        ..Overrides::default()
    };
    let told = load("", &wrong).unwrap_err();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("--otlp-endpoint: is no URL of a collector"),
        "{told:?}"
    );
    assert!(!told[0].contains("secret"), "{told:?}");
}

#[test]
fn the_environment_chooses_by_signal_whether_otlp_exports() {
    let name = |text: &str| Some(text.to_owned());
    let file = "[otlp]\nendpoint = \"http://file:1\"\n";
    for (exporter, is_exported, is_noted) in [
        (None, true, false),
        (name(""), true, false),
        (name("otlp"), true, false),
        (name("console, otlp"), true, false),
        (name("none"), false, false),
        (name("prometheus"), false, true),
    ] {
        let of_traces = Overrides {
            otel_traces_exporter: exporter.clone(),
            ..Overrides::default()
        };
        let of_metrics = Overrides {
            otel_metrics_exporter: exporter.clone(),
            ..Overrides::default()
        };
        for (over, is_traces) in [(of_traces, true), (of_metrics, false)] {
            let report = report(file, &over);
            let otlp = report.config.unwrap().otlp;
            let (own, other) = match is_traces {
                true => (otlp.traces, otlp.metrics),
                false => (otlp.metrics, otlp.traces),
            };
            assert_eq!(own.is_some(), is_exported, "{exporter:?}");
            assert!(other.is_some(), "{exporter:?} is of one signal alone");
            let notes: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            let is_told = notes
                .iter()
                .any(|note| note.contains("-exporter: nothing is exported"));
            assert_eq!(is_told, is_noted, "{exporter:?}: {notes:?}");
        }
    }
}
