//! A secret in every place that can hold one, and every output of the program searched for them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Request;
use serde_json::Value;

use crate::otlp::Collector;
use crate::support::{post, send, until};

/// What every secret begins with, so that no part of one is overlooked, however it is coded.
const SECRET: &str = "canary";
/// The key in a base URL, as it stands there.
const IN_THE_BASE: &str = "canary%2Fin%2Bthe-base";

/// The program at its most talkative, and everything that it wrote.
struct Talkative {
    child: Child,
    said: Arc<Mutex<String>>,
    listen: SocketAddr,
    admin: SocketAddr,
}

impl Talkative {
    fn start(config: &std::path::Path, format: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fuseline"))
            .args([
                "serve",
                "--log",
                "trace",
                "--log-format",
                format,
                "--config",
            ])
            .arg(config)
            .env("KEY", "canary-of-the-environment")
            .env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "x-key=canary-of-the-collector",
            )
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::<Mutex<String>>::default();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let serving = loop {
            let line = lines.next().unwrap().unwrap();
            *said.lock().unwrap() += &format!("{line}\n");
            if line.contains("serving") {
                break line;
            }
        };
        let mut errors = child.stderr.take().unwrap();
        let (heard, also_heard) = (Arc::clone(&said), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *heard.lock().unwrap() += &format!("{line}\n");
            }
        });
        std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            *also_heard.lock().unwrap() += &text;
        });
        // `"listen":"..."` or `listen=...`
        let words = serving
            .split(['"', '=', ',', ' ', ':'])
            .filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        let address = |key: &str| {
            let at = words.iter().position(|word| *word == key).unwrap();
            format!("{}:{}", words[at + 1], words[at + 2])
                .parse()
                .unwrap()
        };
        let (listen, admin) = (address("listen"), address("admin_listen"));
        Self {
            child,
            said,
            listen,
            admin,
        }
    }
}

impl Drop for Talkative {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn report_142_and_143_no_output_holds_a_secret_at_trace_level_in_either_format() {
    for format in ["json", "human"] {
        searched(format).await;
    }
}

async fn searched(format: &str) {
    let quoting = Reply::status(401).body(
        r#"{"error":{"message":"Incorrect API key provided: sk-proj-canary0123456789abcdef."}}"#,
    );
    // What a provider says of its own address is its caller's, and nobody else's.
    let echo = format!(r#"{{"error":{{"message":"no luck at /v1/chat?key={IN_THE_BASE}"}}}}"#);
    let echoing = Reply::status(500).body(echo);
    let moving = Reply::status(307).header("location", "/v2?key=canary-in-the-location");
    let failing = Reply::status(500).header("set-cookie", "canary-in-the-answer");
    let script = Script::always(failing)
        .rule(Rule::model("quoted").reply(quoting))
        .rule(Rule::model("echoed").reply(echoing))
        .rule(Rule::model("moved").reply(moving));
    let mock = Mock::start(script).await.unwrap();
    let mute = Mock::start(Reply::stall()).await.unwrap();
    let collector = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("fuseline.toml");
    std::fs::write(folder.path().join("key"), "canary-of-the-file").unwrap();
    let text = format!(
        r#"listen = "127.0.0.1:0"
admin_listen = "127.0.0.1:0"
admin_token = "canary-admin-token"
client_tokens = ["canary-client-token"]
state = "off"
[[webhooks]]
url = "{url}/canary-webhook"
[otlp]
endpoint = "{collector}"
traces_interval = "50ms"
metrics_interval = "50ms"
[providers.a]
protocol = "openai"
base_url = "{url}/v1?key={IN_THE_BASE}"
api_key = "canary-provider-key"
[providers.gone]
protocol = "openai"
base_url = "http://127.0.0.1:9/v1?key={IN_THE_BASE}"
api_key = {{ env = "KEY" }}
[providers.secured]
protocol = "openai"
base_url = "https://{addr}/v1?key={IN_THE_BASE}"
api_key = {{ file = "key" }}
[providers.mute]
protocol = "openai"
base_url = "{mute}/v1?key={IN_THE_BASE}"
api_key = "canary-provider-key"
timeouts = {{ answer = "100ms" }}
[[routes]]
model = "*"
retries = 0
targets = [{{ provider = "a" }}, {{ provider = "gone" }}, {{ provider = "secured" }}, {{ provider = "mute" }}]
[[routes]]
model = "alone-*"
retries = 0
targets = [{{ provider = "mute" }}]
"#,
        url = mock.url(),
        mute = mute.url(),
        collector = collector.url,
        addr = mock.addr(),
    );
    std::fs::write(&config, text).unwrap();
    let program = Talkative::start(&config, format);
    let mut outputs = Vec::new();
    for model in [
        "m", "alone-m", "echoed", "moved", "quoted", "m", "m", "m", "m", "m",
    ] {
        let body = format!(r#"{{"model":"{model}","user":"canary-in-the-body","messages":[]}}"#);
        let mut call = post("/v1/chat/completions?key=canary-in-the-query", body);
        let token = "Bearer canary-client-token".parse().unwrap();
        call.headers_mut().insert("authorization", token);
        for name in [
            "cookie",
            "proxy-authorization",
            "x-api-key",
            "api-key",
            "x-goog-api-key",
            "x-amz-security-token",
        ] {
            let secret = "canary-of-the-caller".parse().unwrap();
            call.headers_mut().insert(name, secret);
        }
        let answer = send(program.listen, call).await;
        let mut headers = answer.headers.clone();
        // It is the caller's.
        headers.remove("set-cookie");
        let mut head = format!("{headers:?}");
        if !matches!(model, "quoted" | "echoed") {
            head += &String::from_utf8_lossy(&answer.body);
        }
        outputs.push(head);
    }
    let mut strange = post("/v1/chat/completions", "{}");
    strange
        .headers_mut()
        .insert("x-api-key", "canary-of-the-caller".parse().unwrap());
    outputs.push(format!("{:?}", send(program.listen, strange).await));
    let admin = |path: &str| {
        let request = Request::get(path).header("host", "127.0.0.1");
        let request = request.header("authorization", "Bearer canary-admin-token");
        send(program.admin, request.body(Default::default()).unwrap())
    };
    for path in [
        "/metrics",
        "/config",
        "/breakers",
        "/breakers/a%2Fm",
        "/breakers/none",
    ] {
        outputs.push(format!("{:?}", admin(path).await));
    }
    until(async || {
        mock.requests()
            .iter()
            .any(|request| request.target.contains("webhook"))
    })
    .await;
    for args in [
        &["check"][..],
        &["status"],
        &["why", "a/m"],
        &["force", "closed", "a"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fuseline"))
            .env("FUSELINE_ADMIN_LISTEN", program.admin.to_string())
            .env("KEY", "canary-of-the-environment")
            .current_dir(folder.path())
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        outputs.push(String::from_utf8_lossy(&output.stdout).into_owned());
        outputs.push(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    until(async || {
        program
            .said
            .lock()
            .unwrap()
            .contains("forced by an operator")
    })
    .await;
    let said = program.said.lock().unwrap().clone();
    assert!(
        said.contains("invalid_api_key") || said.contains("auth"),
        "{said}"
    );
    let is_json = said
        .lines()
        .all(|line| serde_json::from_str::<Value>(line).is_ok());
    assert_eq!(is_json, format == "json", "{said}");
    // What is needed to find a mistake is there.
    for part in [
        "redirect",
        "timeout",
        "network",
        "127.0.0.1",
        "/v1/chat/completions",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    outputs.push(said);
    // What is exported is text between lengths: a secret in it would be found as it stands.
    until(async || collector.spans().len() > 8 && collector.metrics().contains_key("calls")).await;
    for (path, key, body) in collector.raw() {
        assert_eq!(key, "canary-of-the-collector", "{path}");
        outputs.push(String::from_utf8_lossy(&body).into_owned());
    }
    for output in outputs {
        assert!(!output.contains(SECRET), "{output}");
    }
}
