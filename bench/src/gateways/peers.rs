//! Who is measured: how each is started before the same providers, on a core of its own, and what a call to it looks like.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::load::Post;
use crate::process::{Cores, Server, free_port};
use crate::proxy::NGINX_PROXY;

/// The proxies'; `bench/run` gives all else the other one.
const CORE: Cores = Cores::Only("0");
const PROVIDERS_CORE: Cores = Cores::Only("1");
/// What each that asks for a key is shown.
const KEY: &str = "sk-bench";
pub(crate) const EVENTS: usize = 20;

/// What is asked for. Each is the name of a model, and of the provider's path.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Plain,
    /// Twenty events, at once.
    Stream,
    /// One event, and then silence.
    Open,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Stream => "stream",
            Self::Open => "open",
        }
    }
}

/// The mock providers before which all stand.
pub(crate) struct Providers {
    quick: Server,
    open: Server,
}

impl Providers {
    pub(crate) async fn start() -> Result<Self> {
        let locations = format!(
            "location /plain/ {{ default_type application/json; return 200 '{}'; }}
             location /stream/ {{ default_type text/event-stream; return 200 '{}';
               sub_filter_types text/event-stream; sub_filter 'of no length' ''; }}",
            answer(),
            events()
        );
        Ok(Self {
            quick: Server::nginx_on(PROVIDERS_CORE, &locations, "").await?,
            open: Server::own("upstream", "").await?,
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.quick.address
    }

    /// What comes before `/v1`.
    fn base(&self, shape: Shape) -> String {
        let server = match shape {
            Shape::Plain | Shape::Stream => &self.quick,
            Shape::Open => &self.open,
        };
        format!("http://{}/{}", server.address, shape.name())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.quick.stop().await?;
        self.open.stop().await
    }
}

/// A whole chat completion, of a kilobyte.
fn answer() -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}}}"#,
        "x".repeat(760)
    )
}

/// As nginx's configuration has them: it ends lines where `\n` is written.
fn events() -> String {
    let event = |choice: &str| {
        format!(
            r#"data: {{"id":"c","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{{"index":0,{choice}}}]}}\n\n"#
        )
    };
    let word = event(r#""delta":{"content":"word "},"finish_reason":null"#);
    let last = event(r#""delta":{},"finish_reason":"stop""#);
    word.repeat(EVENTS - 1) + &last + r"data: [DONE]\n\n"
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Nginx,
    HaProxy,
    LiteLlm,
    Portkey,
    Fuseline,
}

impl Peer {
    pub(crate) const ALL: [Self; 5] = [
        Self::Nginx,
        Self::HaProxy,
        Self::LiteLlm,
        Self::Portkey,
        Self::Fuseline,
    ];

    /// With its version.
    pub(crate) async fn name(self) -> String {
        let asked = |name| std::env::var(name).unwrap_or_else(|_| "of unknown version".into());
        match self {
            Self::Nginx => format!("nginx {}", version("nginx").await),
            Self::HaProxy => format!("HAProxy {}", version("haproxy").await),
            Self::LiteLlm => format!("LiteLLM {}", asked("LITELLM_VERSION")),
            Self::Portkey => format!("Portkey {}", asked("PORTKEY_VERSION")),
            Self::Fuseline => "fuseline".into(),
        }
    }

    /// Whether it leaves a connection open that has been silent for some seconds.
    pub(crate) fn keeps_idle_ones(self) -> bool {
        matches!(self, Self::Nginx | Self::HaProxy | Self::Fuseline)
    }

    /// To this one, or to the provider itself.
    pub(crate) fn post(of: Option<Self>, shape: Shape, providers: &Providers) -> Post {
        let more = match shape {
            Shape::Plain => "",
            Shape::Stream | Shape::Open => r#""stream":true,"#,
        };
        let mut post = Post::chat(shape.name(), more);
        if matches!(of, None | Some(Self::Nginx | Self::HaProxy)) {
            post.path = format!("/{}{}", shape.name(), post.path);
            return post;
        }
        post.headers
            .push(("authorization", format!("Bearer {KEY}")));
        if of == Some(Self::Portkey) {
            let base = providers.base(shape) + "/v1";
            post.headers.push(("x-portkey-provider", "openai".into()));
            post.headers.push(("x-portkey-custom-host", base));
        }
        post
    }

    pub(crate) async fn start(self, providers: &Providers) -> Result<Server> {
        match self {
            Self::Nginx => {
                let open = &providers.open.address;
                let locations = format!(
                    "location /open/ {{ proxy_pass http://{open}; proxy_http_version 1.1; proxy_buffering off; }} {NGINX_PROXY}"
                );
                Server::nginx_on(CORE, &locations, providers.address()).await
            }
            Self::HaProxy => haproxy(providers).await,
            Self::LiteLlm => litellm(providers).await,
            Self::Portkey => portkey().await,
            Self::Fuseline => Server::gateway_on(CORE, &fuseline(providers)).await,
        }
    }
}

/// The first number that the program says of its version.
async fn version(program: &str) -> String {
    let said = Command::new(program).arg("-v").output().await;
    let said = said.map_or_else(|_| Vec::new(), |said| [said.stdout, said.stderr].concat());
    let said = String::from_utf8_lossy(&said);
    let mut words = said.split([' ', '/', '\n']);
    let number = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    number.unwrap_or("of unknown version").to_owned()
}

async fn haproxy(providers: &Providers) -> Result<Server> {
    let port = free_port()?;
    let directory = directory("haproxy", port)?;
    let config = format!(
        "global\n nbthread 1\n maxconn 4096\n\
         defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n http-reuse always\n\
         frontend all\n bind 127.0.0.1:{port}\n use_backend open if {{ path_beg /open/ }}\n default_backend quick\n\
         backend quick\n server a {}\n\
         backend open\n server a {}\n",
        providers.quick.address, providers.open.address
    );
    fs::write(directory.join("haproxy.cfg"), config)?;
    let mut command = CORE.command("haproxy");
    command.args(["-db", "-f", "haproxy.cfg"]);
    Server::other(command, format!("127.0.0.1:{port}"), directory).await
}

/// For LiteLLM's server, which else writes one.
const NO_LINE_PER_REQUEST: &str = r#"{"version": 1, "disable_existing_loggers": false,
  "loggers": {"uvicorn.access": {"handlers": [], "propagate": false}}}"#;

async fn litellm(providers: &Providers) -> Result<Server> {
    let program = installed("litellm/bin/litellm")?;
    let port = free_port()?;
    let directory = directory("litellm", port)?;
    let models = [Shape::Plain, Shape::Stream, Shape::Open].map(|shape| {
        let (name, base) = (shape.name(), providers.base(shape));
        format!(
            "  - model_name: {name}\n    litellm_params:\n      model: openai/{name}\n      api_base: {base}/v1\n      api_key: key\n"
        )
    });
    let config = format!("model_list:\n{}", models.concat());
    fs::write(directory.join("litellm.yaml"), config)?;
    fs::write(directory.join("log.json"), NO_LINE_PER_REQUEST)?;
    let mut command = CORE.command(program);
    command
        .args(["--config", "litellm.yaml", "--host", "127.0.0.1"])
        .args(["--port", &port.to_string(), "--num_workers", "1"])
        .args(["--telemetry", "False", "--log_config", "log.json"])
        .env("LITELLM_MASTER_KEY", KEY)
        // It would fetch prices.
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .env("LITELLM_LOG", "ERROR");
    Server::other(command, format!("127.0.0.1:{port}"), directory).await
}

async fn portkey() -> Result<Server> {
    let program = installed("portkey/node_modules/@portkey-ai/gateway/build/start-server.js")?;
    let port = free_port()?;
    // What is called `node` may be a script, which would be ended in its place.
    let asked = Command::new("node")
        .args(["-p", "process.execPath"])
        .output();
    let node = String::from_utf8(asked.await.context("there is no node")?.stdout)?;
    let mut command = CORE.command(node.trim());
    command
        .arg(program)
        .args([&format!("--port={port}"), "--headless"])
        .env("NODE_ENV", "production");
    let directory = directory("portkey", port)?;
    Server::other(command, format!("127.0.0.1:{port}"), directory).await
}

/// Under its defaults, with callers who must show a token and a second target to fall back to.
fn fuseline(providers: &Providers) -> String {
    let mut config = format!("log = \"off\"\nstate = \"off\"\nclient_tokens = \"{KEY}\"\n");
    for shape in [Shape::Plain, Shape::Stream, Shape::Open] {
        let (name, base) = (shape.name(), providers.base(shape));
        for provider in [name.to_owned(), format!("{name}-2")] {
            config += &format!(
                "[providers.{provider}]\nprotocol = \"openai\"\nbase_url = \"{base}\"\napi_key = \"key\"\n"
            );
        }
        config += &format!(
            "[[routes]]\nmodel = \"{name}\"\ntargets = [{{ provider = \"{name}\" }}, {{ provider = \"{name}-2\" }}]\n"
        );
    }
    config
}

/// A program that `bench/run` has installed under the target folder.
fn installed(path: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent);
    let program = target
        .context("this program is in no target folder")?
        .join("gateways")
        .join(path);
    ensure!(program.exists(), "it is not installed");
    Ok(program)
}

/// For the files of a server on this port; it goes when the server is stopped.
fn directory(name: &str, port: u16) -> Result<PathBuf> {
    let directory = std::env::temp_dir().join(format!("fuseline-bench-{name}-{port}"));
    fs::create_dir_all(&directory)?;
    Ok(directory)
}
