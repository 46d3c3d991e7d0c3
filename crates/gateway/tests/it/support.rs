//! What the tests share: a gateway from a few lines of configuration, and a caller that sees every byte.

use std::future::Future;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fuseline_gateway::Gateway;
use fuseline_gateway::config::{Config, Overrides, Sources};
use http::header::HeaderMap;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Longer than anything here takes, shorter than a test run may hang.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Reads a configuration with both listeners on free ports, and without state.
pub(crate) fn config(text: &str) -> Config {
    config_with("off", text)
}

/// The same with this `state`.
pub(crate) fn config_with(state: &str, text: &str) -> Config {
    let head =
        format!("listen = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\nstate = {state:?}\n");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{head}{text}").unwrap();
    let sources = Sources {
        file: Some(file.path()),
        overrides: &Overrides::default(),
        env: &|_| None,
    };
    let report = sources.load();
    report
        .config
        .unwrap_or_else(|| panic!("{:#?}", report.findings))
}

/// Starts a gateway with this configuration.
pub(crate) async fn gateway(text: &str) -> Gateway {
    Gateway::start(config(text)).await.unwrap()
}

/// A provider that speaks OpenAI's dialect, with its own key.
pub(crate) fn openai(name: &str, base_url: &str) -> String {
    provider(name, "openai", base_url)
}

pub(crate) fn provider(name: &str, protocol: &str, base_url: &str) -> String {
    format!(
        "[providers.{name}]\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\napi_key = \"key-of-{name}\"\n"
    )
}

/// A route for every model over these providers, each tried once.
pub(crate) fn route(providers: &[&str]) -> String {
    let targets: Vec<String> = providers
        .iter()
        .map(|name| format!("{{ provider = \"{name}\" }}"))
        .collect();
    format!(
        "[[routes]]\nmodel = \"*\"\nretries = 0\ntargets = [{}]\n",
        targets.join(", ")
    )
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Sends a request on a connection of its own and returns as soon as the head is there.
pub(crate) async fn open(addr: SocketAddr, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    spawn(async move { drop(connection.await) });
    within(sender.send_request(request)).await.unwrap()
}

/// Sends a request and waits for the whole answer.
pub(crate) async fn send(addr: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let (head, body) = open(addr, request).await.into_parts();
    let body = within(body.collect()).await.unwrap().to_bytes();
    Answer {
        status: head.status,
        headers: head.headers,
        body,
    }
}

/// A request with this body; `host` is there, since HTTP/1.1 asks for one.
pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(path)
        .header("host", "gateway")
        .header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path)
        .header("host", "gateway")
        .body(Full::default())
        .unwrap()
}

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// A call for an answer.
pub(crate) fn chat() -> Request<Full<Bytes>> {
    post(CHAT, r#"{"model":"m","messages":[]}"#)
}

/// A call for a stream.
pub(crate) fn stream() -> Request<Full<Bytes>> {
    post(CHAT, r#"{"model":"m","stream":true,"messages":[]}"#)
}

/// The breaker of this name as the admin listener shows it; null where there is none.
pub(crate) async fn breaker(gateway: &Gateway, name: &str) -> Value {
    let list = send(gateway.admin_addr(), get("/breakers")).await.json();
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|breaker| breaker["name"] == name)
        .cloned();
    found.unwrap_or_default()
}

/// Asks again and again until it is so.
pub(crate) async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    within(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future)
        .await
        .expect("it takes too long")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's tasks end with its runtime"
)]
pub(crate) fn spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(task)
}

/// Sends a process this signal.
pub(crate) fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// What runs a command with mounts of its own.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]);
    command
}

/// Whether this system lets processes have mounts of their own.
pub(crate) fn has_own_mounts() -> bool {
    let tried = apart().arg("true").stderr(Stdio::null()).status();
    tried.is_ok_and(|ended| ended.success())
}

/// A running `fuseline serve`; stopped at the end, however that comes.
pub(crate) struct Program {
    child: Child,
    /// Bytes of its log, as far as it was read.
    logged: Arc<AtomicUsize>,
    pub(crate) listen: String,
    pub(crate) admin: String,
}

impl Program {
    pub(crate) fn serve(config: &str) -> Self {
        Self::start(config, &["--state", "off"], "info", Stdio::inherit())
    }

    /// With the state that its configuration says.
    pub(crate) fn keeping(config: &str) -> Self {
        Self::start(config, &[], "info", Stdio::inherit())
    }

    /// With this much in its log.
    pub(crate) fn logging(level: &str, config: &str) -> Self {
        Self::start(config, &["--state", "off"], level, Stdio::inherit())
    }

    /// With its standard error elsewhere, where a panic would be told.
    pub(crate) fn telling(config: &str, errors: std::fs::File) -> Self {
        Self::start(config, &["--state", "off"], "info", errors.into())
    }

    /// Where this file stands in the place of the system's list of hosts.
    pub(crate) fn among_hosts(hosts: &Path, config: &str) -> Self {
        let mut command = apart();
        let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        command.args(["sh", "-c", script]).arg(hosts);
        command.arg(env!("CARGO_BIN_EXE_fuseline"));
        Self::spawn(
            command,
            config,
            &["--state", "off"],
            "info",
            Stdio::inherit(),
        )
    }

    fn start(config: &str, more: &[&str], level: &str, errors: Stdio) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
        Self::spawn(command, config, more, level, errors)
    }

    fn spawn(
        mut command: Command,
        config: &str,
        more: &[&str],
        level: &str,
        errors: Stdio,
    ) -> Self {
        let mut child = command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .args(more)
            .args(["--config", config, "--log", level])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let serving = lines
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .find(|line| line["message"] == "serving")
            .unwrap();
        let logged = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&logged);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                count.fetch_add(line.len() + 1, Ordering::Relaxed);
            }
        });
        let text = |key: &str| serving[key].as_str().unwrap().to_owned();
        Self {
            child,
            logged,
            listen: text("listen"),
            admin: text("admin_listen"),
        }
    }

    pub(crate) fn logged(&self) -> usize {
        self.logged.load(Ordering::Relaxed)
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        signal(self.child.id(), "INT");
    }

    /// Asks it to read its configuration anew.
    pub(crate) fn hang_up(&self) {
        signal(self.child.id(), "HUP");
    }

    /// Waits for its end, and gives whether it ended well.
    pub(crate) async fn ended(&mut self) -> bool {
        let mut ended = None;
        until(|| {
            ended = self.child.try_wait().unwrap();
            std::future::ready(ended.is_some())
        })
        .await;
        ended.unwrap().success()
    }

    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// The most that it ever had.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(what))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn open_files(&self) -> usize {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        all.unwrap().count()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
