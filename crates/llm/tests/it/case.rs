//! A recorded shape, how it is put to the classifier, and whether the verdict is right.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use fuseline_llm::{
    Answer, Body, Classifier, Ending, Event, Fault, Head, Operation, Transcript, Verdict,
};
use serde::Deserialize;
use serde_json::Value;

/// Mon, 30 Nov 2026 12:00:00 GMT, the clock of all cases.
pub(crate) const NOW: Duration = Duration::from_secs(1_796_040_000);

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) provider: String,
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: String,
    pub(crate) stream: Option<Vec<String>>,
    pub(crate) stream_format: Option<String>,
    pub(crate) transport: Option<String>,
    pub(crate) expect: Expect,
    #[serde(default)]
    pub(crate) alt: BTreeMap<String, Vec<Value>>,
    #[serde(default = "one")]
    pub(crate) retry_after_tolerance_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Expect {
    pub(crate) kind: String,
    pub(crate) provider_fault: bool,
    pub(crate) retryable: bool,
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) scope: String,
}

fn one() -> u64 {
    1
}

pub(crate) fn all() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(read);
    &CASES
}

fn read() -> Vec<Case> {
    let text = include_str!("../../../../conformance/errors.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

impl Case {
    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict_by(Classifier::builtin(), &self.provider)
    }

    pub(crate) fn verdict_by(&self, classifier: &Classifier, provider: &str) -> Verdict {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let headers = headers.as_slice();
        let mut transcript = Transcript::default();
        for (name, data) in self.events() {
            transcript.note(&Event {
                name: &name,
                data: &data,
            });
        }
        let body = match self.stream {
            Some(_) => Body::Stream(&transcript),
            None => Body::Whole(self.body.as_bytes()),
        };
        let answer = Answer {
            provider,
            operation: Operation::Create,
            head: self.status.map(|status| Head::new(status, &headers)),
            body,
            ending: self.ending(),
        };
        classifier.classify(&answer, SystemTime::UNIX_EPOCH + NOW)
    }

    fn ending(&self) -> Ending {
        Ending::Broken(match self.transport.as_deref() {
            None | Some("eof") => return Ending::Complete,
            Some("client_abort") => return Ending::Left,
            Some("dns_failure") => Fault::Dns,
            Some("connect_refused") => Fault::Refused,
            Some("connect_timeout") => Fault::ConnectTimeout,
            Some("tls_handshake") => Fault::Tls,
            Some("reset" | "reset_before_headers") => Fault::Reset,
            Some("read_timeout_before_headers") => Fault::Deadline,
            Some("http2_goaway") => Fault::NotProcessed,
            Some("idle_timeout") => Fault::Stall,
            Some(other) => panic!("{}: {other} is no transport", self.id),
        })
    }

    /// The events of the chunks, by name and data.
    fn events(&self) -> Vec<(String, String)> {
        let chunks = self.stream.clone().unwrap_or_default();
        let whole = chunks.concat();
        match self.stream_format.as_deref() {
            None => Vec::new(),
            Some("sse") => whole.split("\n\n").map(sse_event).collect(),
            Some("ndjson") => whole
                .lines()
                .map(|line| (String::new(), line.to_owned()))
                .collect(),
            Some("json-array") => {
                let list: Vec<Value> = serde_json::from_str(&whole)
                    .or_else(|_| serde_json::from_str(&format!("{whole}]")))
                    .unwrap_or_default();
                list.iter()
                    .map(|value| (String::new(), value.to_string()))
                    .collect()
            }
            Some("aws-eventstream-decoded") => {
                chunks.iter().map(|chunk| aws_event(chunk)).collect()
            }
            Some(other) => panic!("{}: {other} is no framing", self.id),
        }
    }

    /// What is wrong with a verdict, field by field.
    pub(crate) fn mistakes(&self, verdict: &Verdict) -> Vec<String> {
        let expect = &self.expect;
        let kind = verdict.kind.map_or("success", |kind| kind.as_str());
        let mut wrong = Vec::new();
        let mut check = |field: &str, got: Value, want: Value, same: bool| {
            let is_other = self
                .alt
                .get(field)
                .is_some_and(|others| others.contains(&got));
            if !same && !is_other {
                wrong.push(format!("{field}: {got}, not {want}"));
            }
        };
        check(
            "kind",
            kind.into(),
            expect.kind.clone().into(),
            kind == expect.kind,
        );
        let fault = verdict.provider_fault;
        check(
            "provider_fault",
            fault.into(),
            expect.provider_fault.into(),
            fault == expect.provider_fault,
        );
        let retryable = verdict.retryable;
        check(
            "retryable",
            retryable.into(),
            expect.retryable.into(),
            retryable == expect.retryable,
        );
        let scope = verdict.scope.as_str();
        let matters =
            !["bad_request", "context_length", "content_policy", "success"].contains(&kind);
        check(
            "scope",
            scope.into(),
            expect.scope.clone().into(),
            scope == expect.scope || !matters,
        );
        let wait = verdict.retry_after.map(|wait| wait.as_millis() as u64);
        let same = match (wait, expect.retry_after_ms) {
            (Some(got), Some(want)) => got.abs_diff(want) <= self.retry_after_tolerance_ms,
            (got, want) => got == want,
        };
        check(
            "retry_after_ms",
            wait.into(),
            expect.retry_after_ms.into(),
            same,
        );
        wrong
    }
}

fn sse_event(block: &str) -> (String, String) {
    let mut event = (String::new(), String::new());
    for line in block.lines() {
        match line.split_once(':') {
            Some(("event", name)) => name.trim().clone_into(&mut event.0),
            Some(("data", data)) => data.trim_start().clone_into(&mut event.1),
            // Some llama.cpp builds.
            Some(("error", data)) => event = ("error".to_owned(), data.trim_start().to_owned()),
            _ => {}
        }
    }
    event
}

fn aws_event(frame: &str) -> (String, String) {
    let frame: Value = serde_json::from_str(frame).unwrap();
    let headers = &frame["headers"];
    let name = headers[":exception-type"]
        .as_str()
        .or_else(|| headers[":event-type"].as_str())
        .unwrap();
    (
        name.to_owned(),
        frame["payload"].as_str().unwrap().to_owned(),
    )
}
